"""The providers' packages: load one, say how to install one that is missing, and what their errors mean for us."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

from compact.core.errors import ConfigError, SummarizerUnavailable, SummaryFailed, SummaryRefused
from compact.core.facts.text import one_line
from compact.extras import install_line
from compact.summarizers.clients.model_client import ModelBusy, ParameterRejected, WindowExceeded

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
# Chosen: enough for the reason that a provider gives.
_MAX_ERROR_CHARS = 300
_BUSY = frozenset({408, 409, 425, 429})


def load_package(package: str) -> Any:
    """Return a provider's package; raise ConfigError if it is not installed."""
    require_package(package)
    return import_module(package)


def require_package(package: str) -> None:
    """Raise ConfigError if a package is not installed, without the cost of loading it; its extra has the same name."""
    if find_spec(package) is None:
        raise ConfigError(
            f"the summariser needs the package {package}",
            field="summarizer.provider",
            hint=f"{install_line(package)}, or set summarizer.kind to extractive",
        )


def read_error(error: Exception, *, model: str, sent: Iterable[str] = ()) -> SummaryFailed:
    """Return what an error of a provider's package means for us; `sent` are the parameters that the call had."""
    status = getattr(error, "status_code", None)
    text = _text(error)
    what = f"{model}: {type(error).__name__}" + (f" ({status})" if status else "") + f", {_short_line(text)}"
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
    """Return what it means that a server understood the request and does not take it as it is."""
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
    """Return what no answer at all means: a broken connection is tried again, a client without a key is not."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"APIConnectionError", "APITimeoutError", "TimeoutError", "ConnectionError", "HTTPError"}:
        cause = f" ({_short_line(str(error.__cause__))})" if error.__cause__ else ""
        return ModelBusy(what + cause, hint="check summarizer.base_url, and that its server is running")
    if names & {"APIResponseValidationError", "JSONDecodeError"}:
        return ModelBusy(what)
    return SummarizerUnavailable(what, hint="check the API key: summarizer.api_key_env, or the provider's own variable")


def _text(error: Exception) -> str:
    return f"{getattr(error, 'code', None) or ''} {getattr(error, 'message', None) or error}".strip()


def _short_line(text: str) -> str:
    return one_line(text.partition("Traceback (most recent call last)")[0], _MAX_ERROR_CHARS)


def _retry_after(error: Exception) -> float | None:
    """Return the seconds a server asks to wait, in either of the ways it may say so."""
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
    """Return the seconds between two dates of HTTP, by the server's own clock."""
    from email.utils import parsedate_to_datetime  # a large package for a rare header

    try:
        return max(0.0, (parsedate_to_datetime(moment) - parsedate_to_datetime(now)).total_seconds())
    except (TypeError, ValueError):
        return None
