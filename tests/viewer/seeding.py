"""Sessions to look at: built by a real manager on a SQLite file, the same every time.

    url = seed(folder)          # all of them but the long one, in well under a few seconds
    seed_long(url)              # 10,000 messages with 120 model calls and their compactions

The names of the sessions are in `SESSIONS`, so that a test can ask for one by what it shows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.core.errors import SummarizerUnavailable
from compact.core.summary.summarizer import SummaryRequest
from compact.core.summary.summary import StructuredSummary
from compact.injection import InjectionContext, Injector
from compact.recall.rehydration import RehydrationConfig
from compact.testing import assistant, system, tool_exchange, user

Wire = dict[str, Any]

QUIET = "never compacted"
BUSY = "checkout-service"
UNDONE = "undone"
INJECTED = "with-notes"
LOSSY = "lossy"
INVENTED = "invented"
EDITED = "edited-past"
MISSED = "missed"
HOSTILE = "<img src=x onerror=alert(1)>"
ODD_ID = "a/b ../c?d=e#f%2e%2e&\u202egnp"
LONG = "ten-thousand"
SESSIONS = (QUIET, BUSY, UNDONE, INJECTED, LOSSY, INVENTED, EDITED, MISSED, HOSTILE, ODD_ID)

PROMPTS = "prompts.json"
WINDOW_TOKENS = 12_000
CONSTRAINT = "Never touch the billing schema without asking me first."
# Everything that has ever run in a page that trusted what it showed.
HOSTILE_TEXTS = (
    "<script>window.__pwned = 1</script>",
    '<img src=x onerror="window.__pwned = 1">',
    "[click](javascript:window.__pwned=1) javascript:alert(1)",
    '"><svg onload=window.__pwned=1>',
    "</textarea></script></style><iframe srcdoc='<script>parent.__pwned=1</script>'></iframe>",
    "\u202eright to left override\u202c and \u2066isolated\u2069 text \u200b\u200d",
    "bell \x07 escape \x1b[31mred\x1b[0m null \x00 backspace \x08 lone \ud800 end",
    "${window.__pwned=1} {{constructor.constructor('window.__pwned=1')()}} <% window.__pwned=1 %>",
    "a" * 3000 + "\n" + "no-break-" * 400,
)
_FILES = ("src/checkout/cart.py", "src/checkout/price.py", "src/api/orders.py", "tests/test_orders.py", "docs/api.md")


def seed(folder: Path, *, window_tokens: int = WINDOW_TOKENS) -> str:
    """Write every session but the long one, and return the URL of their store."""
    url = f"sqlite:///{folder / 'state.db'}"
    for write in (_quiet, _busy, _undone, _injected, _lossy, _invented, _edited, _missed, _hostile, _odd_id):
        write(url, window_tokens)
    return url


@contextmanager
def noting_prompts() -> Iterator[dict[str, list[Any]]]:
    """Every prompt that goes out meanwhile, by session."""
    prompts, preflight = dict[str, list[Any]](), CompactManager.preflight

    def noted(self: CompactManager, session_id: str, messages: Any, **more: Any) -> Any:
        prompt = preflight(self, session_id, messages, **more)
        prompts.setdefault(session_id, []).append(json.loads(json.dumps(prompt)))
        return prompt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CompactManager, "preflight", noted)
        yield prompts


def seed_with_prompts(folder: Path) -> None:
    """Write every session but the long one, and the prompts that went out beside them."""
    with noting_prompts() as prompts:
        seed(folder)
    (folder / PROMPTS).write_text(json.dumps(prompts), encoding="utf-8")


def manager_on(
    url: str, *, window_tokens: int = WINDOW_TOKENS, settings: Mapping[str, Any] | None = None, **plugs: Any
) -> CompactManager:
    """A manager that writes to this store and nowhere else."""
    usual: dict[str, Any] = {
        "max_context_tokens": window_tokens,
        "state": {"url": url},
        "storage": {"adapter": "none"},
        "telemetry": {"exporter": "none"},
        # Large windows are filled to their share.
        "policy": {
            "hard_cap_buffer": 300,
            "keep_recent_turns": 3,
            "keep_tool_io_pairs": 2,
            "trigger_tokens": window_tokens,
        },
        # An estimate is all these sessions need, and it is made at once.
        "tokenizer": "simple",
    }
    return CompactManager(CompactConfig(**{**usual, **(settings or {})}), **plugs)


def run_agent(
    manager: CompactManager, session_id: str, history: Sequence[Wire], *, calls: int | None = None, **beside: Any
) -> int:
    """Send the history as an agent would, one call before each reply (or so many in all); returns how many."""
    places = [place for place, message in enumerate(history) if message["role"] == "assistant"] + [len(history)]
    if calls is not None:
        places = [places[round(n * (len(places) - 1) / max(1, calls - 1))] for n in range(calls)]
    for place in places:
        manager.preflight(session_id, list(history[:place]), **beside)
    return len(places)


def work(turns: int, *, results: int = 3, words: int = 120, start: int = 0) -> list[Wire]:
    """A coding session: questions, files read, tests run, answers; every text has facts of its own."""
    history: list[Wire] = [] if start else [system("You are a careful engineer. Answer in English."), user(CONSTRAINT)]
    if not start:
        history.append(assistant("Understood. I will ask before any change to the billing schema."))
        history.append(user("Done means: every order is rounded once, half up, to cents.", protected=True))
        history.append(assistant("Noted."))
    for turn in range(start, start + turns):
        history.append(user(f"Step {turn}: order ORD-{4000 + turn} fails in {_FILES[turn % 5]}, please look."))
        for number in range(results):
            place = _FILES[(turn + number) % 5]
            text = _listing(place, turn * 10 + number, words)
            name = ("read_file", "run_tests", "grep")[number % 3]
            history += tool_exchange(f"call-{turn}-{number}", text, tool=name, path=place, line=turn * 7 + number)
        history.append(assistant(_answer(turn, words)))
    return history


def _answer(turn: int, words: int) -> str:
    told = f"I found it: line {turn * 7} of {_FILES[turn % 5]} rounds {turn}.{turn:02d} twice."
    steps = (f"Then I compared run {turn * 100 + n} with batch B-{turn}{n}; both agree." for n in range(words // 12))
    return "\n".join([told, *steps, f"Decision: keep Decimal in release 4.{turn}."])


def _listing(place: str, number: int, words: int) -> str:
    head = f"{place}:{number}: def total_{number}(cart):  # commit {number * 7919:07x}"
    body = [f"    value_{number}_{n} = round(cart.line({n}), {number % 4})" for n in range(words // 6)]
    return "\n".join([head, *body, f"{number} passed in {number / 10:.1f}s"])


def _quiet(url: str, window_tokens: int) -> None:
    with manager_on(url, window_tokens=window_tokens) as manager:
        run_agent(manager, QUIET, work(2, results=1, words=30))


def _busy(url: str, window_tokens: int) -> None:
    """Several compactions, tools and instructions beside the messages, usage that came back."""
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in "abcdef"]
    policy = {
        "hard_cap_buffer": 300,
        "keep_recent_turns": 3,
        "keep_tool_io_pairs": 2,
        "summary_form": "session_summary",
    }
    with manager_on(url, window_tokens=window_tokens, settings={"policy": policy}) as manager:
        history = work(40)
        # Too large to stay, so that a summary lists the file: a part of the prompt is the ledger.
        written = "\n".join(f"LIMIT_{number} = {number * 37}" for number in range(450))
        history[5:5] = tool_exchange("call-w", "written", tool="write_file", path="src/limits.py", content=written)
        places = [place for place, message in enumerate(history) if message["role"] == "assistant"]
        for place in places:
            manager.preflight(BUSY, history[:place], tools=tools, instructions="Follow the house rules. " * 20)
            if place % 5 == 0:
                manager.observe_usage(BUSY, round(1.02 * manager.model_calls(BUSY)[-1].tokens_estimated))


def _undone(url: str, window_tokens: int) -> None:
    """A compaction that somebody took back, and the one that the budget then forced."""
    with manager_on(url, window_tokens=window_tokens) as manager:
        history = work(18)
        run_agent(manager, UNDONE, history)
        manager.undo(UNDONE)
        run_agent(manager, UNDONE, history + work(6, start=18), calls=8)
        manager.restore(UNDONE, 1)


def _injected(url: str, window_tokens: int) -> None:
    """Notes at the end of every prompt, and content that was moved out and is shown again when it is named."""

    def note(context: InjectionContext) -> str:
        return f"Note: it is turn {context.turn_number}; the build is green."

    moved = {
        "strategies": {"enabled": ["deduplicate", "externalize", "drop"], "externalize": {"min_tokens": 200}},
        "policy": {"hard_cap_buffer": 300, "keep_recent_turns": 3},
    }
    plugs = {"injectors": [Injector("clock", 60, note)], "rehydration": RehydrationConfig(reserve_tokens=1_000)}
    with manager_on(url, window_tokens=window_tokens, settings=moved, **plugs) as manager:
        history = work(1)
        for turn in range(1, 9):
            for message in work(1, words=240, start=turn):
                if message["role"] == "assistant":
                    manager.preflight(INJECTED, list(history))
                history.append(message)
            for record in manager.current_plan(INJECTED).externalizations[-1:]:
                history.append(user(f"Show me {record.artifact_id} again, please."))
                manager.preflight(INJECTED, list(history))
                history.append(assistant("Here it is."))


def _lossy(url: str, window_tokens: int) -> None:
    """Confidential results leave the prompt: recall does not give them back to everybody."""
    with manager_on(url, window_tokens=window_tokens) as manager:
        history = work(24)
        for message in [message for message in history if message["role"] == "tool"][::3]:
            message["meta"] = {"sensitivity": "restricted"}
        run_agent(manager, LOSSY, history)


def _invented(url: str, window_tokens: int) -> None:
    """A model's summary that leaves facts out and makes some up."""

    def tell(request: SummaryRequest) -> StructuredSummary:
        story = "Asked for fixes in src/checkout/cart.py. The cause was in src/checkout/phantom.py, order ORD-9999."
        return StructuredSummary(narrative=story, facts=("The deadline is 2031-02-03.",))

    no_prefetch = {"summarizer": {"prefetch": "never"}}
    with manager_on(url, window_tokens=window_tokens, settings=no_prefetch, summarizer=tell) as manager:
        run_agent(manager, INVENTED, work(24))


