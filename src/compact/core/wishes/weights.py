"""What each word and cue is worth; written by benchmarks/learn_wishes.py, not by hand.

A line is a weight, in tenths, and the words that have it; whole numbers add up to the same in any order. `=name` is a
cue or a size, `#` a word with a digit in it.
"""

from __future__ import annotations

_BY_WEIGHT = """
+22 =always
+21 =prohibition
+17 =contrast don't per
+16 =scope only
+15 =hint person
+14 people small than
+13 =form every keep
+12 put
+11 =manner before come names note stay
+10 =ask-first =desire =duty =every agree anything do_the first less minutes over point say short so stays stick talk
+10 wins word
+9 euros give i'm_the leave new_branch our stick_to style thing unless versions you're
+8 =condition =product above above_# answers assume black_and budget cite comes german in_this is_for my_name project
+8 tell that_i the_way to_stay when write
+7 as ask can't commit_messages could_we customer end fewer first_and guess i_like if_it in is_fixed is_not it_?
+7 it_would like_a lists me money month never nobody numbers of_it out_of personal prices skip_the staging straight
+7 text that_the that_you touch under warnings we_keep wherever who would_help
+6 #_euros aisle and_please away basics be_told best budget_is by_the cheapest_option choice concise dollars don't_do
+6 dont eat final fixed flags for_my i'm_a i_am i_find i_want it_when keep_this mention no_changes no_emojis not_to
+6 notes on percent please_stop reach receipts rule so_check speak spend stop_and strict take that_format the_budget
+6 the_point the_word throughout treat what_i when_there white with work_on would_it you you_don't you_just
+5 a_summary am amounts are as_my at_most be being between browser chat choose code colours deadline deleting
+5 don't_open down emojis english error_messages exist external fees functions go_through guests have_to i_always
+5 i_ask if_you include interrupt is_a is_one is_perfect it_be it_can javascript leave_my loop may meetings metric
+5 more_than must_not no_more off_the office paste price published python python_# read-only record refunds room
+5 saying security ship sign signed so_nothing sources spell sql store team that_we the_# the_day then_the there_are
+5 this_project through times trains wait wait_for whenever_you words you_check
+4 =always-there accordingly agreed allowed always and_ask answer_in any_extra any_time appreciate_it are_my as_a
+4 ask_for at_# belong board call_me calls can_we choose_the clean clean_up comes_first comma consider_the contracts
+4 detail direct do_next dry early editor every_step eyes from_now go_to guide had_a has_a has_to i'll_do i_cannot
+4 i_trust i_won't identify if_the in_both instead_of is_below keep_a kids leave_out leave_the long look_like mails
+4 me_when mention_a migrations news now_on often on_no other_card outcome over_# pick pick_the prefer_to real
+4 recommendation rooms rules running secrets skip spaces speed step style_guide suggest support sure_that tell_me
+4 the_board the_client the_customer the_end the_final the_outcome the_shorter the_vault there's_a things this_to
+4 to_be to_include to_my together tone trust us we we're what_to work would_like written
+3 a_file a_little abbreviations after_each after_the afterwards always_add an_order any_other are_broken as_long
+3 as_you at at_all at_the attach away_from backups best_for calendar can_use care careful careful_with change_it
+3 cheapest check_the circumstances code_only come_up commands comment_on customers dark data database dates day
+3 deadlines decide decision deliveries doctor documentation don't_add double-check drop during each each_change
+3 easier edit expect feature file_is fine_with format formatting free general house i'm_fine i_decide i_may i_take
+3 if_a implementation include_a is_# is_another is_to it_has it_out it_up kind_of language leaves length let's_do
+3 level limit lines links list_the little long_as main make_a makes_sense match_the matters me_is methods mind
+3 mondays morning my my_calendar my_last myself needs needs_a new_one night of_# of_this on_one on_this only_i
+3 only_use operations or_not original_reservation out_the output per_answer please_hold please_keep points prefer
+3 properly pull_requests quality quotes read reading references right_away sending service shortcuts signature simple
+3 so_keep start_the starting stuff tabs take_the takes tend tend_to than_a the_answers the_code the_commands
+3 the_morning the_process this_repo tickets to_each to_run to_verify try_to unclear until_the urgent when_we when_you
+3 whole with_both write_the yaml you_asked you_can you_mention you_please you_see you_write your
+2 a_human a_ticket accept all assumptions at_once be_possible belongs best_way bill branch_for bright bug build
+2 but_not by case check_that client company confidential copy coverage credit drop_the each_reply eu except
+2 except_the family flag fly for_payment format_is from_this gets granted have_an hold i i'm_in i_can't i_keep i_send
+2 in_all in_every in_one is_the it_a it_in it_possible kind law leave_a lives lives_in make_sure marketing match
+2 me_by mention_the my_new my_terminal next_to not_a offer on_anything on_mondays one_is partial please_don't
+2 please_double-check pls possible possible_to pull quick refer refer_to reorder repo results round route save seats
+2 so_no start_with thanks_that that_it's that_tests the_app the_best the_bill the_price the_short them_for translate
+2 up_in use_it use_the vault version we_can't when_a whenever won't write_for you_fix you_mind you_share you_to
+2 you_try you_use
-2 #_est a_call a_day a_few a_great a_reply a_shadow after after_submitting again_with agents agentsession ahead_with
-2 alex.martin alex.martin_bluesparrowtech.com all_three an an_eye an_hour and_i'm and_on and_we any_way are_shared
-2 are_the at_a auto-commit avoid backpack behavior better_? blue_one booking branch branches buy c cache
-2 cannot_continue card_for card_on change_to charged checkpoint_commit ci cleaner cloud_drive cloud_mode comment
-2 commit_# confirm_once confusion contact_me contains continue_working cotton date_sun deep design did_you do_that
-2 does_it done_today drive_that editing_testing ending_# evaluate execution eye file_to finding for_every for_now
-2 found_it from_my function_map gen-changelog get_this given glad great_day hi_i'm honestly i'm_glad i'm_looking
-2 i_could i_just i_never i_should i_understand ids_of in_agent in_economy initialize is_at is_better is_correct
-2 is_quite is_there it's_available it_here it_now key know_when larger_one latest like_to line_# look_up
-2 make_gen-changelog map mastercard may_# medium merge might mms monday most_recent much much_for multiple my_number
-2 my_upcoming need_a need_some new_session of_code on_each on_may one_certificate only_need open_a option_and out
-2 password paths pending phase_# please_explain please_make please_proceed please_send pr_description providerroutes
-2 questions quite_important reading_editing really_don't reason_is recommend required rest return_everything
-2 right_now same_one seat_on seattle second_option see_if shared_with should_be skateboard so_it soon status
-2 suggestions sun sun_feb sure_i syntax task_after testing_in tests tests_for thanks_so the_blue the_cloud
-2 the_correct the_docs the_flag the_ids the_larger the_return the_screen the_tablet the_total then_let's there_is
-2 this_error this_function this_task ticket title to_go to_move to_that train upcoming updates url very want_a way_to
-2 we_want weird what_you when_it's when_two whether_the which_one will_be with_alex.martin working_reading would_be
-2 yes_do yes_keep you_cannot you_for you_say you_show you_verify
-3 #_example.com #_for #_on a_couple a_linear a_pr a_refund a_session a_subagent added after_verifying again_before
-3 already_on alternatively always_use an_analysis an_email and_check and_not answered answered_my any appreciate_you
-3 appreciate_your are_color are_there are_two arrived ask_about asked assertion attachment bag balance basically
-3 battery be_helpful be_run be_transferred be_used because_i before_submitting behaviour blue bluesparrowtech.com
-3 bluetooth both brightness buy_a cache_is call_the can_find can_give card_is change_the cheaper cheapest_one
-3 checked_bags clarifying close code_duplication coding-agent_src color_options colour_is column commit_it could_use
-3 couple covered crashes_on credit_card currently delivered description desk desk_lamp detection didn't diff
-3 difference directly display do_an do_it don't_have downgrade downgrades duplication economy_class else_is email
-3 ending ensure_the est everything_else example.com exchange exchanged fail false feb feb_# feels fine first_version
-3 fly_before folder_names following for_any for_tool for_verification for_your forget from from_last full_name fully
-3 further future getting git give_you go_ahead got green happy happy_with have_a help_today here_? hey hmmm hook
-3 hoping hotel https i'd i'd_rather i'm_not i've_been i_actually i_attached i_found i_haven't i_see i_sent i_used
-3 i_would if_they image impact implement_the in_that in_the in_utc included incrementaltypetaskstart instead_?
-3 interactive internal into is_currently it's_been it's_still it_says it_without ivan kimi kimi-cli know_if know_this
-3 let_me loading locally logic love low made manual many march maybe me_? me_a me_at meant meant_the messaging
-3 messaging_app mise mise_run missing mistake modes modes_interactive modify_patch.txt moonshot
-3 moonshot_moonshotdemacbook-pro moonshotdemacbook-pro moonshotdemacbook-pro_kimi-cli my_email my_phone my_recent
-3 my_visa need_anything never_mind new_ticket no_longer none none_of not_read now_so null number_is of_plans off_and
-3 ok_so one_please onto options order_id own packmind paragraph parent patch.txt patch.txt_after pattern
-3 per_reservation perform phase please_do please_fix prefer_a probably proceed_with product project_troy provide
-3 proxy publish received recent_order recent_orders red remember_the reservations resolve review rewind run_bun
-3 runs_the schedule second_file seems send_me settings should_verify should_we shows so_what solution sorry_i sounds
-3 source split sqlite state still_not storage string summarise summary summary_of sure_my switched system tab tablet
-3 taking target task task_is template test_for testing tests_are that'd that'd_be that's_everything that_sounds
-3 the_bug the_cheapest the_comment the_diff the_downgrade the_earlier the_error the_following the_messaging
-3 the_number the_reason the_refund the_shoes the_third the_upgrade their them these third this_? this_must though
-3 to_buy to_do to_her to_this to_work tool_use transcript transfer transferred traveling troy try turned_off type
-3 understand unified untrusted upset_because user_for utc verify_again verify_me verifying_you version_of want_the
-3 way way_on we_also we_have what will window with_everything with_the within_a work_for worked works_for would_ask
-3 would_love yeah_let's you_modify you_my you_never you_should you_so zip
-4 a_change a_new a_short a_shorter additional_charges after_you agentv airplane airplane_mode all_dates all_i alone
-4 another any_additional are_all arrives as_the available_in back_to bags be_done be_in been_a before_# between_the
-4 birthday birthday_is button call can't_send cancel certificate changes charge checking checkpoints cinfo
-4 cinfo_shutting class cloud cmd coding-agent complete completion confirmation_before copy_of correct correctly
-4 course covers covers_everything crashes data_is dates_in decided_to did directory don't_remember don't_want earlier
-4 eligible entirely entry error evaluation everything_is fable failing file_changes forget_the from_the function
-4 goes_up gsd have_one haven't he here_is his home i_lost i_meant i_was if_possible if_that import important
-4 important_to invoice is_cheaper issues it's_a it's_done it's_just it_arrives it_into its know last_release linear
-4 look_at lose lost material me_first me_know me_that me_to memory message migration mobile mobile_data mode mode_is
-4 model moment must_have my_call my_full my_seat need need_the need_to needs_to neither neither_of no_i no_that
-4 not_set numbers_for of_course oh on_file on_it one_of only_if only_one only_see option_b order_as other_changes
-4 package packages_coding-agent patterns phone_number picture plans prefer_not preference proceed prompts quite
-4 rather_not refund_to remove_the resolution run same_size see_a sent_the separate server shadow_branch shoes
-4 should_go shutting shutting_down since_yesterday skills smaller something specific specified started still_can't
-4 strategy thanks_for that_? that_covers that_one that_should the_button the_email the_endpoint the_gift the_moment
-4 the_new the_other the_report the_tests the_title the_words the_wrong them_are this_has those_options thought_i
-4 to_cancel to_make trailer travel_insurance trip tui typescript update_the validation various vercel verification
-4 verifying visa want_travel we_are we_could went which_is whichever whichever_is windows without_my worktrees
-4 yes_please yes_use you_submit your_time
-5 #_# =short a_commit action additional address_out all_files always_pay and_confirm anyway attached b be_the
-5 breaking breaking_changes change_of changes_to check_with checked checks contract coordinator core current
-5 different docs does don't_commit don't_need economy endpoint exceptions extra failed fetchurl first_one fit for_it
-5 forward found full generate gets_a gift gift_card github happens_when help_with her hi i'll_keep i'm i'm_sorry
-5 i_needed i_only i_open i_still id in_plain is_no issue it_must json let's_go letter like_my like_the lint login
-5 look machine mail me_check modules must_be my_current my_machine name_is nervous no_exceptions no_insurance
-5 no_other of_these old on_that open passengers pause pause_and please_use read_the reason replacement return rewrite
-5 run_lint runs said save_it size skill so_much space src statement submit submitting table that's_all that_isn't
-5 that_order the_address the_confirmation the_contract the_file the_login the_numbers the_old the_questions the_two
-5 think to_a to_ensure today token total trivial try_again turn use use_my used want_to what_do whether wi-fi write_a
-5 you_are you_the your_system
-6 a_# about_the actually already analysis apply but by_user changed_last commit commits_are confirmation
-6 details_should draft duplicated either expected fee find first_name going i'm_just i've i_can i_don't ids if_not
-6 interrupted interrupted_by is_in it's it_only item lamp layout let's list literal make_the metadata modify move
-6 moved_to must_never my_account my_profile next_week no_problem no_that's ok open_the orders original_payment
-6 packages payment permission please_show pr profile recent release request_interrupted reservation restart see
-6 send_it sessions short_summary should sorry sorry_for starts subagent the_invoice the_meeting the_page they told_me
-6 turned update with_my worktree your_help
-7 =id anymore anything_else appears appreciate are_a be_empty card claude color confirm continue create create_a
-7 created default do_you done empty ensure field files_in for_the i'd_prefer i_think i_thought it_as just log looking
-7 looks method moved my_details name no of_those option overwhelmed path payment_method plan please_confirm problem
-7 promptfoo same second shadow since so_i so_we the_folder the_server three to_use two using variant we_always when_i
-7 where why you_always
-8 =question agent also bun can_you check checkpoint deploy errors good happens have help i_appreciate i_click i_have
-8 implement insurance like_it list_all log_in noon on_my prompt really remediation remove request some thank the_log
-8 they_always thought upgrade user working yet
-9 =long add bun_run can click configuration fast file how if_anything of okay one other pass still that the there
-9 this_is was yeah
-10 address again alright available been boots changed charges entire every_time fix happened order session those
-10 tomorrow verify which
-11 do_not else flight i'll needed nothing_else set yesterday
-12 of_them or please refund row sure
-13 =pair as_it it then
-14 # now thank_you the_first
-15 =told great thanks the_second
-16 and works
-17 that's
-18 stop
-20 =colon this
-21 ?
-22 yes
-24 =errand =tiny
"""

WEIGHTS: dict[str, int] = {
    word: int(line.split()[0]) for line in _BY_WEIGHT.strip().splitlines() for word in line.split()[1:]
}
