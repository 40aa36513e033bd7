"""What each word and cue is worth; written by benchmarks/learn_wishes.py, not by hand.

A line is a weight, in tenths, and the words that have it; whole numbers add up to the same in any order. `=name` is a
cue or a size, `#` a word with a digit in it.
"""

from __future__ import annotations

_BY_WEIGHT = """
+22 =always
+21 =prohibition
+17 =contrast =scope only per
+16 don't
+15 =hint person
+14 =form people small than
+13 every keep
+12 put
+11 =ask-first =manner before come frozen names note stay word
+10 =desire =duty =every do_the first less minutes over point say short so stays stick talk wins
+9 agree anything euros give i'm_the leave new_branch our stick_to style thing unless versions you're
+8 =condition =product above above_# answers assume black_and budget comes first_and german is_for my_name tell that_i
+8 the_way to_stay under when write
+7 as ask can't cite commit_messages could_we customer end fewer guess has_a i_like i_want if_it in in_this is_fixed
+7 it_? it_would like_a lists me month never nobody of_it out_of prices project skip_the staging straight text
+7 that_you touch warnings we_keep wherever who
+6 #_euros aisle and_please away basics be be_told best budget_is by_the cheapest_option choice dollars don't_do dont
+6 eat exist final flags for_my i'm_a i_am i_ask i_find if_you is_not it_when keep_this mention money no_changes
+6 no_emojis not_to numbers on percent personal please_stop reach receipts rule so_check speak spend strict sure_that
+6 take that_format that_the the_budget the_point the_word throughout treat what_i when_there white with work_on
+6 would_help you you_don't you_just
+5 a_summary am amounts as_my at_most being between chat choose code colours concise deadline deleting down emojis
+5 english error_messages external fees fixed functions go_through guests have_to include interrupt is_a is_one
+5 is_perfect it_be it_can javascript leave_my loop meetings metric migrations more_than must_not no_more notes
+5 off_the office paste price published python python_# read-only record refunds room saying security ship sign signed
+5 so_nothing sources spell sql stop_and store suggest team the_# the_day then_the there_are this_project through
+5 times trains wait wait_for whenever_you words would_it you_check
+4 =always-there a_file accordingly agreed allowed always and_ask answer_in any_time appreciate_it are are_my as_a
+4 ask_for at at_# belong board browser call_me calls can_we check_the choose_the clean clean_up comes_first comma
+4 contracts detail direct do_next don't_open dry early editor eyes from_now go_to guide has_to i'll_do i_always
+4 i_cannot i_trust i_won't identify if_the in_both instead_of is_to keep_a kids leave_out leave_the long look_like
+4 mails may me_when morning myself news now_on often on_no other_card out_the outcome over_# pick pick_the prefer_to
+4 real recommendation rooms rules running secrets skip spaces speed step style_guide support tell_me tend tend_to
+4 term that_we the_board the_client the_customer the_end the_final the_morning the_outcome the_shorter the_vault
+4 there's_a things this_to tickets to_be to_include to_my together tone trust us we we're what_to whole work
+4 would_like written you_add
+3 abbreviations after_each after_the afterwards always_add an_order any_extra any_other are_broken as_you at_all
+3 attach away_from backups belongs best_for by calendar can_use care careful careful_with change_it cheapest
+3 circumstances client come_up commands comment_on conversation customers dark data database dates day deadlines
+3 decide decision deliveries doctor documentation don't_add double-check during each each_change easier edit
+3 every_step expect feature file_is fine_with format formatting free general gets had_a house i'm_fine i_decide i_may
+3 i_take if_a implementation in_all include_a is_# is_another is_below it_has it_out it_up kind_of language leaves
+3 length let's_do level limit links list_the little main make_a make_sure makes_sense match_the matters me_is
+3 mention_a methods mind mondays my my_calendar needs needs_a new_one night of_# of_this on_one only_i only_use
+3 operations or_not original_reservation output outside outside_the per_answer please_hold please_keep points polite
+3 possible_to prefer properly pull_requests quality quotes read reading references right_away sending service
+3 shortcuts signature simple so_keep start_the starting stuff tabs takes than_a the_answers the_code the_commands
+3 the_process this_repo to_each to_run to_verify treat_the try_to unclear under_my until_the urgent use_the when_we
+3 when_you with_both write_the yaml you_can you_mention you_please you_see you_write your
+2 a_human a_little a_ticket accept all as_long assumptions at_once at_the be_possible best_way bill branch_for bright
+2 bug but_not case check_that code_only company confidential consider_the coverage credit don't_touch drop drop_the
+2 each_reply eu except except_the family flag fly for_payment format_is from_this granted hold i i'd_appreciate
+2 i'm_in i_can't i_keep i_send in_every in_one in_place is_the it_a it_possible kind law leave_a lines lives lives_in
+2 long_as marketing match me_by mention_the messages my_last my_new my_terminal not_a offer on_anything on_mondays
+2 on_this one_is partial please_don't please_double-check pls possible pull quick rather refer refer_to reorder repo
+2 results round route save so_no start_with take_the thanks_that that_it's that_tests the_app the_best the_bill
+2 the_price the_short this_whole translate up_in use_it vault version we_can't when_a whenever won't write_for
+2 you_asked you_fix you_mind you_to you_try you_use
-2 #_est a_call a_day a_few a_great a_linear a_reply a_shadow a_test after after_submitting again_with agents
-2 agentsession ahead_with alex.martin alex.martin_bluesparrowtech.com an_eye an_hour and_i'm and_on and_we any
-2 any_way are_shared are_the at_a auto-commit avoid backpack behavior better_? blue_one booking branch branches buy c
-2 cannot_continue card_for card_on charged checkpoint_commit ci cleaner close cloud_drive cloud_mode comment commit_#
-2 confirm_once confusion contact_me contains continue_working cotton date_sun deep design did_you do_that does_it
-2 done_today drive_that editing_testing ending_# evaluate even execution eye file_to finding fly_before for_every
-2 for_now found_it from_my function_map gen-changelog get_this given glad great_day group hi_i'm honestly i'm_glad
-2 i'm_looking i_could i_just i_never i_prefer i_should ids_of in_agent in_economy initialize is_at is_better
-2 is_correct is_quite is_there it's_available it_here it_now it_without know_when larger_one latest like_to line_#
-2 look_up make_gen-changelog map mastercard may_# medium merge might mise mise_run mms monday most_recent much
-2 much_for my_number my_upcoming need_a need_some new_session of_code on_may one_certificate only_need open_a
-2 option_and option_is out package password paths pending phase_# please_explain please_proceed please_send
-2 project_troy providerroutes quite_important reading_editing really_don't reason_is recommend reply_to rest
-2 return_everything right_now seat_on seattle second_option see_if seems shared_with should_be skateboard so_it soon
-2 status suggestions sun sun_feb sure_i syntax task_after task_is testing_in tests tests_for thanks_so that_would
-2 the_blue the_bug the_cloud the_correct the_diff the_docs the_flag the_ids the_larger the_most the_return the_screen
-2 the_tablet the_total them then_let's there_is this_error this_function this_task to_go to_her to_move to_that train
-2 troy upcoming updates want_a way_to we_want what_you when_it's when_two whether_the which_one will_be
-2 with_alex.martin working_reading would_be yes_do yes_keep you_cannot you_for you_say you_show you_verify
-3 #_example.com #_for #_on a_couple a_pr a_refund a_session a_shorter a_subagent added after_verifying again_before
-3 all_i all_three alone already_on alternatively always_use an an_analysis an_email and_check answered answered_my
-3 appreciate_you are_color are_there are_two arrived ask_about asked assertion attachment bag balance basically
-3 battery be_helpful be_run be_transferred be_used because_i before_submitting behaviour blue bluesparrowtech.com
-3 bluetooth both brightness buy_a call_the can_find can_give card_is change_the cheaper cheapest_one checked_bags
-3 clarifying code_duplication coding-agent_src color_options colour_is column commit_it could_use couple covered
-3 crashes_on credit_card currently delivered description desk desk_lamp detection didn't diff difference directly
-3 display do_an do_it does don't_have downgrade downgrades duplication economy_class else_is email ending ensure_the
-3 est everything_else example.com exchange exchanged fail false feb feb_# feels fine first_version folder_names
-3 following for_tool for_verification for_your forget forget_the from from_last full_name fully further future
-3 getting git give_you go_ahead got green happy happy_with have_a help_today here_? hey hmmm home hook hoping hotel
-3 https i'd i'd_rather i'm_not i've_been i_actually i_attached i_found i_haven't i_see i_sent i_used i_would if_they
-3 image impact implement_the important_to in_that in_the in_utc included incrementaltypetaskstart instead_?
-3 interactive internal into is_currently it's_been it's_still ivan key kimi kimi-cli know_if know_this let_me loading
-3 locally logic love low made manual many march maybe me_? me_a me_at meant meant_the messaging messaging_app missing
-3 mistake modes modes_interactive modify_patch.txt moonshot moonshot_moonshotdemacbook-pro moonshotdemacbook-pro
-3 moonshotdemacbook-pro_kimi-cli my_email my_phone my_visa need_anything never_mind new_ticket no_longer none none_of
-3 not_read now_so null number_is of_plans off_and ok_so on_each one_please onto options order_id own packmind
-3 paragraph parent patch.txt patch.txt_after pattern per_reservation perform phase please_do please_fix please_make
-3 prefer_a probably proceed_with product provide proxy publish received recent_order recent_orders red remember_the
-3 reservations resolve review rewind run run_bun schedule second_file send_me settings should_go should_verify
-3 should_we shows so_what solution sorry_i sounds source split sqlite state still_not storage string summarise
-3 summary summary_of sure_my switched system tab tablet taking target task template test_for testing tests_are
-3 thanks_for that'd that'd_be that's_everything that_sounds the_cheapest the_comment the_downgrade the_error
-3 the_following the_messaging the_number the_reason the_refund the_shoes the_third the_upgrade their third this_?
-3 this_must those_options though to_buy to_do to_this to_work tool_use transcript transfer transferred traveling try
-3 turned_off type understand unified untrusted upset_because url user_for utc verify_again verify_me verifying_you
-3 version_of want_the way_on we_also we_have went what will window with_everything with_the within_a work_for worked
-3 works_for would_ask would_love yeah_let's you_modify you_my you_never you_should you_so zip
-4 a_change a_short additional_charges after_you agentv airplane airplane_mode all_dates another any_additional
-4 appreciate_your are_all arrives as_the available_in back_to bags be_done be_in been_a before_# between_the birthday
-4 birthday_is button cache_is call can't_send cancel certificate changes charge checking checkpoints cinfo
-4 cinfo_shutting class cloud cmd coding-agent complete completion confirmation_before copy_of correct correctly
-4 course covers covers_everything crashes data_is dates_in decided_to did directory don't_remember don't_want earlier
-4 eligible entirely entry error evaluation everything_is fable failing file_changes for_any from_the function goes_up
-4 gsd have_one haven't he here_is his i'll_keep i_lost i_meant i_was if_possible if_that import important invoice
-4 is_cheaper is_no issues it's_a it's_done it's_just it_arrives it_into it_says its know last_release letter linear
-4 look_at lose lost material me_first me_know me_that me_to memory message migration mobile mobile_data mode mode_is
-4 model moment must_be must_have my_call my_full my_recent my_seat need need_the need_to needs_to neither neither_of
-4 no_i no_that not_set numbers_for of_course oh on_file on_it one_of only_if only_one only_see order_as other_changes
-4 packages_coding-agent patterns phone_number picture plans prefer_not preference proceed prompts quite rather_not
-4 refund_to remove_the resolution runs_the same_size see_a sent_the separate server shadow_branch shoes shutting
-4 shutting_down since_yesterday skills smaller something specific specified started still_can't strategy that_?
-4 that_covers that_one that_should the_button the_contract the_earlier the_email the_endpoint the_gift the_moment
-4 the_new the_other the_report the_tests the_title the_words the_wrong them_are these this_has thought_i to_cancel
-4 trailer travel_insurance trip tui typescript update_the validation various vercel verification verifying visa
-4 want_travel way we_are we_could which_is whichever whichever_is windows without_my worktrees yes_please yes_use
-4 your_time
-5 #_# =short a_commit a_new action additional address_out all_files always_pay and_confirm anyway attached be_the
-5 breaking breaking_changes change_of changes_to check_with checked checks contract coordinator core current deploy
-5 different docs don't_commit don't_need economy endpoint exceptions extra failed fetchurl first_one fit for_it
-5 forward found full generate gets_a gift gift_card github help_with her hi i'm i'm_sorry i_needed i_only i_open
-5 i_still id in_plain issue it_must json let's_go like_my like_the lint login look machine mail me_check modules
-5 my_current my_machine name_is nervous next_week no_exceptions no_insurance no_other no_that's of_these old open
-5 option option_b passengers pause pause_and please_use reason replacement return rewrite run_lint runs said size
-5 skill so_much space src statement submit submitting table that's_all that_isn't that_order the_address
-5 the_confirmation the_file the_login the_meeting the_numbers the_old the_questions the_two think to_a to_ensure
-5 to_make total trivial try_again turn use used want_to we_deploy what_do whether wi-fi worktree write_a you_are
-5 you_submit you_the your_system
-6 about_the actually analysis anymore apply b but by_user changed_last commit commits_are confirmation details_should
-6 draft duplicated either expected fee find first_name going happens_when help i'm_just i've i_can i_don't ids if_not
-6 interrupted interrupted_by is_in it's it_only item lamp layout let's list literal log make_the metadata modify move
-6 moved_to must_never my_account my_profile no_problem ok on_that open_the orders original_payment packages payment
-6 permission please_show pr profile read_the recent release request_interrupted reservation restart save_it send_it
-6 sessions short_summary should sorry sorry_for starts subagent the_invoice the_page they today token told_me turned
-6 update use_my with_my
-7 =id a_# already anything_else appears appreciate are_a be_empty card claude color confirm continue create create_a
-7 created default do_you done empty ensure field files_in for_the i'd_prefer i_think i_thought it_as just list_all
-7 looking looks method moved my_details name no of_those overwhelmed path payment_method plan please_confirm problem
-7 promptfoo same second see shadow since so_i so_we the_folder the_server three to_use two using variant we_always
-7 when_i where why you_always your_help
-8 =question add agent also bun can_you check checkpoint errors good happens i_appreciate i_click i_have implement
-8 insurance like_it log_in noon okay on_my prompt really remediation remove request some thank the_log they_always
-8 thought upgrade user working yet
-9 =long bun_run can click configuration every_time fast file have how if_anything of one other pass still that the
-9 there this_is was yeah
-10 again alright available been boots changed charges entire fix happened order session those tomorrow verify which
-11 address do_not else flight i'll needed nothing_else set sure yesterday
-12 of_them or please refund row
-13 =pair as_it it then
-14 # now thank_you
-15 great thanks the_first the_second
-16 =told and works
-17 that's
-18 stop
-19 =colon
-20 this
-21 ?
-22 yes
-24 =errand =tiny
"""

WEIGHTS: dict[str, int] = {
    word: int(line.split()[0]) for line in _BY_WEIGHT.strip().splitlines() for word in line.split()[1:]
}
