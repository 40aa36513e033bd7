"""The model that writes the demo's summaries: a script in place of a server, which fails once as a server would."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from compact.summarizers.clients.model_client import CompletionRequest, ModelAnswer, ModelBusy

if TYPE_CHECKING:
    from compact.core.engine.events import EventSink
    from compact.summarizers.llm.summarizer import LlmSummarizer

# It has a price: the summaries of the demo have a bill.
SUMMARY_MODEL = "gpt-4o-mini"
# Chosen: the first summary is well written, so that the failure is seen against it.
FAILING_REQUEST = 2
_FAILURE = f"{SUMMARY_MODEL}: InternalServerError (500), The server had an error while processing your request"


@cache
def load_script() -> Mapping[str, Any]:
    """Return what the demo knows of its session: tools, constraints, and what the model answers."""
    return tomllib.loads(files("compact.cli.demo").joinpath("script.toml").read_text("utf-8"))


class ScriptedModel:
    """Answers a request with what its script says of the messages that it is asked to read; one request fails."""

    def __init__(self, count_text: Callable[[str], int], *, failing_request: int = FAILING_REQUEST) -> None:
        self._count, self._failing_request = count_text, failing_request
        self.requests = 0

    def __call__(self, request: CompletionRequest) -> ModelAnswer:
        """Return the answer to one request."""
        self.requests += 1
        if self.requests == self._failing_request:
            raise ModelBusy(_FAILURE)
        text = json.dumps(_answer_to(request.prompt), ensure_ascii=False)
        read = self._count(request.system) + self._count(request.prompt)
        return ModelAnswer(text=text, input_tokens=read, output_tokens=self._count(text))


def _answer_to(prompt: str) -> dict[str, Any]:
    """Return the JSON object that a prompt asks for."""
    answer: dict[str, Any] = {"decisions": [], "open_items": [], "closed_items": [], "tool_outcomes": [], "facts": []}
    for known, source in _read_answers(prompt):
        sources = {"source_ids": [source]}
        if "decision" in known:
            answer["decisions"].append({"decision": known["decision"], "rationale": known["rationale"], **sources})
        if "outcome" in known:
            subject, outcome = known["outcome"]
            answer["tool_outcomes"].append({"tool": subject, "outcome": outcome, **sources})
        answer["open_items"] += [{"item": item, **sources} for item in known.get("open", ())]
        answer["closed_items"] += known.get("closes", ())
        answer["facts"] += known.get("facts", ())
        answer["narrative"] = known.get("narrative", answer.get("narrative", ""))
    return answer


def _read_answers(prompt: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the answers whose calls are in a prompt, each with the name of its message there."""
    for known in load_script()["answers"]:
        found = re.search(rf"^\[(\S+)\] assistant calls .*{re.escape(known['call'])}", prompt, re.MULTILINE)
        if found:
            yield known, found[1]


def build_summarizer(emit: EventSink) -> LlmSummarizer:
    """Build the library's own summariser around the script; each request is an event, as with any other model."""
    from compact.summarizers.clients.observed import EventEmittingClient
    from compact.summarizers.clients.retrying import RetryPolicy
    from compact.summarizers.llm.summarizer import LlmSummarizer
    from compact.tokens import get_tokenizer, model_info

    count_text = get_tokenizer(SUMMARY_MODEL).count_text
    return LlmSummarizer(
        EventEmittingClient(client=ScriptedModel(count_text), emit=emit, model=SUMMARY_MODEL, provider="openai"),
        model=SUMMARY_MODEL,
        window_tokens=model_info(SUMMARY_MODEL).window_tokens,
        count_text=count_text,
        # A server would be asked again, after pauses that nobody wants to watch.
        retries=RetryPolicy(tries=1),
    )
