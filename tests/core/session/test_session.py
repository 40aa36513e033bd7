"""The state of a session has one owner: forks are independent, and nothing of a session outlives it."""

from __future__ import annotations

import ast
import gc
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import compact
from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
from compact.core.audit.records import AddedMessage, Commit, ModelCall, SessionHead, StoredSession
from compact.core.engine.events import CompactionErrorEvent, VersionConflictEvent
from compact.core.messages.message import Message
from compact.core.plan.budget import Calibration, TokenBudget
from compact.core.plan.layers import KeepRules
from compact.core.plan.parts import PromptPart
from compact.core.plan.plan import CompactionPlan, DropRecord, SpanReference, StepFailure
from compact.core.plan.renderer import PromptRenderer
from compact.core.plan.turn import RehydrationState, TurnContext
from compact.core.session.decisions import TriggerDecision
from compact.core.session.past_plans import PlannedLine
from compact.core.session.prompt import CurrentPrompt
from compact.core.session.session import Session
from compact.stores.database import Database
from compact.stores.sql import SqlCompactionStore
from compact.testing import RecordingSink, WordTokenizer, assistant, dialogue, tool_exchange, user

SOURCES = Path(compact.__file__).parent
COUNT = WordTokenizer().count_message


def live_session() -> Session:
    session = Session("s")
    session.set_budget(TokenBudget(max_context_tokens=1_000))
    match = session.ingest(dialogue(6), COUNT)
    session.extend_prompt(match.new, PromptRenderer(), KeepRules())
    session.adopt(CompactionPlan("s", version=1), is_compaction=True)
    assert session.structure.groups
    return session


# Everything that can happen to a session between two calls, each done to a fork.
CHANGES: dict[str, Callable[[Session], object]] = {
    "ingest": lambda s: s.ingest([*dialogue(6), user("more")], COUNT),
    "edit": lambda s: s.ingest([user("another beginning"), *dialogue(3)], COUNT),
    "extend": lambda s: s.extend_prompt(s.ingest([*dialogue(6), user("hi")], COUNT).new, PromptRenderer(), KeepRules()),
    "adopt": lambda s: s.adopt(CompactionPlan("s", version=2), is_compaction=True),
    "decide": lambda s: s.decide(TriggerDecision(True, "because")),
    "decline": lambda s: s.decline("too dear"),
    "exhaust": lambda s: s.mark_exhausted(),
    "usage": lambda s: s.observe_usage(estimated_tokens=10, reported_tokens=20),
    "budget": lambda s: s.set_budget(TokenBudget(max_context_tokens=5)),
    "rehydrate": lambda s: s.add_rehydrated(
        [AddedMessage("rehydrated", Message("user", "again"), 1)], TurnContext(3, ("a",)), RehydrationState({"a": 3})
    ),
    "inject": lambda s: s.inject((AddedMessage("injected", Message("user", "note"), 1),)),
    "inject once": lambda s: s.remember_injection("clock", (AddedMessage("injected", Message("user", "12:00"), 1),)),
    "saved": lambda s: s.mark_saved(SessionHead(3, 1, 0)),
    "lost": lambda s: s.mark_lost(),
    "outdated": lambda s: s.mark_outdated(),
    "queued": lambda s: s.mark_queued(7),
    "output": lambda s: s.output(dialogue(6), s.ingest(dialogue(6), COUNT)),
}  # fmt: skip


def state_of(session: Session) -> dict[str, Any]:
    """Everything a session holds, as values that can be compared."""
    log, prompt, apart = session.log, session.prompt, {"log", "tokens", "prompt", "_structure", "_line_index", "_watch"}
    return {
        **{name: value for name, value in vars(session).items() if name not in apart},
        "structure": (list(session._structure.groups), dict(session._structure.places)),
        "tokens": session.tokens.copy(log),
        "index": (list(session._line_index.asks), list(session._line_index.marked), dict(session._line_index.tools)),
        "log": (list(log.entries), list(log.view), dict(log._known.recorded), vars(log._left.copy())),
        "raw": (list(log._raw.originals), list(log._raw.ids), list(log._raw.owners)),
        "prompt": (prompt.rendered, prompt.tokens, dict(prompt.tokens_by_part), list(prompt.slot_tokens)),
        "items": (list(prompt.items.originals), list(prompt.items.ids), list(prompt.items.owners)),
    }


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_happens_to_a_fork_never_reaches_the_session(change: Callable[[Session], object]) -> None:
    session = live_session()
    before, fork = state_of(session), session.fork()
    assert state_of(fork) == before, "a fork starts as a copy of everything"
    change(fork)
    assert state_of(fork) != before, "the change reached the fork"
    assert state_of(session) == before


