"""The model that writes the demo's summaries: a script in place of a server, which fails once as a server would."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from compact.summarizers.clients.model_client import CompletionRequest, ModelAnswer, ModelBusy

if TYPE_CHECKING:
    from compact.core.engine.events import EventSink
    from compact.summarizers.llm.summarizer import LlmSummarizer

# It has a price: the summaries of the demo have a bill.
SUMMARY_MODEL = "gpt-4o-mini"
_FAILURE = f"{SUMMARY_MODEL}: InternalServerError (500), The server had an error while processing your request"


@cache
def load_script() -> Mapping[str, Any]:
    """Return what the demo knows of its session: tools, constraints, and what the model answers."""
    return tomllib.loads(files("compact.cli.demo").joinpath("script.toml").read_text("utf-8"))


class DemoModel:
    """Answers a request with what its script says of the messages that it is asked to read, unless it is down."""

    def __init__(self) -> None:
        self._is_down = False

    @contextmanager
    def down(self) -> Generator[None]:
        """Answer no request, as a server that fails."""
        self._is_down = True
        try:
            yield
        finally:
            self._is_down = False

    def __call__(self, request: CompletionRequest) -> ModelAnswer:
        """Return the answer to one request."""
        if self._is_down:
            raise ModelBusy(_FAILURE)
        text = json.dumps(_answer_to(request.prompt), ensure_ascii=False)
        read = count_text(request.system) + count_text(request.prompt)
        return ModelAnswer(text=text, input_tokens=read, output_tokens=count_text(text))


def count_text(text: str) -> int:
    """Return the tokens that the model counts for a text."""
    from compact.tokens import get_tokenizer

    return get_tokenizer(SUMMARY_MODEL).count_text(text)


def _answer_to(prompt: str) -> dict[str, Any]:
    """Return the JSON object that a prompt asks for."""
    answer: dict[str, Any] = {"decisions": [], "tool_outcomes": [], "facts": []}
    for known, source in _read_answers(prompt):
        sources = {"source_ids": [source]}
        if "decision" in known:
            answer["decisions"].append({"decision": known["decision"], "rationale": known["rationale"], **sources})
        if "outcome" in known:
            subject, outcome = known["outcome"]
            answer["tool_outcomes"].append({"tool": subject, "outcome": outcome, **sources})
        answer["facts"] += known.get("facts", ())
        answer["narrative"] = known.get("narrative", answer.get("narrative", ""))
    return answer if any(answer.values()) else {"narrative": load_script()["otherwise"]}


def _read_answers(prompt: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the answers whose calls are in a prompt, each with the name of its message there."""
    for known in load_script()["answers"]:
        found = re.search(rf"^\[(\S+)\] assistant calls .*{re.escape(known['call'])}", prompt, re.MULTILINE)
        if found:
            yield known, found[1]


def build_summarizer(model: DemoModel, emit: EventSink) -> LlmSummarizer:
    """Build the library's own summariser around the script; each request is an event, as with any other model."""
    from compact.summarizers.clients.observed import EventEmittingClient
    from compact.summarizers.clients.retrying import RetryPolicy
    from compact.summarizers.llm.summarizer import LlmSummarizer
    from compact.tokens import model_info

    return LlmSummarizer(
        EventEmittingClient(client=model, emit=emit, model=SUMMARY_MODEL, provider="openai"),
        model=SUMMARY_MODEL,
        window_tokens=model_info(SUMMARY_MODEL).window_tokens,
        count_text=count_text,
        # A server would be asked again, after pauses that nobody wants to watch.
        retries=RetryPolicy(tries=1),
    )
