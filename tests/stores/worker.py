"""The other processes of these tests: `python worker.py TASK '{"json": "arguments"}'`, and what they are built from."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
from compact.core.engine.events import CompactionErrorEvent, VersionConflictEvent
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.core.messages.message import Message
from compact.summarizers.extractive import extractive_summary
from compact.testing import RecordingSink, Wire, WordTokenizer, assistant, system, tool_exchange, user


def message_at(place: int, *, words: int = 12) -> Wire:
    """The entry that every history has at this place: questions, calls with their results, answers."""
    filler = " word" * (words - 1)
    call, result = tool_exchange(f"call-{place // 4}", f"result-{place}{filler}", path=f"src/file_{place // 4}.py")
    return [user(f"question-{place}{filler}"), call, result, assistant(f"answer-{place}{filler}")][place % 4]


def history(length: int, *, words: int = 12) -> list[Wire]:
    """The first entries of the history that all processes share."""
    return [message_at(place, words=words) for place in range(length)]


@dataclass(frozen=True)
class CountingTokenizer(WordTokenizer):
    """Knows how many messages it was asked to count."""

    counted: list[Message] = field(default_factory=list)

    def count_message(self, message: Message) -> int:
        self.counted.append(message)
        return WordTokenizer().count_message(message)


@dataclass
class CountingSummarizer:
    """Knows what it was asked for; leaves a line in a file for each, so that processes can be added up."""

    delay_seconds: float = 0.0
    log: Path | None = None
    asked: list[SummaryRequest] = field(default_factory=list)

    def __call__(self, request: SummaryRequest) -> StructuredSummary:
        self.asked.append(request)
        if self.log:
            line = json.dumps([[m.id for m in request.messages], session_of(request), request.version])
            with self.log.open("a") as file:
                file.write(line + "\n")
        time.sleep(self.delay_seconds)
        return extractive_summary(request)


def session_of(request: SummaryRequest) -> str:
    """Which session a request belongs to: the histories of the crowd say so in their first message."""
    first = request.span[0].text
    return next((word for word in first.split() if word.startswith("session-")), "")


def manager_on(
    url: str, *, window: int = 1_000, tenant: str = "", **plugs: Any
) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    config = CompactConfig(
        max_context_tokens=window,
        policy={"hard_cap_buffer": 0},
        summarizer={"prefetch": "never"},
        telemetry={"exporter": "none"},
        storage={"adapter": "none"},
        state={"url": url, "tenant_id": tenant},
    )
    return CompactManager(config, **{"tokenizer": WordTokenizer(), "on_event": sink, **plugs}), sink


def violations(prompt: list[Any]) -> tuple[object, ...]:
    """What a provider would refuse in a prompt."""
    return check_chat([read_entry(item, "prompt") for item in prompt])


def as_bytes(prompt: list[Any]) -> str:
    """A prompt as it would go over the wire."""
    return json.dumps([asdict(item) if isinstance(item, Message) else item for item in prompt])


# -- scenes: what a first process does with a session; the last input and what came of it ----------------------------

Scene = Callable[[CompactManager], tuple[list[Any], list[Any]]]


def _grown(manager: CompactManager, entries: list[Any]) -> tuple[list[Any], list[Any]]:
    """Sent turn by turn, as an agent would."""
    for end in range(4, len(entries), 4):
        manager.preflight("s", entries[:end])
    return entries, manager.preflight("s", entries)


def plain(manager: CompactManager) -> tuple[list[Any], list[Any]]:
    """Dicts, the full history every time, several compactions."""
    return _grown(manager, [system("be careful"), *history(160)])


def odd_dicts(manager: CompactManager) -> tuple[list[Any], list[Any]]:
    """Unknown fields, parts, lone surrogates, NUL."""
    odd = {"x_unknown": {"deep": [1, None, "\x00\ud800"]}}
    parts = [{"type": "text", "text": "part \ud800"}, {"type": "custom", "x": [1, {"y": None}]}]
    entries = [{**entry, **odd} if place % 3 else entry for place, entry in enumerate(history(120))]
    entries[4] = {**entries[4], "content": parts}
    return _grown(manager, entries)


def own_messages(manager: CompactManager) -> tuple[list[Any], list[Any]]:
    """Our own Message objects, some with ids."""
    read = [read_entry({**entry, "id": f"own-{n}" if n % 2 else ""}, "") for n, entry in enumerate(history(120))]
    fields = ("role", "content", "tool_calls", "tool_call_id", "name", "id")
    return _grown(manager, [Message(**{name: getattr(message, name) for name in fields}) for message in read])


def output_based(manager: CompactManager) -> tuple[list[Any], list[Any]]:
    """A caller that sends back what it got, with something new behind it."""
    prompt: list[Any] = []
    entries: list[Any] = []
    for place in range(0, 160, 4):
        entries = [*prompt, *history(place + 4)[place:]]
        prompt = manager.preflight("s", entries)
    return entries, prompt


def edited_past(manager: CompactManager) -> tuple[list[Any], list[Any]]:
    """An edit inside the summarised span."""
    entries, _ = _grown(manager, history(100))
    entries = [*entries[:8], user("question-8, edited"), *entries[9:]]
    return entries, manager.preflight("s", entries)


def cut_past(manager: CompactManager) -> tuple[list[Any], list[Any]]:
    """A caller that went back to the beginning, into the summarised span, and is small again."""
    entries, _ = _grown(manager, history(100))
    entries = [*entries[:8], user("let us do something else")]
    return entries, manager.preflight("s", entries)


def cut_tail(manager: CompactManager) -> tuple[list[Any], list[Any]]:
    """A caller that took the last exchange back, behind the summary."""
    entries, _ = _grown(manager, history(100))
    entries = [*entries[:96], user("let us do something else")]
    return entries, manager.preflight("s", entries)


def undone(manager: CompactManager) -> tuple[list[Any], list[Any]]:
    """A compaction that was taken back, and stays so below the ceiling."""
    entries, _ = _grown(manager, history(96))
    assert manager.current_plan("s").version == 1, "one compaction, to be taken back"
    manager.undo("s")
    entries = [*entries, user("and now")]
    prompt = manager.preflight("s", entries)
    assert len(prompt) == len(entries), "everything is back"
    return entries, prompt


def nothing_left(manager: CompactManager) -> tuple[list[Any], list[Any]]:
    """A history that stays above the trigger, because what it holds is protected."""
    entries = [user("keep this" + " word" * 400, protected=True), *history(20), user("and this" + " word" * 470)]
    return entries, manager.preflight("s", entries)


def illegal(manager: CompactManager) -> tuple[list[Any], list[Any]]:
    """A call that was never answered, and a result that nobody asked for."""
    entries = history(90)
    del entries[50], entries[77]
    return _grown(manager, entries)


SCENES: dict[str, Scene] = {
    scene.__name__: scene
    for scene in (
        plain,
        odd_dicts,
        own_messages,
        output_based,
        edited_past,
        cut_past,
        cut_tail,
        undone,
        nothing_left,
        illegal,
    )
}


# -- tasks ----------------------------------------------------------------------------------------------------------


def play(url: str, scene: str) -> None:
    """Plays a scene; prints what it asked last and what it got."""
    summarizer = CountingSummarizer()
    manager, sink = manager_on(url, summarizer=summarizer)
    with manager:
        entries, prompt = SCENES[scene](manager)
        plan = manager.current_plan("s")
    assert not sink.of(CompactionErrorEvent), sink.of(CompactionErrorEvent)
    told = {"prompt": as_bytes(prompt), "entries": as_bytes(entries), "plan": plan.version}
    sys.stdout.write(json.dumps({**told, "asked": len(summarizer.asked)}))


def write_on(url: str, log: str, preflights: int) -> None:
    """Continues a session, one message per preflight; notes each one after preflight has returned."""
    manager, sink = manager_on(url)
    with Path(log).open("a") as acknowledged, manager:
        known = len(manager.history("s")) if manager.sessions() else 0
        for end in range(known + 1, known + 1 + preflights):
            manager.preflight("s", history(end))
            assert not sink.of(CompactionErrorEvent), sink.of(CompactionErrorEvent)
            acknowledged.write(f"{end}\n")
            acknowledged.flush()


def summarize_for_ever(url: str) -> None:
    """Begins a summary that it never ends, and says when it has begun."""

    def summarize(request: SummaryRequest) -> StructuredSummary:
        sys.stdout.write("begun\n")
        sys.stdout.flush()
        time.sleep(600)
        return StructuredSummary()

    manager_on(url, summarizer=summarize)[0].preflight("s", history(96))


def prepare(urls: list[str], name: str) -> None:
    """Opens databases at the same moments as others do: one for each line that it is sent."""
    for url in urls:
        manager, sink = manager_on(url)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        with manager:
            manager.preflight(name, history(3))
            assert not sink.of(CompactionErrorEvent), sink.of(CompactionErrorEvent)


def crowd_history(session: int, length: int) -> list[Wire]:
    """What the crowd says in a session; long enough to be compacted every ten messages or so."""
    return [user(f"session-{session} begins"), *history(length, words=30)]


def crowd(url: str, log: str, number: int, processes: int, sessions: int, preflights: int) -> None:
    """Owns a share of the sessions, and meddles with the next process's share: the same history, often an older one."""
    summarizer = CountingSummarizer(log=Path(log))
    manager, sink = manager_on(url, window=400, summarizer=summarizer)
    mine = range(number, sessions, processes)
    theirs = range((number + 1) % processes, sessions, processes)
    times: list[float] = []
    with manager:
        for end in range(1, preflights + 1):
            for owned in (*mine, *(theirs if end % 5 == number % 5 else ())):
                stale = 0 if owned % processes == number else 2
                entries = crowd_history(owned, max(1, end - stale))
                start = time.perf_counter()
                prompt = manager.preflight(f"s-{owned}", entries)
                times.append(time.perf_counter() - start)
                assert not violations(prompt), violations(prompt)
    errors = [asdict(event) for event in sink.of(CompactionErrorEvent)]
    conflicts = len(sink.of(VersionConflictEvent))
    told = {"errors": errors, "conflicts": conflicts, "times": times, "summaries": len(summarizer.asked)}
    sys.stdout.write(json.dumps(told))


def start(task: Callable[..., None], **arguments: Any) -> subprocess.Popen[str]:
    """One of the tasks in a process of its own."""
    command = [sys.executable, __file__, task.__name__, json.dumps(arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str], *, timeout_seconds: float = 120) -> Any:
    """What a process printed."""
    try:
        out, err = process.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"a process did not end\n{err[-3000:]}") from None
    assert process.returncode == 0, err[-3000:]
    return json.loads(out) if out else None


if __name__ == "__main__":
    {task.__name__: task for task in (play, write_on, prepare, crowd, summarize_for_ever)}[sys.argv[1]](
        **json.loads(sys.argv[2])
    )