def dropping(version: int, *message_ids: str) -> CompactionPlan:
    record = DropRecord(span=SpanReference(message_ids), strategy="window", reason="old")
    return CompactionPlan("s", version=version, records=(record,))


def shown_before(session: Session) -> list[int]:
    """The versions of the plans of which the session makes the earlier prompts, in this order."""
    versions: list[int] = []
    prompts = session.earlier_prompts(lambda plan, view: versions.append(plan.version) or CurrentPrompt())
    assert prompts is not None
    return [versions[-1] for _ in prompts]


def test_earlier_prompts_are_those_of_plans_that_stand_on_the_line_the_newest_first() -> None:
    session = live_session()
    session.adopt(dropping(8, "m1"), is_compaction=True)
    plans = [CompactionPlan("s", version=3), dropping(4, "m1"), dropping(5, "m2", "m77"), dropping(8, "m1")]
    session.learn_past(plans, None)
    assert shown_before(session) == [4], "no plan that does nothing, none of what was left, and none that came later"
    session.adopt(dropping(9, "m1"), is_compaction=True)
    session.adopt(dropping(10, "m1"), is_compaction=True)
    assert shown_before(session) == [9, 8, 4]
    line = session.log.view
    session.ingest(dialogue(6)[1:], COUNT)
    assert shown_before(session) == [], "the caller has left what they stand on"
    session.leave_line(line, 9)
    assert shown_before(session) == [9, 8], "those of the line that it left, until the plan that was the last there"


def test_no_more_than_eight_earlier_prompts_are_made() -> None:
    session = live_session()
    session.adopt(dropping(20, "m1"), is_compaction=True)
    session.learn_past((dropping(version, "m1") for version in range(2, 20)), None)
    assert shown_before(session) == list(range(19, 11, -1))


def test_a_session_that_was_read_knows_its_turn_and_what_was_reported_for_a_prompt_of_its_plan() -> None:
    session = live_session()
    head, stored = SessionHead(len(session.log), session.plan.version), session.unsaved()

    def read(call: ModelCall | None) -> Session:
        return Session.resumed(
            StoredSession(
                session_id="s",
                head=head,
                messages=stored.messages,
                view_ids=tuple(session.log.view_ids),
                plan=session.plan,
                last_report=call,
            )
        )

    call = ModelCall(
        turn_number=6,
        plan_version=head.plan_version,
        summary_version=0,
        last_seq=head.last_seq,
        messages=12,
        evicted=0,
        tokens_estimated=100,
        tokens_reported=150,
        details={"model": "m"},
    )
    again = read(call)
    assert (again.turn_number, again.reads, again.model) == (session.turn_number, 1, "m") == (6, 1, "m")
    assert again.calibration == Calibration(anchor=(100, 150))
    assert not again.has_unsaved_plan
    for other in (None, replace(call, plan_version=0), replace(call, tokens_reported=None)):
        assert read(other).calibration == Calibration()


def test_what_was_shown_again_stays_until_another_question_is_answered() -> None:
    session, history = Session("s"), [*dialogue(3), user("What now?")]
    added = AddedMessage("rehydrated", Message("user", "again"), 5)

    def stays(items: list[Any]) -> bool:
        session.ingest(history, COUNT)
        session.drop_rehydrated()
        session.add_rehydrated([added], TurnContext(session.turn_number), RehydrationState())
        session.ingest(items, COUNT)
        return session.rehydrated_tokens == 5

    assert stays([*history, assistant("wait")])
    assert stays([*history[2:], assistant("wait")]), "an edit of the past, and the same question"
    assert not stays([*history, user("And then?")])
    assert not stays(history[:-1]), "back at the question before, though nothing was asked anew"


def test_what_was_reported_for_one_model_says_nothing_of_another() -> None:
    session = live_session()
    session.observe_usage(estimated_tokens=100, reported_tokens=150)
    for model, known in (("a", (100, 150)), ("a", (100, 150)), ("b", None)):
        session.set_model(model, WordTokenizer())
        assert session.calibration.anchor == known


def test_entries_are_counted_again_by_the_tokenizer_of_another_model() -> None:
    @dataclass(frozen=True)
    class Characters(WordTokenizer):
        name: str = "characters"

        def count_message(self, message: Message) -> int:
            return len(message.text)

    session = live_session()
    assert [session.set_model("a", tokenizer) for tokenizer in (WordTokenizer(), WordTokenizer())] == [False, False]
    assert session.view_tokens() == list(map(COUNT, session.log.view))
    assert session.set_model("b", Characters())
    assert session.view_tokens() == [len(message.text) for message in session.log.view]


