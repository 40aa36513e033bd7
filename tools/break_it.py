"""Break the code on purpose, one small change at a time, and check that the tests notice.

    python tools/break_it.py [WORD]      only the breaks whose description holds the word
    python tools/break_it.py --sample    one in eight

Each break names the tests that must fail because of it: a test, not a folder, where the folder takes long. Works on
copies of the tree; prints a line per break and exits with 1 if any of them goes unnoticed. `tests/test_break_it.py`
checks that every break still names a line of the code, and a test that is there.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
# Chosen: what CI has time for.
_SAMPLED = 8
NOTICED = 1  # pytest's exit status when tests failed; 2 and more mean that they could not run


@dataclass(frozen=True, slots=True)
class Break:
    """One small change, what it breaks, and the tests that must notice."""

    what: str
    file: str
    old: str
    new: str
    tests: str

    @property
    def path(self) -> Path:
        """The file in a checkout."""
        return Path("src/compact") / self.file


BREAKS = (
    # -- the log
    Break("the log keeps the caller's own object", "core/messages/entries.py", "return copy_plain(item if isinstance(item, dict) else dict(item))", "return item", "tests/core/messages/test_entries.py"),
    Break("an edited past is not noticed", "core/log/known_list.py", "list_start(incoming, known) == self.originals", "True", "tests/core/log/test_log.py"),
    Break("calls and results are split", "core/messages/groups.py", "        if number is not None:\n", "        if False:\n", "tests/core/messages/test_legality.py tests/core/plan/test_layers.py"),
    Break("orphans are dropped", "core/messages/legality.py", "out.append(_orphan_as_text(head, repairs))", "pass", "tests/core/messages/test_legality.py"),
    Break("what was injected into a content of Gemini's SDK is the user's", "dialects/translation/added.py", "fields_of(as_json_data(item) if is_of(item, \"google\") else item)", "fields_of(item)", "tests/test_injection.py::test_what_was_injected_into_a_content_of_geminis_sdk_is_taken_out_after_a_restart"),
    Break("a message whose mark for the cache is not written is a text of ours", "dialects/translation/translator.py", "list(map(unmarked, read)) != list(map(unmarked, shown))", "read != shown", "tests/test_matching.py::test_a_mark_for_the_cache_makes_a_protected_message_no_text_of_ours"),
    Break("a result keeps its empty texts", "dialects/dialect.py", "said = [_result_with_words(part) for part in parts if not _says_nothing(part)]", "said = [part for part in parts if not _says_nothing(part)]", "tests/dialects/test_writing.py::test_a_result_has_no_empty_texts"),
    Break("a whole turn is left out without a word", "core/messages/turn_order.py", "is_filled = speaks_again and self._has_spoken(other, last, message)", "is_filled = False", "tests/dialects/test_chat_templates.py::test_every_prompt_of_a_chat_is_taken"),
    Break("what an earlier plan left out is taken for deleted", "core/log/recognition.py", "if missing and (found.ours or not all(shown.always_as_is(i) for place in missing for i in sent.ids[place])):", "if False:", "tests/core/log/test_log_alone.py::test_prompts_of_earlier_plans_are_asked_for_if_the_list_may_be_one"),
    Break("a line for a turn that was left out is a message", "core/log/log.py", "lines = lines_in(incoming.items, places[: alignment.known_until])", "lines = set[int]()", "tests/core/log/test_log_alone.py::test_a_line_for_a_turn_that_is_in_an_earlier_prompt_alone_is_no_message"),
    Break("what a summary hides is a new message in a list that goes on as the caller's own", "core/log/log.py", "ours = lines | hidden_in(incoming.items, places, sent, own_forms)", "ours = lines", "tests/test_matching.py::test_what_a_summary_hides_is_not_logged_again_where_a_prompt_goes_on_as_the_callers_own_list"),
    Break("what a summary hides is known as it came alone", "core/log/log.py", "own_forms = [self.unseen.get(entry.id, entry) for entry in self.view]", "own_forms = self.view", "tests/test_matching.py::test_what_a_summary_hides_is_not_logged_again_where_a_prompt_goes_on_as_the_callers_own_list"),
    Break("the whole of a stub is a new message", "core/log/recognition.py", "alignment = self._with_whole(alignment, sent, said)", "pass", "tests/core/log/test_log_alone.py::test_the_whole_of_what_a_prompt_has_a_stub_for_is_no_new_message"),
    Break("a text of an earlier plan is taken for an edit", "core/log/recognition.py", "if not all(owner and shown.always_as_is(owner) and not _looks_like_ours(one) for one, owner in edits):", "if False:", "tests/core/log/test_log_alone.py::test_prompts_of_earlier_plans_are_asked_for_if_the_list_may_be_one"),
    Break("a compacted prompt has objects of an earlier call", "dialects/objects.py", "return replace(self, own=own)", "return self", "tests/dialects/test_translation.py::test_equal_copies_come_back_as_the_newest_objects"),
    Break("a change in an object of a framework is not noticed", "dialects/objects.py", "return all(list(map(read, values)) == self.states[read] for read, values in self.objects.items())", "return True", "tests/dialects/test_seen_items.py"),
    Break("the log holds what a caller may change", "dialects/objects.py", "own = copy_plain(cast(dict[str, Any], item))", "own = cast(dict[str, Any], item)", "tests/dialects/test_seen_items.py"),
    Break("fields of two records stand side by side", "core/facts/selection.py", "leads or {}, units or {}, shares)", "leads or {}, {}, shares)", "tests/core/facts/test_selection.py"),
    Break("a cleared result is a new message", "core/log/recognition.py", "has_other_time or is_reduced(entry, item, may_be_other=may_be_other)", "has_other_time", "tests/test_changing_clients.py::test_a_cleared_result_goes_out_cleared_and_is_recalled_whole"),
    Break("a new time in a summarised message is not seen", "core/log/recognition.py", "self._incoming.shown.as_is(entry.id) and differs_in_time(entry, item)", "differs_in_time(entry, item)", "tests/test_changing_clients.py::test_a_time_in_a_message_that_is_summarised_is_no_clock"),
    Break("a trimmed list loses its summary", "core/log/log.py", "(change.missing() - self._trimmed)", "change.missing()", "tests/test_changing_clients.py::test_a_trimmed_list_that_is_whole_again_doubles_nothing"),
    Break("old words stay in the summary of an edited past", "core/plan/edited.py", "summary=summary.without_sources(gone)", "summary=summary", "tests/core/log/test_log.py::test_an_edit_inside_the_summarised_past_leaves_the_summary_of_the_rest"),
    Break("the newest message stays behind a summary after an edit", "core/plan/edited.py", "standing = present - newest", "standing = present", "tests/core/plan/test_edited.py::test_what_is_the_newest_message_now_is_not_left_out"),
    Break("an edited pin stands behind the summary", "core/plan/edited.py", "is_first or any(map(pins, group))", "is_first", "tests/core/plan/test_edited.py::test_a_pinned_message_that_was_edited_stands_before_the_summary"),
    Break("an undo moves what stood behind the summary", "core/plan/edited.py", "return not stood.isdisjoint(shown) if shown else is_first", "return is_first", "tests/core/plan/test_edited.py::test_what_a_plan_knew_stays_on_its_side_of_the_summary"),
    Break("a result is taken for another one with the same words", "dialects/translation/translator.py", "and (first == end or self._is_read_alone(block))", "", "tests/test_matching.py::test_walks_that_failed_once"),
    Break("a prompt of an earlier plan is not known after a restart", "core/engine/engine.py", "session.learn_past(plans, ", "session.learn_past((), ", "tests/test_matching.py::test_a_prompt_of_an_earlier_plan_is_known_after_a_restart"),
    Break("pins stand first without a summary", "core/plan/edited.py", "if left.summary else ()", "if left.summary else left.pinned", "tests/core/plan/test_edited.py"),
    Break("what an edit brings back is shown as it was", "core/engine/compaction.py", "session.show_unseen()", "pass", "tests/test_matching.py::test_an_entry_that_undo_shows_again_is_shown_as_the_caller_has_it"),
    Break("another conversation under a used id is not noticed", "core/log/log.py", "return max(entry.line for entry in self.entries) + 1", "return self.line", "tests/stores/test_reuse.py"),
    # -- event loops
    Break("threads that write pass one another until one gives up", "stores/database.py", "with self._turn_to_write(), self._engine.begin()", "with self._engine.begin()", "tests/stores/test_database.py::test_threads_that_write_wait_for_their_turn"),
    Break("waiting for a thread of our own is taken for a slow store", "waiting/limits.py", "_begun: float | None = None", "_begun: float | None = field(default_factory=time.monotonic)", "tests/test_event_loop.py::test_waiting_for_a_thread_ends_with_the_time_of_the_call"),
    Break("a process that was frozen takes its store for a slow one", "waiting/limits.py", "if left is not None and left < -_OVERSLEPT_SECONDS and", "if False and", "tests/test_event_loop.py::test_a_process_that_was_frozen_does_not_take_its_store_for_a_slow_one"),
    Break("the loop waits until a thread has started", "waiting/limits.py", "_starter().put(thread)", "thread.start()", "tests/test_event_loop.py::test_a_loop_starts_no_threads_for_calls"),
    Break("calls that wait for a thread are forgotten when others hang", "waiting/limits.py", "        if is_needed:\n            self._start()\n", "", "tests/test_event_loop.py::test_a_call_that_waits_for_a_thread_gets_one_when_those_that_hang_are_left"),
    Break("work is done in the event loop", "runner.py", "_in_store_thread(None, work, patience) if asks_store else _in_worker(work.start, work)", "asyncio.sleep(0, work.start())", "tests/test_event_loop.py::test_no_work_is_done_in_the_thread_of_the_loop"),
    Break("the late answer of a store goes into steps that have gone on", "runner.py", "return None if call.is_left else resume", "return resume", "tests/test_event_loop.py::test_a_store_that_hangs_is_left_and_its_late_answer_goes_nowhere"),
    Break("half of a constraint is kept", "cli/audit/facts.py", "if wanted.stand_in(", "if not wanted.names or wanted.stand_in(", "tests/cli/audit/test_audit.py::test_whether_a_text_has_a_fact"),
    Break("a share in JSON is a text", "cli/transcripts/inspect.py", "return round(part / whole, 4) if whole else 0.0", "return screen.percentage(part, whole)  # type: ignore[return-value]", "tests/cli/transcripts/test_inspect.py::test_data"),
    Break("a list in another dialect is half understood", "dialects/gateway.py", "elif named is None and self.known_dialect:", "elif False:", "tests/dialects/test_another_dialect.py::test_a_session_that_was_decided_reads_another_dialect_whole_or_refuses_it"),
    Break("a call of Ollama's is one without a result", "dialects/chat.py", "if any(map(_is_ollama_call, ", "if False and any(map(_is_ollama_call, ", "tests/dialects/test_another_dialect.py::test_a_session_that_was_decided_reads_another_dialect_whole_or_refuses_it"),
    Break("a setting is a bare TypeError", "manager.py", "    @named_arguments\n", "", "tests/test_bad_input.py::test_an_argument_that_is_a_setting_says_where_it_goes"),
    Break("a term of ours stands in a warning", "core/engine/events.py", "return _FALLBACKS.get(self.fallback, self.fallback)", "return self.fallback", "tests/telemetry/test_emitters.py::test_a_pipe_gets_plain_lines"),
    Break("a mark for the direction of writing is shown", "core/control_characters.py", "\\u2066-\\u2069", "", "tests/telemetry/test_emitters.py::test_what_steers_a_terminal_is_the_same_in_a_log_and_in_json"),
    Break("help has formulas", "cli/command_help.py", "return _RANGE.sub(_in_words, ", "return str(", "tests/cli/test_main.py::test_help_says_in_words_what_a_number_may_be"),
    Break("a disc of the chart hides another", "cli/simulation/charts.py", "drawn.append(next(free, place))", "drawn.append(place)", "tests/cli/simulation/test_simulate.py::test_no_disc_of_the_chart_covers_another"),
    Break("events of version 5 are taken for those of version 4", "stores/schema.py", "with _former_events(connection) if found < 5 else nullcontext():", "with _former_events(connection):", "tests/stores/test_schema.py::test_a_database_of_version_5_goes_on_with_its_events_and_takes_imports"),
    Break("an import is a model call", "core/engine/engine.py", "self.persistence.save_imported(session, tokens)", "self.persistence.save(session, tokens)", "tests/cli/transcripts/test_logs.py::test_an_import_is_no_model_call_and_costs_nothing"),
    Break("a prompt is shown before its new plan is stored", "core/engine/engine.py", "told = None if attempt or session.has_unsaved_plan else on_known", "told = on_known", "tests/test_event_loop.py::test_a_prompt_is_there_before_it_is_stored_and_a_new_plan_only_once_it_is"),
    Break("a request keeps two lengths", "proxy/headers.py", "return _with_one_length(sent)", "return sent", "tests/proxying/test_attackers.py::test_no_request_hides_in_the_body_of_another"),
    Break("an answer is passed on before its prompt is stored", "proxy/app.py", "            await _until_stored(outcome)\n", "", "tests/proxying/test_latency.py::test_the_store_writes_while_the_provider_works_and_the_answer_waits_for_both"),
    Break("a model is waited for in a worker", "core/engine/summarization.py", "        if not self._is_foreign:\n            return call", "        return call", "tests/test_event_loop.py::test_slow_summaries_stall_neither_other_sessions_nor_the_process"),
    Break("a cancelled call lets go of steps that a worker still has", "runner.py", "work.is_cancelled = True\n        await _finished(advanced)", "work.is_cancelled = True", "tests/test_event_loop.py::test_a_claim_that_is_granted_in_the_moment_of_a_cancel_is_given_back"),
    Break("a killed process keeps its claim", "stores/sql_shared.py", "if found and has_ended(found):", "if False:", "tests/stores/test_crowd.py::test_nobody_waits_for_a_writer_that_was_killed"),
    Break("an interrupted call leaves half a session", "core/engine/engine.py", "            session.go_back_to(before or Session(session.session_id))\n", "", "tests/faults/test_waiting.py::test_a_call_that_is_interrupted_behind_the_log_leaves_what_the_store_has"),
    Break("a turn that lost every race is not kept", "core/engine/engine.py", "        session.keep_list(incoming)\n", "", "tests/faults/test_waiting.py::test_a_turn_that_lost_every_race_says_so_and_is_stored_later"),
    Break("a cancelled call keeps its claim", "core/engine/claims.py", "            self._release_at_once(session, key)\n            raise\n        yield", "            raise\n        yield", "tests/test_event_loop.py::test_a_call_that_is_made_again_after_a_cancel_does_not_wait_for_the_first_one"),
    Break("a moved mark for a cache makes a new message", "dialects/translation/looks.py", "    plain = without_cache_marks(item)\n    content = fields_of(plain)", "    plain = item\n    content = fields_of(plain)", "tests/test_matching.py::test_a_walk_of_an_untidy_caller"),
    Break("marks for a cache pile up", "dialects/translation/translator.py", "items = tuple(map(without_cache_marks, block.items))", "items = block.items", "tests/dialects/test_cache_marks.py"),
    Break("what was filled is another message", "dialects/translation/looks.py", "look_of([_as_filled(_without_marks_or_list(without_added(_as_dict(item))))])", "look_of([_without_marks_or_list(without_added(_as_dict(item)))])", "tests/dialects/test_translation.py::test_a_turn_that_says_nothing_is_known_beside_neighbours_that_are_apart"),
    Break("what is filled goes out empty", "dialects/translation/translator.py", "if not self._has_seen_meta and not self._has_silence:", "if not self._has_seen_meta:", "tests/test_matching.py::test_what_says_nothing_goes_out_filled_whichever_list_comes"),
    Break("a summary that comes back is the user's words where users repeat themselves", "dialects/translation/translator.py", "if (ours, len(places), start) > most:", "if (0, len(places), start) > most:", "tests/dialects/test_translation.py::test_a_prompt_from_before_an_edit_is_known_by_our_summary_however_often_the_rest_was_said"),
    Break("a result without an id keeps the number that it had", "dialects/translation/translator.py", "return self._untorn(items, found, self._current)", "return found", "tests/dialects/test_translation.py::test_results_without_ids_belong_to_their_calls_whatever_the_list_was_before"),
    Break("the result of another try is the old one, cleared", "core/log/forms.py", "has_ids = not (may_be_other or any(map(_NUMBERED.search, ids)))", "has_ids = not any(map(_NUMBERED.search, ids))", "tests/core/log/test_log_alone.py::test_a_short_text_that_may_be_another_result_is_one_unless_it_says_that_it_was_cleared"),
    Break("what was left first is met again first", "core/log/left_entries.py", "insort(self._saying(entry), entry, key=lambda one: places[one.id])", "self._saying(entry).append(entry)", "tests/core/log/test_log_alone.py::test_of_equal_messages_that_were_left_the_oldest_is_met_again_whenever_each_was_left"),
    Break("new words are taken for a part of an item", "dialects/translation/translator.py", "if (ours, len(places), start) > most:", "if (ours, len(places)) > most[:2]:", "tests/dialects/test_translation.py::test_what_is_new_may_equal_a_part_of_an_item_that_was_sent"),
    Break("neighbours are together as they are elsewhere", "dialects/translation/translator.py", "            if sought.has_next(block.digests):\n", "            if False:\n", "tests/dialects/test_translation.py::test_neighbours_that_are_together_here_and_apart_there_are_known"),
    # -- the file of a store
    Break("a file that is in use is opened and closed once more", "stores/database.py", "os.O_CREAT | os.O_EXCL | os.O_RDWR", "os.O_CREAT | os.O_RDWR", "tests/stores/test_database.py::test_opening_a_file_once_more_takes_no_lock_from_those_who_have_it_open"),
    Break("a forked process waits for a thread that it does not have", "session_registry.py", "        registry.reset_after_fork()", "        pass", "tests/test_supported_range.py::test_a_process_forks_while_a_call_is_under_way"),
    # -- memory
    Break("a thread that waits for events holds the last session", "telemetry/worker.py", "            del batch  # its events", "            pass  # its events", "tests/telemetry/test_exporters.py::test_a_worker_that_waits_holds_no_event_that_was_sent"),
    Break("a report that was read holds its session", "core/engine/emitter.py", "            self._compute = None", "            pass", "tests/endurance/test_memory.py"),
    # -- refused prompts
    Break("a rate is taken for an overflow", "adapters/support/overflow.py", "if status in _OTHER_STATUSES or _OTHER_LIMITS.search(text):", "if False:", "tests/adapters/test_overflow.py"),
    Break("a larger limit than the known window is learned", "model_engines/overflows.py", "_LEAST_LIMIT <= limit < known", "_LEAST_LIMIT <= limit", "tests/test_overflows.py::test_the_limit_becomes_the_window_and_the_next_prompt_fits_it tests/test_overflows.py::test_an_event_never_names_a_larger_window"),
    Break("usage of a whole run is believed", "core/plan/budget.py", "if reported_tokens > _MAX_SLOPE * estimated_tokens and unseen > self.ceiling_tokens // 2:", "if False:", "tests/core/plan/test_budget.py"),
    Break("the proxy passes a refusal on", "proxy/overflow.py", "return whole, read_overflow(read.decode(\"utf-8\", \"replace\"), response.status_code)", "return whole, None", "tests/proxying/test_overflow.py::test_a_second_refusal_is_passed_on"),
    # -- the proxy
    Break("a signature of the agent's stays on a request that the proxy signs", "proxy/aws_signing.py", "if name.lower() not in _SIGNATURE_HEADERS]", "]", "tests/proxying/test_cloud_wires.py::test_no_trace_of_the_agents_signature_is_left"),
    Break("a conversation that has grown is read from its beginning", "proxy/bodies/reading.py", "        return UnreadBody(text, best, most)", "        return UnreadBody(text)", "tests/proxying/test_body_reading.py::test_what_was_read_before_is_not_read_again"),
    Break("conversations that begin alike put one another out", "proxy/bodies/reading.py", "        bodies[session_id] = body\n", "        bodies[\"\"] = body\n", "tests/proxying/test_body_reading.py::test_conversations_that_begin_alike_do_not_put_one_another_out"),
    Break("the proxy keeps the text of a session that has left memory", "proxy/app.py", "                self._compactor.forget(session_id)\n", "", "tests/proxying/test_secrets.py::test_a_key_is_kept_no_longer_than_its_request"),
    Break("the proxy keeps API keys", "proxy/compaction.py", "return self.endpoint.dialect, hashed_key(self.key), self.session_name", "return self.endpoint.dialect, self.key, self.session_name", "tests/proxying/test_secrets.py::test_a_key_is_kept_no_longer_than_its_request"),
    Break("a response that is closed loses its end", "proxy/joined_writes.py", "        self._send()\n        self._transport.close()", "        self._transport.close()", "tests/proxying/test_joined_writes.py"),
    Break("a packed body fills the memory", "proxy/bodies/encodings.py", "plain = unpacker.decompress(body, max_bytes + 1)", "plain = unpacker.decompress(body)", "tests/proxying/test_bytes.py::test_what_cannot_be_unpacked_is_passed_on_as_it_is"),
    Break("a compacted body is said to be packed", "proxy/headers.py", 'not in (b"transfer-encoding", b"content-encoding")]', 'not in (b"transfer-encoding",)]', "tests/proxying/test_bytes.py::test_a_packed_request_that_is_compacted_is_sent_plain"),
    Break("a key pushes the sessions of others out of memory", "proxy/caller_keys.py", "for _ in range(len(own) - self._most)]", "for _ in range(0)]", "tests/proxying/test_many_at_once.py::test_the_session_used_longest_ago_leaves_first"),
    Break("what a summary stands for is read again for each", "core/facts/extraction.py", "common = _common_start(span, before)", "common = 0", "tests/endurance/test_turns.py::test_a_compaction_and_its_report_do_little_more_in_a_session_five_times_as_long"),
    Break("an edited past keeps its groups", "core/messages/structure.py", "if list_start(messages, known) != self._messages:", "if False:", "tests/core/messages/test_structure.py"),
    Break("all that was ever said is weighed whenever the size of a prompt is asked", "core/plan/strategy.py", "        messages = sum(map(self.weight, self.shown))", "        messages = sum(map(self.weight, range(len(self.messages))))", "tests/core/planning/test_coordinator.py::test_what_a_summary_stands_for_is_weighed_with_the_summary_alone"),
    # -- facts and the summary
    Break("a task that is too long for its share of a summary is lost", "summarizers/extractive.py", "            if fact.kind in REQUIRED or (fact.kind is FactKind.ARTIFACT and fact in artifacts)", "            if fact.kind is FactKind.CONSTRAINT or fact in artifacts or (fact.kind in REQUIRED and _fitting_ask(fact, request) is fact)", "tests/benchmarks/test_regression.py::test_no_round_loses_the_task_or_a_constraint"),
    Break("a tool result gives orders for the rest of the session", "constraints/finder.py", "if message.role in _ROLES and message.tool_call_id is None:", "if True:", "tests/security/test_injection_ways.py::test_no_way_but_a_persons_words_makes_a_constraint"),
    Break("a message is read again in every round", "core/messages/message.py", "if read not in readings:", "if True:", "tests/core/facts/test_reading.py::test_each_message_is_read_once_however_many_rounds_there_are"),
    Break("the page of one session reads the list of all", "viewer/source.py", "found = self.store.session_info(session_id)", "found = next((info for info in self.sessions() if info.session_id == session_id), None)", "tests/viewer/pages/test_pages.py::test_the_page_of_one_session_does_not_read_the_list_of_all"),
    Break("a report looks at all that was ever summarised", "core/plan/plan.py", "newly_covered = mine.covered - its.covered", "newly_covered = mine.covered", "tests/endurance/test_turns.py::test_a_compaction_and_its_report_do_little_more_in_a_session_five_times_as_long"),
    Break("every report reads the whole log again", "core/audit/diff.py", "for message in self._log[self._read : entries]:", "for message in self._log[:entries]:", "tests/core/audit/test_report.py::test_each_entry_is_read_once_for_all_reports"),
    Break("all of a very long text is read", "core/facts/text.py", "if len(text) <= 2 * end_chars:", "if True:", "tests/core/facts/test_reading.py::test_of_a_message_of_megabytes_only_the_ends_are_read"),
    Break("the summary invents a task", "core/facts/extraction.py", "yield Fact(FactKind.TASK, task.text.strip(),", 'yield Fact(FactKind.TASK, "Plan 4711",', "tests/core/facts/test_extraction.py tests/core/facts/test_ledger.py"),
    Break("a page's standing instruction stays in a model's summary", "core/summary/verification.py", "if label or (_ORDER.search(text) and not is_own):", "if _ORDER.search(text) and not is_own:", "tests/security/test_injection_ways.py::test_an_order_by_its_label_does_not_stay_in_a_models_summary"),
    Break("a number before an entry hides an invented request", "core/summary/verification.py", "if not _ENTRY_NUMBER.fullmatch(text, start, end):", "if True:", "tests/core/summary/test_verification.py::test_a_request_is_checked_however_its_list_is_written"),
    Break("a bracket before it hides an invented request", "core/summary/verification.py", "if not words.stems:", "if False:", "tests/core/summary/test_verification.py::test_a_request_is_checked_however_its_list_is_written"),
    Break("deleted to-dos come back as open", "core/facts/open_items.py", '"deleted"', '"_"', "tests/core/summary/test_verification.py"),
    Break("every form of a summary by code is the usual one", "summarizers/extractive.py", "FORMS.get(request.form, ", "(", "tests/summarizers/test_forms.py"),
    Break("a result can make parts of an entry of its own", "summarizers/entries.py", '.replace(SEPARATOR, " : ")', "", "tests/summarizers/test_forms.py"),
    Break("the old summary stays beside the new one", "core/plan/plan.py", "if id(r) in deciding", "", "tests/core/plan/test_plan.py::test_adding_leaves_no_record_that_decides_nothing"),
    Break("a failing summariser fails the call", "core/engine/summarization.py", 'if self.on_failure == "raise":', "if True:", "tests/test_manager.py"),
    Break("a later price list rewrites history", "core/audit/cost.py", "prices = detail.prices or known.later(detail.model, input_tokens)", "prices = known.later(detail.model, input_tokens)", "tests/core/audit/test_cost.py"),
    Break("a model reads the cache of another", "core/audit/cost.py", "before[detail.model] = call, detail", "before.update(dict.fromkeys((detail.model, *before), (call, detail)))", "tests/core/audit/test_cost.py"),
    Break("stubs count as left out", "core/engine/call_record.py", "evicted=actions[CompactionAction.SUMMARIZE] + actions[CompactionAction.DROP],", "evicted=actions.total() - actions[CompactionAction.INCLUDE],", "tests/viewer/pages/test_truth.py"),
    Break("a failed summary is not recorded", "core/engine/summarization.py", "session.note_failure(self._failure(error, keeps=keeps))", "self._failure(error, keeps=keeps)", "tests/viewer/pages/test_truth.py"),
    Break("names count for nothing in a summary", "core/facts/selection.py", "gain = strings * weights.strings + words", "gain = words", "tests/benchmarks/test_fidelity_sample.py::test_the_sample_reaches_its_floors_and_what_others_do_does_not"),
    Break("the messages of the least value stay", "strategies/span.py", "unit.indices), reverse=True)", "unit.indices))", "tests/benchmarks/test_fidelity_sample.py::test_the_sample_reaches_its_floors_and_what_others_do_does_not"),
    # -- the plan
    Break("protected messages are not pinned", "core/plan/layers.py", 'or bool(marks.get(self.protected_flag) or marks.get("protected"))', "", "tests/core/plan/test_layers.py"),
    Break("the newest question may go", "core/plan/layers.py", "recent.add(newest_ask)", "pass", "tests/core/plan/test_layers.py tests/core/planning/test_coordinator.py"),
    Break("nothing is cut at the floor", "core/planning/squeeze.py", "start = context = _with_bare_stubs(context)", "return context", "tests/core/planning/test_coordinator.py"),
    Break("the ceiling is not checked", "core/planning/coordinator.py", "if after > goal.ceiling_tokens:", "if False:", "tests/core/planning/test_coordinator.py::test_any_target_is_met_or_the_error_has_the_parts"),
    Break("the trigger is a share of the budget", "core/plan/budget.py", "round(self.trigger_pct * self.input_tokens)", "round(self.trigger_pct * self.ceiling_tokens)", "tests/core/plan/test_budget.py"),
    Break("a prompt may be larger than the largest input", "core/plan/budget.py", "min(self.max_context_tokens - self.output_reserve, self.input_tokens)", "(self.max_context_tokens - self.output_reserve)", "tests/core/plan/test_budget.py"),
    Break("every model has the configured window", "model_engines/engines.py", "return self._make(self._config_for(model))", "return self.configured", "tests/test_several_models.py"),
    Break("an answer needs no room", "model_engines/engines.py", "max(self.window.output_reserve, self._reserve(output_tokens))", "self.window.output_reserve", "tests/test_manager.py"),
    Break("a set window has no room for the answer", "model_engines/engines.py", "return max(0, output_tokens - max(0, self.known_tokens - self.window_tokens))", "return output_tokens", "tests/test_several_models.py"),
    Break("A stream of a wrapped model is compacted twice", "adapters/autogen/client.py", "    if isinstance(messages, PreparedMessages):", "    if not messages:", "tests/adapters/test_autogen.py::test_the_scenario"),
    Break("The mark of a protected message leaves with LlamaIndex", "adapters/llama_index/llm.py", "PreparedMessages(map(without_mark, items))", "PreparedMessages(items)", "tests/adapters/test_llama_index.py::test_a_failure_never_stops_the_run"),
    Break("The calls of smolagents are read as text", "adapters/smolagents/messages.py", "number += 2 if calling else 1", "number += 1", "tests/adapters/test_smolagents.py::test_every_kind_of_message_is_read_and_made_again"),
    Break("A session that cannot be found out aborts a run of Agent Framework", "adapters/agent_framework/provider.py", "            if self._strict:\n                raise\n            report_failure", "            if error:\n                raise\n            report_failure", "tests/adapters/test_agent_framework.py"),
    Break("LangChain's answer needs no room", "adapters/langchain/middleware.py", "output_tokens=called.output_tokens,", "output_tokens=0,", "tests/adapters/test_room_for_the_answer.py"),
    Break("a window of a million is filled", "assembly/budget.py", "policy.trigger_tokens is None and window > LARGE_WINDOW_TOKENS", "False", "tests/test_window_notices.py"),
    Break("GPT-5 is compacted by its window", "tokens/windows.py", '{_NOT_CHAT}", 400_000, 272_000)', '{_NOT_CHAT}", 400_000)', "tests/tokens/test_windows.py"),
    Break("true is 1", "config.py", "if isinstance(value, bool) and is_number(", "if False and is_number(", "tests/test_config.py"),
    Break("dropped messages are not accounted for", "core/plan/renderer.py", "hidden.append(message.id)", "pass", "tests/core/plan/test_renderer.py"),
    Break("a failing strategy fails the call", "core/planning/coordinator.py", "failures.append(StrategyFailure(strategy.name, error))", "raise", "tests/strategies/test_strategies.py"),
    # -- regret
    Break("what is still in the prompt counts as missed", "core/audit/regret_finder.py", "if self._is_shown(lines, earlier):", "if False:", "tests/core/audit/test_regret_finder.py"),
    Break("a file that was edited counts as missed", "core/audit/regret_finder.py", "not self._is_outdated(other) and ", "", "tests/core/audit/test_regret_finder.py"),
    Break("a regret is counted twice", "core/audit/regret_finder.py", " or message_id in self._counted", "", "tests/core/audit/test_regret_finder.py"),
    Break("what was missed is kept for ever", "core/audit/regret_finder.py", ">= _KEPT_COMPACTIONS", ">= 10**9", "tests/core/audit/test_regret_finder.py"),
    Break("what was missed is not kept", "core/plan/layers.py", "older = tools if rules.missed else ()", "older = ()", "tests/core/engine/test_regret.py"),
    Break("what was missed takes any room", "core/engine/compaction.py", "if tokens <= room_tokens:", "if True:", "tests/core/engine/test_regret.py"),
    Break("regrets are forgotten with the next plan", "core/session/session.py", "Regrets(self.regrets, len(self.log.entries))", "Regrets((), len(self.log.entries))", "tests/core/engine/test_regret.py"),
    Break("a call that is made again tells of its regrets again", "core/engine/engine.py", " if regret not in emitted]", "]", "tests/core/engine/test_regret.py"),
    Break("missed things are kept though that is off", "assembly/engines.py", "config.regret.max_share if config.regret.keep_longer else 0.0", "config.regret.max_share", "tests/core/engine/test_regret.py"),
    # -- the engine
    Break("a repair costs nothing", "core/planning/coordinator.py", "repairs={} if structure.is_legal else _repairs(messages, count_message),", "", "tests/test_manager.py"),
    Break("what users asked to hold leaves like all else", "core/planning/last_resort.py", "older = deque(sorted(groups, key=lambda indices: not holding.isdisjoint(indices)))", "older = deque(groups)", "tests/test_insufficient_budget.py::test_what_users_asked_to_hold_is_left_out_last"),
    Break("nothing leaves as a last resort", "core/planning/coordinator.py", "context = with_last_resort(context)", "pass", "tests/test_insufficient_budget.py::test_what_is_left_out_without_a_summary_is_told_and_is_taken_in_by_the_next_summary"),
    Break("what users asked to hold has no room in a small summary", "strategies/summarize.py", "held = context.constraint_tokens(record) if room < most else 0", "held = 0", "tests/test_insufficient_budget.py::test_a_summary_has_room_for_what_users_asked_to_hold_before_anything_else"),
    Break("room that is left stays empty", "core/planning/shortening.py", "filled = self._filled(list(zip(candidates, records, strict=True)), spare)", "filled = records", "tests/core/planning/test_shortening.py::test_one_long_line_is_cut_inside_and_uses_the_room_there_is"),
    Break("compact again and again", "core/engine/trigger.py", "if session.is_exhausted and", "if False and", "tests/test_manager.py"),
    Break("a cap takes other parts too", "core/planning/coordinator.py", "return replace(layers, remainder=layers.remainder - tools,", "return replace(layers, remainder=layers.remainder,", "tests/core/engine/test_caps.py"),
    Break("a cap is tried at every call", "core/engine/compaction.py", "session.decline(too_little_freed(goal), goal.part)", "pass", "tests/core/engine/test_caps.py"),
    Break("near duplicates lose what differs", "strategies/deduplicate.py", "kept=found.differing,", "", "tests/strategies/test_near_duplicates.py"),
    Break("near duplicates may be in any order", "strategies/near_duplicates.py", "matched = aligned(old.pieces, later.pieces)", "matched = {n: later.pieces.index(p) for n, p in enumerate(old.pieces) if p in later.pieces}", "tests/strategies/test_near_duplicates.py"),
    Break("a choice of lines is a near duplicate", "strategies/near_duplicates.py", "sum(map(len, stretch)), 1)", "1)", "tests/strategies/test_near_duplicates.py"),
    Break("a summary swallows pointers", "strategies/summarize.py", "rest = [i for i in free if i not in pointers]", "rest = free", "tests/summarizers/test_promises.py"),
    Break("artifacts are forgotten by the next summary", "core/plan/plan.py", "for pointer in (*earlier, *taken_in) for one", "for pointer in taken_in for one", "tests/summarizers/test_promises.py"),
    Break("a compaction need not shrink", "core/engine/compaction.py", "if result.tokens_freed < goal.min_freed_tokens:", "if False:", "tests/test_manager.py"),
    Break("a dry run writes to the live log", "core/session/session.py", "twin.log, twin.prompt = self.log.fork(), self.prompt.copy()", "twin.log, twin.prompt = self.log, self.prompt", "tests/core/session/test_session.py"),
    Break("a conflict is taken for success", "core/engine/persistence.py", "session.mark_outdated()\n            return False\n        except Exception as error:  # noqa: BLE001 - a store is a plug-in\n            self.emitter.error(session, error, fallback=\"kept in memory, to", "return True\n        except Exception as error:  # noqa: BLE001 - a store is a plug-in\n            self.emitter.error(session, error, fallback=\"kept in memory, to", "tests/stores/test_crowd.py::test_eight_processes_lose_nothing_and_double_nothing"),
    Break("a summary by code may come late", "core/engine/prefetch.py", "if self.is_quick or not fits:", "if not fits:", "tests/test_background.py::test_the_same_calls_have_the_same_prompts_however_busy_the_process_is"),
    # -- around the core
    Break("secrets stay", "redaction/spans.py", 'MARK = "<REDACTED>"', 'MARK = "<KEPT>"', "tests/redaction/test_corpus.py::test_only_the_secret_goes"),
    Break("tenants read each other's artifacts", "core/audit/artifacts.py", "metadata.tenant_id == self.tenant_id and", "", "tests/recall/test_rehydration.py::test_what_may_not_be_seen_looks_like_what_is_not_there"),
    Break("sessions read each other's artifacts", "core/audit/artifacts.py", 'self.session_id in ("", metadata.session_id)', "True", "tests/security/test_other_sessions.py::test_a_session_that_has_the_very_same_message_is_still_another_session"),
    Break("an artifact is not asked for as its session's", "recall/rehydration.py", "self.security.within(scope.session_id)", "self.security", "tests/security/test_other_sessions.py::test_a_session_that_has_the_very_same_message_is_still_another_session"),
    Break("the id of an artifact is known without its content", "core/audit/artifacts.py", '{message_id}\\0{content}"', '{message_id}"', "tests/security/test_other_sessions.py::test_an_id_cannot_be_computed_from_what_another_session_knows"),
    Break("a result that an edit replaced is shown again", "recall/rehydration.py", "if scope.text_of(artifact.metadata.message_id) != artifact.content:", "if False:", "tests/security/test_other_sessions.py::test_after_an_edit_of_the_past_a_result_that_is_in_it_no_more_is_not_shown"),
    Break("the archive has what is confidential", "core/engine/persistence.py", "without_bytes(withheld(message, self.default_sensitivity))", "without_bytes(message)", "tests/security/test_sensitivity.py::test_the_archive_has_a_line_in_its_place_and_all_of_the_rest"),
    Break("a summariser gets what is confidential", "core/engine/summarization.py", "view = _changed(session.log.view, closed)", "view = list(session.log.view)", "tests/security/test_sensitivity.py::test_a_summarisers_model_is_not_shown_it"),
    Break("a secret in an event gets through the second time", "redaction/redactor.py", "if clean is text and len(text) <= _SHORT_CHARS:", "if len(text) <= _SHORT_CHARS:", "tests/redaction/test_values.py::test_what_is_known_of_the_texts_of_events_is_bounded_and_holds_no_secret"),
    Break("a YAML block is not read", "redaction/blocks.py", "yield from _named_blocks(data)", "pass", "tests/redaction/test_real_carriers.py"),
    Break("base64 is not decoded", "redaction/spans.py", "*find_encoded(data, _plain_secrets)", "", "tests/redaction/test_real_carriers.py::test_a_secret_in_base64_goes"),
    Break("what stands in the column of a password stays", "redaction/spans.py", ", *find_columns(data, low)", "", "tests/redaction/test_columns.py"),
    Break("a command before a flag does not matter", "redaction/carriers.py", " and _stands_behind(carrier.before, data, place)", "", "tests/redaction/test_commands.py::test_the_same_flag_of_another_command_stays"),
    Break("of a name that comes twice only the last is read", "redaction/nested.py", ", object_pairs_hook=_whole", "", "tests/redaction/test_values.py::test_a_name_that_comes_twice_hides_nothing"),
    Break("JSON steers a terminal", "cli/screen.py", "text = _STEERING.sub", "_STEERING.sub", "tests/cli/sessions/test_export.py::test_json_gives_a_terminal_no_orders"),
    Break("who has no key names the session of one who has", "proxy/sessions.py", "and (key or not _OF_ANOTHER.fullmatch(name))", "", "tests/proxying/test_parts.py::test_who_has_no_key_cannot_name_the_session_of_one_who_has"),
    Break("names are words like all others", "core/search/ranking.py", "scores.append((-named, -score, -seq))", "scores.append((0.0, -score, -seq))", "tests/core/search/test_search.py::test_names_come_first_however_often_their_parts_occur_elsewhere"),
    Break("words are found as they are written only", "core/search/search_terms.py", "stem(word) if word.isascii() and word.isalpha() else word", "word", "tests/core/search/test_search.py::test_a_question_finds"),
    Break("words of questions count", "core/search/search_terms.py", "(stops if word in stop_terms else terms)[word] = None", "terms[word] = None", "tests/core/search/test_search.py"),
    Break("only the worst match is shown", "recall/search.py", "matches[:_MAX_ENTRIES]", "matches[-1:]", "tests/benchmarks/test_tasks.py::test_agents_with_recall_reach_the_end_and_others_do_not"),
    Break("a neighbour is shown to everybody", "recall/search.py", "near = [entry for entry in self._around(match) if self._may_read(entry)]", "near = list(self._around(match))", "tests/recall/test_questions.py"),
    Break("attachments in use are summarised", "core/plan/layers.py", "recent.update(attached)", "pass", "tests/dialects/test_attachments.py::test_an_attachment_in_use_stays"),
    Break("an instruction does not keep what was sent again", "core/messages/attachment_use.py", "used |= {last[attachment.digest]", "_ = {last[attachment.digest]", "tests/core/messages/test_attachments.py::test_an_instruction_keeps_what_was_sent_again_where_it_was_sent_last"),
    Break("an instruction does not keep its document", "core/messages/attachment_use.py", "used.update(_meant(messages, attached, places[source_id], text))", "pass", "tests/core/messages/test_attachments.py::test_what_an_instruction_is_about_is_in_use"),
    Break("a summary swallows attachments without a word", "core/planning/attachment_moves.py", "plan = plan.adding(*_moved(context, taken_in, _NOT_IN_USE))", "pass", "tests/core/planning/test_attachments.py::test_a_summary_names_what_was_too_small_to_be_moved"),
    Break("attachments are stored with every call", "core/engine/persistence.py", "return replace(added, message=without_bytes(added.message))", "return added", "tests/recall/test_attachments.py::test_the_bytes_are_stored_once"),
    Break("packed pages are not counted", "core/messages/pdf_pages.py", "leaves += sum(1 for _ in _PAGE.finditer(unpacked))", "pass", "tests/core/messages/test_pdf_pages.py::test_packed_pages_are_counted_where_no_tree_says_how_many_there_are"),
    Break("recall finds another conversation", "core/log/log.py", "return lambda message: message.line == line or message.id in met_again", "return lambda message: True", "tests/stores/test_reuse.py"),
    Break("recall finds what recall wrote", "recall/search.py", "found = [entry for entry in ranked if not self._is_ours(entry)]", "found = list(ranked)", "tests/recall/test_questions.py"),
    Break("every transcript has the whole history", "core/engine/persistence.py", "for message in entries[session.plan.archived :]]", "for message in entries]", "tests/test_archiving.py"),
    Break("a reminder shows what the caller has cleared", "session_recall.py", "now is not None and now.text == message.text and", "", "tests/recall/test_reminders.py::test_what_the_caller_has_cleared_is_not_shown"),
    Break("a reminder shows what the prompt has", "recall/search.py", " and not terms <= in_prompt]", "]", "tests/recall/test_reminders.py::test_what_the_prompt_has_is_not_shown_twice"),
    Break("what was added is the user's where nothing before it is left", "core/session/tails.py", "return tail.end < len(incoming) and _is_labelled(incoming[tail.start], f\"messages[{tail.start}]\", log)", "return False", "tests/test_matching.py::test_what_was_added_is_not_the_callers_although_the_message_before_it_was_deleted"),
    Break("what was added is the user's behind a deletion", "core/session/tails.py", "return plain(incoming[self.start - 1]) == self.before", "return False", "tests/test_injection.py::test_it_is_known_in_a_prompt_that_has_lost_an_older_message"),
    Break("a repair before the first plan is an edit", "core/session/past_plans.py", "if plan.records and check_chat(log.view):", "if False:", "tests/test_matching.py::test_a_placeholder_for_a_missing_result_comes_back_in_a_call_that_compacts"),
    Break("the last list is forgotten with its prompt", "core/log/log.py", "for sent in sorted((self._raw, output, self._sent_back), key", "for sent in sorted((self._raw, output), key", "tests/core/log/test_log_alone.py::test_the_last_list_is_known_although_the_prompt_is_another_one_by_now"),
    Break("a protected message that comes back in a prompt is not protected", "core/log/log.py", "if may_be_bare and not message.meta else", "if False else", "tests/core/log/test_log_alone.py::test_what_was_left_keeps_its_meta_among_what_is_known"),
    Break("new words are protected since the same ones were", "core/log/log.py", "may_be_bare=n < bare_until", "may_be_bare=True", "tests/core/log/test_log_alone.py::test_words_at_the_end_are_new_although_they_were_left_with_a_meta"),
    Break("a mark that has moved is a new message", "core/log/recognition.py", "known = [unmarked(item) for item in sent.originals]", "known = sent.originals", "tests/core/log/test_log_alone.py::test_marks_that_have_moved_make_no_new_messages"),
    Break("what is new stands before what an older prompt hides", "core/log/list_change.py", "before = line_end if following[n] == end else self._taken_place(start, following[n], gone) or last", "before = self._taken_place(start, following[n], gone) or last", "tests/core/log/test_log_alone.py::test_what_follows_an_earlier_prompt_is_behind_all_that_it_hides"),
    Break("a rewound prompt keeps what it hides behind its end", "core/log/list_change.py", "return {entry.id for entry in behind if entry.id not in shown and entry.id != start}", "return set()", "tests/test_matching.py::test_a_rewind_of_a_prompt_leaves_what_its_summary_hides_behind_that_place"),
    Break("a cleared result is new when its conversation comes back", "core/log/log.py", "if known is None and message.tool_call_id in calls:", "if False:", "tests/test_matching.py::test_results_that_were_cleared_are_the_same_when_the_caller_returns_to_their_conversation"),
    Break("a trimmed list that was edited leaves its summary after a restart", "core/log/alignment.py", "return range(0) if any(fingerprint(known[place]) in new for place in lost) else lost", "return range(0)", "tests/test_matching.py::test_a_trimmed_list_may_go_on_with_more_than_it_has_kept"),
    Break("an edit stands before what is hidden", "core/log/list_change.py", "before = line_end if following[n] == end else self._taken_place(start, following[n], gone) or last", "before = line_end if following[n] == end else last", "tests/core/log/test_log_alone.py::test_an_edit_behind_what_is_hidden_takes_the_place_of_what_it_changes"),
    Break("what was trimmed stays where the list begins before it", "core/log/log.py", "self._trimmed = frozenset(change.trimmed(lost, self._trimmed))", "self._trimmed = (self._trimmed | change.trimmed(lost, ())) - change.kept", "tests/test_matching.py::test_a_list_that_begins_before_what_was_trimmed_has_lost_that"),
    Break("what stands behind the trimmed stands before it", "core/log/list_change.py", "return next((message_id for message_id in between if message_id in gone), between[-1] if between else \"\")", "return between[0] if between else \"\"", "tests/test_matching.py::test_what_a_trimmed_list_begins_with_stands_behind_what_was_trimmed"),
    Break("what was left is met in its old form alone", "core/log/forms.py", "said = _without_marks(item)", "said = dict(item) if isinstance(item, dict) else item", "tests/core/log/test_log_alone.py::test_an_entry_that_was_left_is_met_again_in_another_form"),
    Break("what was added is the user's after a restart", "core/session/session.py", "if tail is None and self._tails.has_others:", "if False:", "tests/recall/test_reminders.py::test_it_is_no_message_of_the_users_after_a_restart"),
    Break("what is in the prompt comes first", "recall/search.py", "found.sort(key=lambda entry: self.is_shown(entry.message.id))", "pass", "tests/recall/test_questions.py"),
    Break("confidential content goes to a model", "recall/semantic.py", "for e in entries if self._is_open(e.message)", "for e in entries", "tests/recall/test_semantic.py"),
    Break("words in a summary are denied", "core/audit/sent_calls.py", "sums[place] + missing * open_calls + summary", "sums[place] + missing * open_calls", "tests/recall/test_why_truth.py::test_every_way_into_a_prompt_is_found"),
    Break("injected words are denied", "core/audit/why.py", "self._add_call(call, history.added.get(call.number, ()), ", "self._add_call(call, (), ", "tests/recall/test_why_truth.py::test_every_way_into_a_prompt_is_found"),
    Break("a branch that was left is searched", "core/audit/why.py", "self._table.view(self._branches[last.branch], last.last_seq)", "self._table.view(self._branches[0], last.last_seq)", "tests/recall/test_why_truth.py::test_a_branch_that_was_left_is_said_to_be"),
    Break("an event comes back without what its columns say", "stores/sql_events.py", "text=restored(row.body, trace_id, session_id, row.span_id, row.started_at, row.ended_at)", "text=row.body", "tests/stores/test_events.py::test_events_of_a_former_version_are_brought_along_in_postgresql"),
    Break("one changed bit of a packed text is not noticed", "stores/packing.py", " and stored[1 : 1 + _CHECK_BYTES] == _checksum(data)", "", "tests/stores/test_packing.py::test_one_bit_that_changed_is_noticed"),
    Break("entries of a former version are not found", "stores/schema.py", 'connection.execute(insert(unindexed).from_select(["tenant_id", "session_id"], known))', "pass", "tests/stores/test_search.py::test_a_database_of_the_former_version_goes_on_and_is_searched"),
    Break("a note of ours is sent to the provider", "dialects/translation/translator.py", "outgoing = [without_meta(item) for item in items]", "outgoing = list(items)", "tests/dialects/test_properties.py::test_below_the_trigger_the_callers_own_objects_come_back"),
    Break("clearing forgets how a call went", "strategies/clear.py", "*outcome_lines(text, self.keep_lines)", "", "tests/strategies/test_strategies.py::test_a_cleared_result_keeps_the_lines_that_say_how_it_went"),
    # -- the recall tool of the proxy
    Break("the agent sees a call of the proxy's tool", "proxy/recall/answer.py", "return self._hides and name == RECALL_NAME", "return False", "tests/proxying/test_recall.py::test_a_recall_beside_other_calls_is_put_back"),
    Break("what the agent was not shown is lost", "proxy/recall/exchanges.py", "return _RESTORE[dialect](items, found) if found else items", "return items", "tests/proxying/test_recall.py::test_a_recall_beside_other_calls_is_put_back"),
    Break("a token of the proxy can be guessed", "proxy/settings.py", "len(self.token) < _LEAST_TOKEN_CHARS", "not self.token", "tests/proxying/test_secrets.py::test_a_token_that_can_be_guessed_is_refused"),
    Break("a file is taken for another one that is imported", "cli/transcripts/logs.py", "or _is_of(one, name, manager)", "or True", "tests/cli/transcripts/test_logs.py::test_files_are_imported_by_their_names_and_never_taken_for_one_another"),
    Break("a model may recall for ever", "proxy/recall/rounds.py", "may_recall = len(self._results) <= MOST_ROUNDS", "may_recall = True", "tests/proxying/test_recall.py::test_a_model_that_only_recalls_is_stopped"),
    Break("the tool is offered before anything was compacted", "proxy/compaction.py", "has_begun = bool(plan) or self._recalling.has(session_id)", "has_begun = True", "tests/proxying/test_recall.py::test_the_tool_is_offered_from_the_first_compaction_on"),
    # -- telemetry
    Break("a span is told of again in every round", "core/engine/emitter.py", "_told_anew(session, before)", "session.structure.places", "tests/telemetry/test_seed_events.py"),
    Break("a message is counted again when it is changed again", "core/engine/events.py", 'data["message_count"] - data.get("changed_again", 0)', 'data["message_count"]', "tests/telemetry/test_metrics_add_up.py::test_the_sessions_reach_what_they_are_about"),
    Break("what was cleared first is not freed by a summary", "core/audit/freed.py", "message_tokens(message_id) if was is None else _stub_tokens(was)", "_stub_tokens(now)", "tests/core/audit/test_freed.py"),
    Break("the usage is that of before the compaction", "core/engine/engine.py", "self.emitter.prompt_ready(session, budget, self.trigger.used_tokens(session, budget))", "self.emitter.prompt_ready(session, budget, session.plan.tokens_before or 1)", "tests/telemetry/test_seed_events.py"),
    Break("a budget that cannot be met is not decided", "core/engine/compaction.py", "self._decide(session, TriggerDecision(True, reason), **asked, **kept)", "pass", "tests/telemetry/test_seed_events.py"),
    Break("a span is sent to Ariadne before it has ended", "telemetry/ariadne.py", 'if "ended_at" in span or self._takes_updates:', "if True:", "tests/telemetry/test_ariadne.py"),
    Break("a failed summary does not mark its call", "telemetry/otlp_spans.py", "if event.failure:  # of a part", "if False:  # of a part", "tests/telemetry/test_otlp.py"),
    Break("an exporter does not wait for the price", "telemetry/worker.py", "self.event.settle()", "pass", "tests/test_pricing.py"),
    Break("a command that plans always compacts", "core/engine/engine.py", "if now or target_tokens is not None or focus:", "if True:", "tests/cli/transcripts/test_plan.py"),
    Break("a prefetched summary is used in spite of a focus", "core/engine/compaction.py", "is_usable = not note and not goal.focus and", "is_usable = not note and", "tests/test_focus.py"),
    Break("lines about the focus are not raised", "summarizers/extractive.py", "factors = piece_factors(request.focus, selection.pieces, factors)", "pass", "tests/test_focus.py"),
    Break("constraints make a summary longer than its limit", "core/planning/constraint_guard.py", "needed = min(needed, self.max_summary_tokens)", "pass", "tests/summarizers/test_max_tokens.py"),
    Break("a lost cache costs nothing in a replay", "measuring/replay.py", "same = shared_messages(before, sent.messages)", "same = len(before)", "tests/measuring/test_replay.py::test_a_changed_beginning_is_written_again"),
    Break("a simulation scores what was said, not what is kept", "measuring/simulation.py", "kept = text_of(_without_pinned(replayed.prompts[point.end], history))", "kept = text_of(history.messages[: point.end])", "tests/measuring/test_simulation.py::test_a_broken_strategy_lowers_the_figures"),
    Break("a policy that overflows is recommended", "measuring/recommendation.py", "if result.fits and result.policy != NONE]", "if result.policy != NONE]", "tests/measuring/test_simulation.py::test_sessions_that_fit_need_no_compaction"),
    Break("a table that is too wide is drawn all the same", "cli/screen.py", "if right[-1] or room < max(longest_word, _MIN_LAST_COLUMNS):", "if False:", "tests/cli/test_tables.py"),
    # -- logs of other agents
    Break("results of calls made at once are lost in a log", "transcripts/agents/claude_code.py", "or any(one in calls for one in answered_ids(line.message))", "", "tests/agent_logs/test_reading.py::test_calls_at_once_are_one_message_although_their_results_are_on_side_branches"),
    Break("a branch that was wound back is read", "transcripts/agents/claude_code.py", 'if line.fields["uuid"] in on_path or _belongs(line, answers, calls)]', "]", "tests/agent_logs/test_reading.py::test_a_branch_that_was_wound_back_is_not_read"),
    Break("lines of a log that are not understood are not counted", "transcripts/builder.py", "self._unknown[kind] = replace", "unknown = replace", "tests/agent_logs/test_reading.py::test_what_is_not_understood_is_counted_with_its_first_place"),
    Break("an audit shows secrets", "cli/audit/audit.py", "redact=redactor.text", "redact=str", "tests/cli/audit/test_audit.py::test_no_secret_leaves_in_a_report"),
    Break("an audit blames a compaction for reading a changed file", "cli/audit/repeats.py", "and key not in changed and", "and", "tests/cli/audit/test_audit.py::test_a_file_that_was_changed_since_is_read_for_its_new_content"),
    Break("a line that was left is not known after a restart", "core/engine/engine.py", "session.learn_past(plans, (yield from self.persistence.lines(session)))", "session.learn_past(plans, [])", "tests/test_matching.py::test_a_prompt_from_before_an_edit_brings_its_line_and_its_plan_back"),
    Break("a list that begins as it was sent loses its marks", "dialects/translation/translator.py", "if at < first_mark or is_same_but_added(marked[n], items[at])", "if is_same_but_added(marked[n], items[at])", "tests/test_matching.py::test_a_list_that_begins_as_it_was_sent_and_goes_on_with_a_mark_is_known_after_a_restart"),
    Break("neighbours are joined in a prompt and apart in the callers own list", "dialects/translation/translator.py", "blocks = self._joined(summary_place) if is_own and joins else None", "blocks = None", "tests/dialects/test_translation.py::test_neighbours_are_joined_alike_in_a_callers_own_list_and_in_a_prompt_that_comes_back"),
    Break("an item with what we added is another one", "dialects/translation/looks.py", "return is_same(known, item) or is_same(without_added(known), without_added(item))", "return is_same(known, item)", "tests/test_injection.py::test_what_comes_back_with_it_to_another_process_is_shown_as_its_caller_has_it"),
    Break("what was added is in a list that does not have it", "dialects/translation/translator.py", "return *without_added_entries(known.entries), *self._added_in(there[-1])", "return known.entries", "tests/test_injection.py"),
    Break("a prompt that comes back alone has something new", "core/session/session.py", "return not self._has_answered", "return False", "tests/test_injection.py::test_a_prompt_that_comes_back_alone_after_a_restart_has_nothing_new"),
    Break("what was injected in an older prompt is logged", "core/session/session.py", "return self.log.get(last.id) is not None and last.role in (\"user\", \"tool\")", "return False", "tests/test_injection.py::test_an_older_prompt_is_known_by_its_label_after_a_restart_whatever_was_edited"),
    Break("an injection takes a protection away", "dialects/translation/translator.py", "last = next((block for block in newest if without_added_entries(block.entries) == said), last)", "pass", "tests/test_injection.py::test_a_protected_message_before_what_was_injected_comes_back_as_it_was"),
    Break("a message that is put before the last one changes that", "core/log/alignment.py", "if in_place and not _stands_further_behind(known, incoming, is_hidden):", "if in_place:", "tests/core/log/test_alignment.py::test_words_that_differ_in_a_row_or_are_of_somebody_else_are_new"),
    Break("a prompt that goes on as the caller's own list has an edit in it", "core/log/recognition.py", "alignment = align(known, said, lambda item: self._is_hidden(item, sent))", "alignment = align(known, said)", "tests/core/log/test_log_alone.py::test_a_prompt_that_goes_on_as_the_callers_own_list_before_its_last_message_has_nothing_new_there"),
    Break("an id that is used again says which call it is", "core/log/alignment.py", "return [place for place, identity in identities if identity is None or used[identity] > 1]", "return [place for place, identity in identities if identity is None]", "tests/core/log/test_alignment.py::test_an_id_that_is_used_again_and_again_does_not_say_that_an_item_was_changed"),
    Break("an empty text in an object of Gemini's SDK goes out", "dialects/gemini.py", "if any(map(_has_silent_part, block.items)):", "if False:", "tests/dialects/test_sdk_objects.py::test_an_empty_content_goes_out_filled_once_there_is_a_plan_and_is_known_again"),
    Break("what is shown again behind an injected text is a copy", "core/session/session.py", "return match and replace(match, added=range(tail.start, tail.end))", "return match and replace(match, added=range(tail.start, tail.end), owners=list(match.owners))", "tests/core/session/test_session_calls.py::test_what_is_shown_again_in_this_call_goes_out_as_the_callers_own_object"),
    Break("a bare stub is counted with what stood before it", "core/planning/squeeze.py", "return replace(bare, tokens_after=context.count_message(render_cleared(message, bare)))", "return replace(context.weigh(bare), tokens_before=record.tokens_before)", "tests/core/planning/test_coordinator.py::test_a_stub_that_keeps_nothing_any_more_is_counted_as_it_is_written"),
    Break("text alone is in another dialect after a restart", "manager.py", "if before in DIALECTS:", "if False:", "tests/dialects/test_detection.py::test_text_alone_is_in_the_dialect_that_the_session_was_in_before_a_restart"),
    Break("a session keeps a dialect that a list could not be read in", "dialects/gateway.py", "for one in fields(self):", "for one in ():", "tests/test_bad_input.py::test_a_list_that_cannot_be_read_decides_no_dialect"),
    Break("a rule on another file replaces a rule", "constraints/retractions.py", "if not newer.words or (newer.names_more_than(older) and older.names_more_than(newer)):", "if not newer.words:", "tests/constraints/test_finder.py::test_a_constraint_on_another_thing_replaces_none"),
    Break("a retraction about another file takes a rule back", "constraints/retractions.py", "return bool(self.names) and other.names_more_than(self)", "return False", "tests/constraints/test_finder.py::test_a_retraction_that_names_something_is_about_that_alone"),
    Break("text alone is looked through whole at every call", "dialects/gateway.py", "start = self._scanned if self._checked >= self._scanned else 0", "start = 0", "tests/dialects/test_detection.py::test_of_text_alone_only_what_is_new_is_looked_at"),
    Break("a restart looks again at a cap that was declined", "core/engine/trigger.py", "if session.is_as_stored:", "if False:", "tests/core/engine/test_caps.py::test_a_cap_that_was_declined_is_declined_for_the_same_list_after_a_restart"),
    Break("a mark that came back bare is lost by an edit", "dialects/translation/translator.py", "if block is self._current[-1] and not block.is_marked:", "if block is self._current[-1]:", "tests/dialects/test_translation.py::test_the_last_mark_is_not_lost_where_a_prompt_came_back_before"),
    Break("what a user said is cut for a large newest result", "core/planning/squeeze.py", "yield self._shorten(self._cut_large(context, _is_result, large_tokens), is_older)", "yield self._shorten(context, is_older)", "tests/core/planning/test_coordinator.py::test_a_newest_result_above_a_large_share_is_cut_to_it_before_what_the_user_said"),
    Break("the newest is cut before what is older and small", "core/planning/squeeze.py", "_but_of_users(is_older), least_tokens=_NEARLY_NOTHING_TOKENS)", "_but_of_users(is_older))", "tests/core/planning/test_coordinator.py::test_what_is_small_and_older_is_cut_before_the_newest_result"),
    Break("what was cut for others stays cut as the newest", "core/plan/edited.py", "standing_if_cut = present - (newest - _newest(before))", "standing_if_cut = present", "tests/core/plan/test_edited.py::test_a_message_that_was_cut_far_back_is_whole_when_it_is_the_newest"),
    Break("a new message overtakes one behind the summary", "core/plan/edited.py", "is_first = place < places[0] and not has_other_behind", "is_first = place < places[0]", "tests/core/plan/test_edited.py::test_a_message_that_is_new_stands_behind_one_that_stands_behind_the_summary"),
    Break("an empty text goes out", "dialects/dialect.py", "return block if all(map(is_, items, block.items)) else Block(items, block.entries)", "return block", "tests/dialects/test_writing.py::test_a_prompt_has_no_empty_text"),
    Break("a reminder repeats what came with the call", "recall/search.py", "union(*just_said, *(terms", "union(*(terms", "tests/recall/test_reminders.py::test_what_came_with_the_very_same_call_is_not_shown_twice"),
)  # fmt: skip


def main() -> int:
    """Try every break, as many at once as there are processors; return 0 if all were noticed."""
    parser = argparse.ArgumentParser(prog="break_it", description="which breaks of the code no test notices")
    parser.add_argument("word", nargs="?", default="", help="only the breaks whose description holds it")
    parser.add_argument("--sample", action="store_true", help="one in eight")
    options = parser.parse_args()
    chosen = [case for case in BREAKS if options.word in case.what]
    chosen = sample(chosen) if options.sample else chosen
    if not chosen:
        parser.error(f"no break has {options.word!r} in its name")
    workers = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        copies = SimpleQueue[Path]()
        for number in range(workers):
            copies.put(_copy_tree(Path(folder) / str(number)))
        noticed = pool.map(lambda numbered: _is_noticed_in_a_copy(*numbered, len(chosen), copies), enumerate(chosen, 1))
        unnoticed = [case.what for case, is_noticed in zip(chosen, noticed, strict=True) if not is_noticed]
    print(f"{len(chosen) - len(unnoticed)} of {len(chosen)} breaks were noticed")
    print("".join(f"  not noticed: {what}\n" for what in unnoticed), end="")
    return 1 if unnoticed else 0


def sample(breaks: Sequence[Break]) -> list[Break]:
    """Return one in eight, for CI: others whenever the list changes, and all of them in `make break`."""
    digest = hashlib.sha256(repr(breaks).encode()).digest()
    return list(breaks[digest[0] % _SAMPLED :: _SAMPLED])


def _copy_tree(target: Path) -> Path:
    ignored = shutil.ignore_patterns(".git", ".venv", ".hypothesis", "__pycache__", "site")
    return Path(shutil.copytree(ROOT, target, ignore=ignored))


def _is_noticed_in_a_copy(number: int, case: Break, count: int, copies: SimpleQueue[Path]) -> bool:
    copy = copies.get()
    try:
        return _is_noticed(case, copy, number, count)
    finally:
        copies.put(copy)


def apply(case: Break, text: str) -> str:
    """Return the text of its file with the change made."""
    if text.count(case.old) != 1:
        raise ValueError(
            f"{case.what}: {case.file} holds {text.count(case.old)} of {case.old!r}: name the line as it is now"
        )
    return text.replace(case.old, case.new)


def _is_noticed(case: Break, copy: Path, number: int, count: int) -> bool:
    """Make the change in the copy, run its tests until the first failure, and take the change back."""
    file, start = copy / case.path, time.monotonic()
    text = file.read_text()
    file.write_text(apply(case, text))
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *case.tests.split()],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
    finally:
        file.write_text(text)
    is_noticed = run.returncode == NOTICED
    failure = next((line for line in run.stdout.splitlines() if line.startswith("FAILED")), run.stdout[-2000:])
    first_failure = failure.removeprefix("FAILED ").split(" - ")[0].rpartition("::")[2] if is_noticed else failure
    took = f"{time.monotonic() - start:3.0f} s"
    print(
        f"[{number:2}/{count}] {'noticed' if is_noticed else 'NOT NOTICED':<11} {took}  {case.what}: {first_failure}",
        flush=True,
    )
    return is_noticed


if __name__ == "__main__":
    sys.exit(main())
