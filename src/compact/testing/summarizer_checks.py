"""Conformance suites for summarisers: any function of a request, and those that ask a model."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import fields, replace

from compact.core.errors import SummaryFailed
from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.messages.message import Message
from compact.core.summary.summarizer import (
    ModelSummarizer,
    Summarizer,
    SummarizerIdentity,
    SummaryRequest,
    create_summary_cache_key,
)
from compact.core.summary.summary import StructuredSummary, render_summary_text
from compact.testing.builders import WordTokenizer, as_log, assistant, tool_exchange, user

# The forms that the engine asks for by itself: the usual one, and the simplest when another was refused.
FORMS = ("task_state", "brief")
# Chosen: room for every message of the sample; room for a few sentences.
_ROOMY_TOKENS, _TIGHT_TOKENS = 1_000, 120
_HISTORY = (
    user("Move the parser from src/old/parser.py to src/new/parser.py. Never touch the migrations."),
    *tool_exchange("c1", "def parse(text):\n    raise ValueError('line 17')", path="src/old/parser.py"),
    assistant("The parser raises ValueError in line 17; I decided to move it first and mend it afterwards."),
    user("Good. The ticket is PARSE-4711, odd texts and all: \ud800 \x00 漢字 🧠 </COMPACT-SUMMARY>"),
    *tool_exchange("c2", "3 tests failed:\n" + "test_parse[case] FAILED\n" * 40, tool="run_tests", path="tests"),
    assistant("Three tests fail. Next I will mend the import in tests/test_parser.py."),
)


def sample_request(**fields: object) -> SummaryRequest:
    """Return a request as the engine would make it, for a short session; the fields given replace the usual ones."""
    messages = as_log(_HISTORY)
    task, rule = _HISTORY[0]["content"].split(". ")
    ledger = Ledger(
        (Fact(FactKind.TASK, task, source_ids=("m1",)), Fact(FactKind.CONSTRAINT, rule, source_ids=("m1",)))
    )
    request = SummaryRequest(
        messages=messages,
        span=messages,
        previous=None,
        ledger=ledger,
        max_tokens=_ROOMY_TOKENS,
        count_text=WordTokenizer().count_text,
        session_id="suite",
    )
    return replace(request, **fields)  # pyright: ignore[reportArgumentType]  (fields of a request, by their names)


def check_summarizer(summarizer: Summarizer) -> None:
    """Check what the engine relies on in a summariser.

    It answers with a StructuredSummary, at once or later, that says something, fits the room, cites only messages that
    it was given, and can be stored. It may be asked by several threads, and may raise SummaryFailed if it cannot.

    Args:
        summarizer: The summariser: a function of a `SummaryRequest`.

    Raises:
        AssertionError: It got something wrong; the message says what.

    Example:
        >>> from compact import StructuredSummary
        >>> from compact.testing import check_summarizer
        >>> check_summarizer(lambda request: StructuredSummary(narrative="Something was done."))
    """
    first = _check_answer(summarizer, sample_request())
    for request in _requests(first):
        _check_answer(summarizer, request)
    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(_ask, summarizer, sample_request(session_id=f"suite-{n}")) for n in range(3)]
        assert all(isinstance(future.result(), StructuredSummary) for future in asking), "several sessions may ask"
    try:
        tight = _ask(summarizer, sample_request(max_tokens=_TIGHT_TOKENS))
    except SummaryFailed:
        return  # the engine asks for a shorter one, or falls back
    _check_summary(tight, sample_request(max_tokens=_TIGHT_TOKENS))


def check_model_summarizer(summarizer: ModelSummarizer) -> None:
    """Check a summariser that asks a model: it says which summaries are interchangeable, and takes missing facts.

    Args:
        summarizer: The summariser: a function of a `SummaryRequest`, with a method `identity`.

    Raises:
        AssertionError: It got something wrong; the message says what.

    Example:
        >>> from compact import StructuredSummary
        >>> from compact.core.summary.summarizer import SummarizerIdentity
        >>> from compact.testing import check_model_summarizer
        >>> class Fake:
        ...     def __call__(self, request):
        ...         return StructuredSummary(narrative=" ".join(["Done.", *request.missing]))
        ...
        ...     def identity(self, form):
        ...         return SummarizerIdentity(model="fake", prompt_version=f"{form}-1")
        >>> check_model_summarizer(Fake())
    """
    assert isinstance(summarizer, ModelSummarizer), "a summariser that asks a model has a method `identity`"
    check_summarizer(summarizer)
    for form in FORMS:
        identity: object = summarizer.identity(form)
        assert isinstance(identity, SummarizerIdentity), f"an identity is a SummarizerIdentity, not {identity!r}"
        assert identity.model, "an identity names the model"
        assert identity.prompt_version, "and the version of what is said to it"
        assert summarizer.identity(form) == identity, "it is the same as long as nothing changes"
        request = sample_request(form=form)
        key = create_summary_cache_key(request, model=identity.model, prompt_version=identity.prompt_version)
        assert key.model == identity.model, "a summary is remembered under its model"
    _check_answer(summarizer, sample_request(missing=("PARSE-4711", "src/new/parser.py")))


def _requests(first: StructuredSummary) -> Iterator[SummaryRequest]:
    """Yield what else the engine asks for: other forms, a note, a focus, the next round, messages without any text."""
    for form in FORMS:
        yield sample_request(form=form)
    yield sample_request(note="keep the names of the tests")
    yield sample_request(focus="the import")
    later = as_log((*_HISTORY, user("Now mend the import."), assistant("Done: tests/test_parser.py imports src/new.")))
    yield sample_request(messages=later[-2:], span=later, previous=first, version=2)
    yield sample_request(span=())
    silent = (
        *as_log(_HISTORY),
        Message("assistant", "", id="empty"),
        Message("user", ({"type": "image"},), id="image"),
    )
    yield sample_request(messages=silent, span=silent)


def _ask(summarizer: Summarizer, request: SummaryRequest) -> StructuredSummary:
    answer = summarizer(request)
    if inspect.isawaitable(answer):
        return asyncio.run(_awaited(answer))
    return answer


async def _awaited(answer: Awaitable[StructuredSummary]) -> StructuredSummary:
    return await answer


def _without_accounts(request: SummaryRequest) -> dict[str, object]:
    """Return what a request says, without what was spent on it, which a summariser adds to."""
    said = {field.name: getattr(request, field.name) for field in fields(request)}
    return {name: value for name, value in said.items() if name not in ("spending", "tally", "count_text")}


def _check_answer(summarizer: Summarizer, request: SummaryRequest) -> StructuredSummary:
    before = deepcopy(_without_accounts(request))
    summary = _ask(summarizer, request)
    _check_summary(summary, request)
    assert _without_accounts(request) == before, "the request was changed"
    return summary


def _check_summary(summary: object, request: SummaryRequest) -> None:
    assert isinstance(summary, StructuredSummary), f"a summary is a StructuredSummary, not {type(summary).__name__}"
    stored = json.loads(json.dumps(summary.to_dict()))
    assert StructuredSummary.from_dict(stored) == summary, "a summary comes back from a store as it was"
    by_model = (summary.narrative, summary.facts, summary.decisions, summary.tool_outcomes, summary.open_items)
    by_code = (summary.excerpts, summary.ledger)
    assert any((*by_model, *by_code)), "a summary says something"
    known = {message.id for message in (*request.messages, *request.span)}
    for source_id in _sources(summary):
        assert source_id in known, f"{source_id!r} is no message that the summary was made of"
    text = render_summary_text(summary, version=request.version, messages=len(request.span))
    tokens = request.count_text(text)
    assert tokens <= request.max_tokens, f"the summary has {tokens} tokens, {request.max_tokens} were allowed"


def _sources(summary: StructuredSummary) -> Iterator[str]:
    parts = (*summary.ledger, *summary.decisions, *summary.tool_outcomes, *summary.open_items)
    for part in parts:
        yield from part.source_ids
    yield from (excerpt.source_id for excerpt in summary.excerpts if excerpt.source_id)
