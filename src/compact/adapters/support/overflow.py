"""Recognise that a provider refused a prompt as too long, and read its figures: the limit, and what it counted.

Providers agree on no code and no wording, and gateways hand on the words of others, so errors are known by their text.
The texts are listed in `tests/adapters/test_overflow.py`, with those that look alike and mean something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from compact.core.json_data import is_mapping
from compact.model_engines import ReportedOverflow

# Chosen: longer than any such error. What stands behind it may be the prompt itself.
_MOST_CHARACTERS = 4_000
# Chosen: frameworks wrap a client's error once or twice.
_MOST_CAUSES = 5
# Statuses of other troubles: keys, rights, unknown models, rates.
_OTHER_STATUSES = frozenset({401, 402, 403, 404, 429})
# Statuses of a response that may be such a refusal; llama.cpp once had 500 for it.
REFUSALS = frozenset({400, 413, 422, 500})


def find_overflow(error: BaseException) -> ReportedOverflow | None:
    """Return what an exception of a client or a framework says of an overflow; None if it is about something else."""
    for each in _causes(error):
        found = read_overflow(_text_of(each), _status_of(each))
        if found:
            return found
    return None


def read_overflow(text: str, status: int = 0) -> ReportedOverflow | None:
    """Return what the text of an error says of an overflow; None if it is about something else."""
    text = text[:_MOST_CHARACTERS]
    if status in _OTHER_STATUSES or _OTHER_LIMITS.search(text):
        return None
    for pattern in _WITH_FIGURES:
        if found := pattern.search(text):
            return _overflow(found)
    return ReportedOverflow() if _WITHOUT_FIGURES.search(text) else None


# -- texts ------------------------------------------------------------------------------------------------------------

# Limits that a shorter prompt does not meet, or that are not counted in tokens: rates and quotas, the length of an
# answer, bytes and characters.
_OTHER_LIMITS = re.compile(
    r"per[ _-](?:min|hour|day)|\bTP[MD]\b|rate[ _-]?limit|quota|throttl|too many requests|resource_exhausted"
    r"|completion tokens, whereas|maximum allowed number of output tokens"
    r"|request_too_large|request entity too large|payload size|string_above_max_length",
    re.IGNORECASE,
)


def _pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern in which `<name>` stands for a number of that name, with or without commas."""
    return re.compile(re.sub(r"<(\w+)>", r"(?P<\1>\\d[\\d,_]*)", text), re.IGNORECASE | re.DOTALL)


