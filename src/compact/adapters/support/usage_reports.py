"""Usage as providers report it: found in an answer or in a part of one, under the names that a manager knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compact.adapters.support.requests import prompt_tokens
from compact.core.json_data import is_list, is_mapping


def usage_in(answer: object) -> dict[str, Any] | None:
    """Return the report in a whole answer, in one event of a stream, or in a list of events; None if there is none.

    Of several events the first one counts: later ones may include what tools of the provider have read since.
    """
    if is_list(answer):
        found = [report for part in answer if (report := usage_in(part))]
        return {name: value for report in reversed(found) for name, value in report.items()} or None
    if not is_mapping(answer):
        return None
    for holder in (answer, answer.get("response"), answer.get("message")):
        report = _report_in(holder) if is_mapping(holder) else None
        if report is not None:
            # Some servers begin a stream with zeros and report the figures at its end.
            return {name: value for name, value in report.items() if value}
    return None


def _report_in(holder: Mapping[str, Any]) -> Mapping[str, Any] | None:
    usage, of_gemini = holder.get("usage"), holder.get("usageMetadata")
    if is_mapping(usage):
        return _of_converse(usage) if "inputTokens" in usage else usage
    if is_mapping(of_gemini):
        cached = of_gemini.get("cachedContentTokenCount")  # these are counted in the prompt, too
        return {"prompt_tokens": of_gemini.get("promptTokenCount"), "cache_read_tokens": cached}
    if "prompt_eval_count" in holder:  # Ollama
        return {"prompt_tokens": holder["prompt_eval_count"], "completion_tokens": holder.get("eval_count")}
    return None


def _of_converse(usage: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a report of Bedrock; what came from its cache is beside the input tokens."""
    total = prompt_tokens(
        reported=usage.get("inputTokens"), output=usage.get("outputTokens"), total=usage.get("totalTokens")
    )
    read, written = usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens")
    return {"input_tokens": total, "cache_read_tokens": read, "cache_write_tokens": written}