def _edited(url: str, window_tokens: int) -> None:
    """A caller that went back and asked something else."""
    with manager_on(url, window_tokens=window_tokens) as manager:
        history = work(14)
        run_agent(manager, EDITED, history, calls=12)
        run_agent(manager, EDITED, [*history[:30], user("Forget that: look at docs/api.md instead.")], calls=1)
        run_agent(
            manager, EDITED, [*history[:30], user("Forget that: look at docs/api.md instead."), *work(3, start=50)]
        )


def _missed(url: str, window_tokens: int) -> None:
    """Files that are read again, and one that is recalled, after compactions had removed them."""
    first = work(24)
    files = [message for message in first if message["role"] == "tool"][:2]
    again = [*tool_exchange("again-1", files[0]["content"], tool="read_file", path=_FILES[0], line=0)]
    again += [*tool_exchange("again-2", f"[m10, tool, entry 10]\n{files[1]['content']}", tool="recall", query="m10")]
    with manager_on(url, window_tokens=window_tokens) as manager:
        run_agent(manager, MISSED, [*first, user("Look at the first two again."), *again, *work(14, start=24)])


def _hostile(url: str, window_tokens: int) -> None:
    """Content that wants to run, to steer or to break out, in every place where content can be."""
    with manager_on(url, window_tokens=window_tokens) as manager:
        history: list[Wire] = [system(f"Be careful. {HOSTILE_TEXTS[0]}")]
        for round_number in range(4):
            for number, text in enumerate(HOSTILE_TEXTS):
                history.append({**user(f"Always say {text}"), "name": text[:60].replace("\x00", "")})
                arguments = {"path": text, text[:40]: [text, {"deep": text}]}
                call_id = f"{number}-{round_number}<b>"
                call = {
                    "id": call_id,
                    "type": "function",
                    "function": {"name": text[:50], "arguments": json.dumps(arguments)},
                }
                history.append({"role": "assistant", "content": text, "tool_calls": [call]})
                history.append({"role": "tool", "tool_call_id": call_id, "content": text * 3, "meta": {"label": text}})
                history.append(assistant(f"done {text}"))
        run_agent(manager, HOSTILE, history, calls=20)