# The groups: `limit`, or `input_limit` where it is for the prompt alone; `prompt`, or `total` with the answer, or
# `excess` over the limit; `output`. The first pattern that fits is taken.
_WITH_FIGURES = tuple(
    map(
        _pattern,
        (
            # OpenAI, Azure, DeepSeek, vLLM, OpenRouter: with the room for the answer
            r"maximum context length is <limit> tokens.{0,40}requested (?:about )?<total> tokens"
            r" \(.{0,120}?<output> (?:in|for) the (?:completion|output)",
            # vLLM since 2026, and before
            r"maximum context length is <limit> tokens.{0,40}requested <output> output tokens.{0,40}?<prompt> input",
            r"too large: <output>\..{0,20}maximum context length is <limit> tokens and your request has <prompt> input",
            r"passed <prompt> input tokens(?: and requested <output> output tokens)?"
            r".{0,80}context length is only <limit> tokens",
            r"prompt \((?:total )?length <prompt>\) is (?:longer than the maximum model length of"
            r"|too long to fit into the model \(context length) <limit>",
            # SGLang; Together
            r"maximum context length of <limit> tokens\. You requested a total of <total> tokens"
            r".{0,80}?<output> tokens for the completion",
            r"\(<prompt> tokens\) is longer than the model.{0,3}s context length \(<limit> tokens",
            # OpenAI and its kin: the messages alone
            r"maximum context length is <limit> tokens.{0,60}?(?:resulted in|requested|contains) (?:about )?<prompt>",
            r"tokens exceed the configured limit of <input_limit> tokens(?:.{0,40}resulted in <prompt> tokens)?",
            # Anthropic, also at Bedrock and Vertex
            r"prompt is too long: <prompt> tokens > <limit> maximum",
            r"exceed context limit: <prompt> \+ <output> > <limit>",
            # Fireworks
            r"prompt is too long: <prompt>, model maximum context length: <limit>",
            # Gemini
            r"input token count(?: \(<prompt>\))? exceeds the maximum number of tokens allowed \(?<input_limit>",
            r"input token count is <prompt> but .{0,30}supports up to <input_limit>",
            # llama.cpp and llama-cpp-python; LM Studio
            r"\(<prompt> tokens\) exceeds the available context size \(<limit> tokens",
            r"\A(?=.*available context size)(?=.*n_prompt_tokens\W{1,4}<prompt>)(?=.*n_ctx\W{1,4}<limit>)",
            r"requested tokens \(<prompt>\) exceed context window of <limit>",
            r"loaded with context length of only <limit> tokens",
            # Mistral
            r"prompt contains <prompt> tokens.{0,40}too large for model with <limit> maximum context length",
            # xAI
            r"maximum prompt length is <input_limit> but the request contains <prompt> tokens",
            # Moonshot
            r"exceeded model token limit: <limit>(?: \(requested: <total>\))?",
            # Cohere
            r"\(prompt and prediction\) cannot exceed <limit> - received <total>",
            r"in the prompt cannot exceed <input_limit> - received <prompt>",
            r"size limit exceeded by <excess> tokens.{0,120}?limit for this model is <input_limit> tokens",
            # Copilot
            r"prompt token count of <prompt> exceeds the limit of <input_limit>",
            # Alibaba
            r"range of input length should be \[\d+, <input_limit>\]",
            # Cerebras
            r"current length is <prompt> while limit is <limit>",
            # Hugging Face
            r"`max_new_tokens` must be <= <limit>\. Given: <prompt> `inputs` tokens and <output> ",
            r"`inputs` must have less than <input_limit> tokens\. Given: <prompt>",
            # Replicate
            r"max input length is <input_limit> tokens, but you supplied <prompt> tokens",
            # whoever names the limit and no more
            r"maximum context (?:length|window)(?: is| of) <limit> tokens",
        ),
    )
)
_WITHOUT_FIGURES = re.compile(
    r"context_length_exceeded|exceed_context_size_error|model_context_window_exceeded"
    r"|ContextWindowExceededError|ContextWindowOverflowException"
    r"|exceeds the context window|context window exceeds limit|exceeds? (?:the |your )?context (?:limit|window|length)"
    r"|exceeds (?:the |its )?(?:model's )?maximum context length|maximum context length exceeded"
    r"|prompt is too long|input is too long for requested model|input tokens exceeded"
    r"|prompt too long; exceeded (?:max )?context length|exceeds the available context size"
    r"|greater than the context length|longer than the model.{0,3}s (?:maximum )?context length"
    r"|reduce the length of the messages|prompt exceeds max length",
    re.IGNORECASE,
)


def _overflow(found: re.Match[str]) -> ReportedOverflow:
    figures = {name: int(re.sub(r"\D", "", digits)) for name, digits in found.groupdict().items() if digits}
    limits_input = "input_limit" in figures
    limit = figures.get("input_limit") or figures.get("limit")
    prompt, output = figures.get("prompt"), figures.get("output")
    if "total" in figures:
        prompt = figures["total"] - (output or 0)
    elif "excess" in figures and limit:
        prompt = limit + figures["excess"]
    return ReportedOverflow(limit_tokens=limit, prompt_tokens=prompt, output_tokens=output, limits_input=limits_input)


# -- exceptions -------------------------------------------------------------------------------------------------------


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those that it was raised from, the outermost first."""
    current: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if current is None:
            return
        yield current
        current = current.__cause__ or current.__context__


def _text_of(error: BaseException) -> str:
    """Return all that an exception says: its class, its text, the body that a client keeps of the response."""
    parts = [type(error).__name__, str(error)]
    for name in ("body", "response", "details"):
        kept: Any = getattr(error, name, None)
        if is_mapping(kept):
            parts.append(_as_text(kept))
        elif isinstance(kept, str):
            parts.append(kept)
    return "\n".join(part[:_MOST_CHARACTERS] for part in parts)


def _as_text(body: Mapping[str, Any]) -> str:
    return json.dumps(body, default=str, ensure_ascii=False)


def _status_of(error: BaseException) -> int:
    for name in ("status_code", "code", "status"):
        value: Any = getattr(error, name, None)
        if isinstance(value, int):
            return value
    return 0