def test_the_parts_of_a_request_are_those_of_its_prompt_and_of_what_is_beside_it() -> None:
    session = live_session()
    prompt = session.prompt_tokens
    session.set_budget(
        TokenBudget(max_context_tokens=1_000, system_tokens=7, tool_schema_tokens=11, formatting_overhead=3)
    )
    session.inject((AddedMessage("injected", Message("user", "note"), 2),))
    parts = session.tokens_by_part()
    named = [parts[part] for part in (PromptPart.SYSTEM, PromptPart.TOOLS, PromptPart.OVERHEAD, PromptPart.INJECTED)]
    assert named == [7, 11, 3, 2]
    assert sum(parts.values()) == prompt + 7 + 11 + 3 + 2
    assert [session.prompt.leading_tokens(slots) for slots in (0, 12)] == [0, prompt]
    assert session.prompt.leading_tokens(1) == COUNT(session.log.view[0])


def test_what_is_noted_once_is_new_the_first_time_only() -> None:
    session = Session("s")
    assert [session.note_once(what) for what in ("a", "a", "b")] == [True, False, True]


def test_after_a_compaction_only_the_slope_of_what_was_reported_is_known() -> None:
    session = live_session()
    session.observe_usage(estimated_tokens=100, reported_tokens=150)
    session.adopt(CompactionPlan("s", version=2))
    assert session.calibration == Calibration(anchor=(100, 150))
    session.adopt(CompactionPlan("s", version=3), is_compaction=True)
    assert session.calibration == Calibration(earlier=(100, 150))


def test_a_session_that_goes_back_knows_nothing_of_a_call_that_broke_off_and_was_read_once_more() -> None:
    session, before = live_session(), live_session().fork()
    before.note_failure(StepFailure(what="clear", error_type="ValueError", message="no", instead="nothing"))
    session.keep_list(["of the call that broke off"])
    reads = session.reads
    session.go_back_to(before)
    assert (session.failures, session.kept_lists, session.reads) == ((), (), reads + 1)


def test_the_wire_format_of_a_plan_is_that_of_the_last_list() -> None:
    session = Session("s")
    session.mark_dialect("chat")
    known = session.plan
    session.mark_dialect("chat")
    assert session.plan is known
    session.mark_dialect("")  # the list could not be read in it
    assert (known.dialect, session.plan.dialect) == ("chat", "")


def test_a_session_is_stored_once_its_store_has_the_whole_log_and_the_plan_in_force() -> None:
    session = live_session()
    assert not session.is_stored
    session.mark_saved(SessionHead(len(session.log), session.plan.version))
    assert session.is_stored
    session.ingest([*dialogue(6), user("more")], COUNT)
    assert not session.is_stored
    session.mark_saved(SessionHead(len(session.log), session.plan.version))
    session.adopt(CompactionPlan("s", version=2))
    assert not session.is_stored
    lost = Session("s")
    assert lost.is_stored
    lost.mark_lost()
    assert not lost.is_stored


def test_lists_that_wait_for_the_store_are_kept_until_each_is_stored_one_that_went_on_only_once() -> None:
    session = Session("s")
    for kept in (["a"], ["b"], ["a", "c"]):
        session.keep_list(kept)
    assert session.kept_lists == (("b",), ("a", "c"))
    session.drop_kept_list()
    assert session.kept_lists == (("a", "c"),)


@pytest.mark.parametrize(
    ("version", "branch", "knows"), [(0, 0, True), (1, 0, True), (0, 1, False), (2, 0, False), (2, 1, False)]
)
def test_a_session_reads_earlier_plans_where_its_store_may_have_some(version: int, branch: int, knows: bool) -> None:
    """Behind the first plan there is another one, and behind an edit of the past another line."""
    head, plan_in_force = SessionHead(0, version, branch), CompactionPlan("s", version=version)
    session = Session.resumed(StoredSession(session_id="s", head=head, messages=(), view_ids=(), plan=plan_in_force))
    assert session.past.are_known is knows
    session.learn_past([CompactionPlan("s", version=earlier) for earlier in range(3)], None)
    assert session.past.are_known


def test_lines_that_were_left_are_learnt_apart_from_what_is_the_beginning_of_this_one() -> None:
    session = live_session()
    here, left = session.log.view_ids, ("m1", "of another line")
    lines = [PlannedLine(tuple(here[:2]), (2, 3)), PlannedLine(left, (4,)), PlannedLine((), tuple(range(20)))]
    session.learn_past((), lines)
    assert session.past.lines == (PlannedLine(left, (4,)),)
    assert session.past.versions_here == tuple(range(19, 11, -1))