def _odd_id(url: str, window_tokens: int) -> None:
    with manager_on(url, window_tokens=window_tokens) as manager:
        history = [{**message, "id": f"{number}/../{number}?x#<b>"} for number, message in enumerate(work(10))]
        run_agent(manager, ODD_ID, history, calls=6)


def seed_long(url: str, *, messages: int = 10_000, calls: int = 120, window_tokens: int = 400_000) -> str:
    """Write the long session and return its id; its summaries are short, for choosing what to quote takes long."""

    def tell(request: SummaryRequest) -> StructuredSummary:
        return StructuredSummary(ledger=request.ledger, narrative=f"{len(request.span)} messages of steady work.")

    no_prefetch = {"summarizer": {"prefetch": "never"}}
    with manager_on(url, window_tokens=window_tokens, settings=no_prefetch, summarizer=tell) as manager:
        history = work(messages // 8 + 1, words=36)[:messages]
        run_agent(manager, LONG, history, calls=calls)
    return LONG


def seed_failing(url: str, *, on_failure: str = "prune", session_id: str = "failing") -> str:
    """Write a session whose summariser answers with an error, and return its id."""
    settings = {"summarizer": {"prefetch": "never", "on_failure": on_failure}, "model": "claude-sonnet-4-5"}
    with manager_on(url, settings=settings, summarizer=Failing()) as manager:
        run_agent(manager, session_id, work(24))
    return session_id


class Failing:
    """A summariser whose model answers 500."""

    model = "gpt-4o-mini"

    def __call__(self, request: SummaryRequest) -> StructuredSummary:
        """Fail as a client does."""
        raise SummarizerUnavailable("the model answered 500: The server had an error", hint="look at the server")
