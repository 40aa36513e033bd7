"""Reads the errors of the providers' own clients, which look alike: what to do about each is ours to say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from compact.core.errors import SummarizerUnavailable, SummaryFailed, SummaryRefused
from compact.summarizers.model_client import ModelBusy, ParameterRejected, WindowExceeded

_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|prompt is too long|too many (?:input )?tokens"
    r"|input (?:is )?too long|exceeds? (?:the )?(?:model|context|token limit|maximum)|request_too_large",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content[ _-]?(?:filter|policy)|safety system|responsible ?ai", re.IGNORECASE)
_NO_KEY = re.compile(r"missing [\w ]*(?:api )?key\b|api[ _]key (?:is )?(?:missing|not set)", re.IGNORECASE)
# Not asked again: nothing changes by waiting.
_HINTS = {
    401: "check the API key: summarizer.api_key_env, or the provider's own variable",
    403: "check that this key may use the model",
    404: "check summarizer.model and summarizer.base_url",
}
_BUSY = frozenset({408, 409, 425, 429})


def explained(error: Exception, *, model: str, sent: Iterable[str] = ()) -> SummaryFailed:
    """What an error of a client means for us; `sent` are the parameters that the call carried."""
    status = getattr(error, "status_code", None)
    text = _text(error)
    what = f"{model}: {type(error).__name__}" + (f" ({status})" if status else "") + f", {_short(text)}"
    if not isinstance(status, int):
        return _without_status(error, what)
    if "insufficient_quota" in text:
        return SummarizerUnavailable(what, hint="the provider's quota for this key is used up")
    if _NO_KEY.search(text):  # litellm calls that an error of the server
        return SummarizerUnavailable(what, hint=_HINTS[401])
    if status in _BUSY or status >= 500:
        return ModelBusy(what, retry_after_seconds=_retry_after(error))
    return _unacceptable(error, status, what, text, tuple(sent))


def _unacceptable(error: Exception, status: int, what: str, text: str, sent: tuple[str, ...]) -> SummaryFailed:
    """The server understood the request and will not take it as it is."""
    named = getattr(error, "param", None)
    if status in (400, 422) and named in sent:
        return ParameterRejected(what, name=str(named))
    if status == 413 or (status in (400, 422) and _TOO_LONG.search(text)):
        return WindowExceeded(what, hint="set summarizer.max_context_tokens to the model's window")
    if status in (400, 422):
        mentioned = next((name for name in sent if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)), "")
        if mentioned:
            return ParameterRejected(what, name=mentioned)
        if _FILTERED.search(text):
            return SummaryRefused(what)
    return SummarizerUnavailable(what, hint=_HINTS.get(status, ""))


def _without_status(error: Exception, what: str) -> SummaryFailed:
    """No answer at all: a connection that broke or timed out is tried again, a client without a key is not."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"APIConnectionError", "APITimeoutError", "TimeoutError", "ConnectionError", "HTTPError"}:
        cause = f" ({_short(str(error.__cause__))})" if error.__cause__ else ""
        return ModelBusy(what + cause, hint="check summarizer.base_url, and that its server is running")
    if names & {"APIResponseValidationError", "JSONDecodeError"}:
        return ModelBusy(what)
    return SummarizerUnavailable(what, hint="check the API key: summarizer.api_key_env, or the provider's own variable")


def _text(error: Exception) -> str:
    return f"{getattr(error, 'code', None) or ''} {getattr(error, 'message', None) or error}".strip()


def _short(text: str) -> str:
    line = " ".join(text.partition("Traceback (most recent call last)")[0].split())
    return line if len(line) <= 300 else line[:300] + " …"


def _retry_after(error: Exception) -> float | None:
    """The seconds a server asks to wait, in either of the ways it may say so."""
    headers = getattr(error, "litellm_response_headers", None)
    headers = headers or getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        return None
    found = cast(Mapping[str, Any], headers)
    milliseconds, seconds = found.get("retry-after-ms"), found.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(seconds)) if seconds is not None else None
    except ValueError:
        return _until(str(seconds), str(found.get("date", "")))


def _until(moment: str, now: str) -> float | None:
    """Seconds between two dates of HTTP, by the server's own clock."""
    from email.utils import parsedate_to_datetime  # a large package for a rare header

    try:
        return max(0.0, (parsedate_to_datetime(moment) - parsedate_to_datetime(now)).total_seconds())
    except (TypeError, ValueError):
        return None