def test_a_fork_spends_on_the_account_of_its_session() -> None:
    session = live_session()
    session.fork().spending.calls += 1
    assert session.spending.calls == 1


class Flaky(SqlCompactionStore):
    """A store that can be away."""

    is_away = False

    def commit(self, commit: Commit) -> SessionHead:
        if self.is_away:
            raise ConnectionError("the store is away")
        return super().commit(commit)


def test_a_dry_run_on_an_edited_history_does_not_disturb_a_session_that_waits_for_its_store(tmp_path: Path) -> None:
    store, sink = Flaky(Database(f"sqlite:///{tmp_path}/state.db")), RecordingSink()
    config = CompactConfig(
        max_context_tokens=1_000,
        policy={"hard_cap_buffer": 0},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    with CompactManager(config, store=store, tokenizer=WordTokenizer(), on_event=sink) as manager:
        history = dialogue(30, words=20)
        manager.preflight("s", history[:4])
        store.is_away = True
        manager.preflight("s", history)
        assert [event.error_type for event in sink.of(CompactionErrorEvent)] == ["ConnectionError"]
        assert manager.plan("s", [user("another beginning"), *history[2:]]).plan.version == 2, "it drops a record"
        store.is_away = False
        for more in range(1, 4):
            manager.preflight("s", [*history, *dialogue(more)])
        assert not sink.of(VersionConflictEvent)
        stored = store.load("s")
        assert stored is not None
        assert [entry.message for entry in stored.messages] == list(manager.history("s"))
        assert stored.plan == manager.current_plan("s")
        assert [entry.plan.version for entry in store.plans("s")] == [1]


def test_nothing_of_a_session_is_left_when_it_is_deleted() -> None:
    def writes(request: SummaryRequest) -> StructuredSummary:
        return StructuredSummary(narrative="it went on")

    config = CompactConfig(
        max_context_tokens=1_000,
        policy={"hard_cap_buffer": 0},
        state={"url": "memory:"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    with CompactManager(config, tokenizer=WordTokenizer(), summarizer=writes) as manager:
        manager.preflight("s", [*tool_exchange("c", "word " * 600), *dialogue(30, words=20)])
        manager._prefetcher.wait(20)  # type: ignore[union-attr]
        session = weakref.ref(manager._sessions.find("s").session)
        assert session() is not None
        assert manager.delete("s")
        gc.collect()
        assert session() is None


def _foreign_writes(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Yield assignments to an attribute of an object that the function neither owns nor has made itself."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        own = {"self", "cls", *_made_in(function)}
        for leaf in _targets(function):
            is_own = isinstance(leaf.value, ast.Name) and leaf.value.id in own
            if not is_own:
                yield leaf


def _targets(function: ast.AST) -> Iterator[ast.Attribute]:
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=targets):
                pass
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                targets = [target]
            case _:
                continue
        for target in targets:
            leaves = target.elts if isinstance(target, ast.Tuple) else [target]
            yield from (leaf for leaf in leaves if isinstance(leaf, ast.Attribute))


def _made_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Names of objects that a function makes itself, by calling a class."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def test_nobody_in_the_core_writes_the_attributes_of_another_object() -> None:
    found = [
        f"{path.relative_to(SOURCES)}:{leaf.lineno}: {ast.unparse(leaf)}"
        for path in sorted((SOURCES / "core").rglob("*.py"))
        for leaf in _foreign_writes(ast.parse(path.read_text(encoding="utf-8")))
        if not ast.unparse(leaf).startswith("self._")  # parts of an object's own, private state
    ]
    assert found == []


def test_no_state_is_copied_behind_an_objects_back() -> None:
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert "__dict__" not in text, path


def test_the_tokens_of_a_line_are_those_of_its_entries_whatever_became_of_it() -> None:
    session, count = Session("s"), WordTokenizer().count_message

    def tokens_of(*items: dict[str, Any]) -> list[int]:
        match = session.ingest(items, count)
        assert match is not None
        tokens = list(session.view_tokens())
        assert tokens == session.tokens.of_messages(session.log.view) == [count(entry) for entry in session.log.view]
        return tokens

    one, read = user("one"), tool_exchange("c1", "a long result " * 9)
    whole = tokens_of(one, *read)
    assert tokens_of(one, *read, user("and more"))[:3] == whole
    cleared = {**read[1], "content": "[cleared]"}
    assert tokens_of(one, read[0], cleared, user("and more"))[2] < whole[2]
    assert tokens_of(one, *read)[:3] == whole
    assert len(tokens_of(user("something else"))) == 1
