"""`wrap`: returns a client that compacts every conversation before it is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from compact.adapters.clients.compaction import ClientCompactor, SessionId
from compact.core.errors import ConfigError
from compact.manager import CompactManager

C = TypeVar("C")

_KNOWN = (
    "openai.OpenAI, openai.AsyncOpenAI, anthropic.Anthropic, anthropic.AsyncAnthropic, google.genai.Client, "
    'boto3.client("bedrock-runtime"), and the models of AutoGen, LlamaIndex and smolagents'
)


def wrap(client: C, manager: CompactManager | None = None, *, session_id: SessionId = None) -> C:
    """Return a client like the one passed in, whose requests are compacted before they are sent.

    Streams, `.stream(...)` and `.parse(...)` are compacted too, and the usage that answers report is taken in. If
    compaction fails, the request goes out as it is.

    Args:
        client: `OpenAI`, `AsyncOpenAI`, Azure's, `Anthropic`, `AsyncAnthropic`, `google.genai.Client`,
            `boto3.client("bedrock-runtime")`, or a model of AutoGen, LlamaIndex or smolagents. It is not changed.
        manager: Compacts; by default a `CompactManager()` of its own.
        session_id: Names the conversation: a text, or a function of a request's body. The header `X-Compact-Session` of
            a call names it too. Without either, a conversation is known by its history for as long as the process
            lives.

    Returns:
        A client of the same class.

    Raises:
        ConfigError: It is no client that is known; the error names its type, and those that are.

    Example:
        >>> import compact
        >>> from openai import OpenAI
        >>> client = compact.wrap(OpenAI(api_key="..."))
        >>> isinstance(client, OpenAI)
        True
    """
    # Whoever has a client has imported its package: the names of its classes tell which, and nothing else is imported.
    packages = {base.__module__.partition(".")[0] for base in type(client).__mro__}
    wrapped = None
    if "openai" in packages:
        wrapped = _wrap_openai(client, manager, session_id)
    elif "anthropic" in packages:
        wrapped = _wrap_anthropic(client, manager, session_id)
    elif "google" in packages:
        wrapped = _wrap_google(client, manager, session_id)
    elif "botocore" in packages:
        wrapped = _wrap_bedrock(client, manager, session_id)
    elif framework := next((name for name in _FRAMEWORKS if name in packages), ""):
        wrapped = _FRAMEWORKS[framework](client, manager, session_id)
    if wrapped is None:
        raise _unknown(client)
    return cast(C, wrapped)


def _wrap_openai(client: object, manager: CompactManager | None, session_id: SessionId) -> object:
    from openai import AsyncOpenAI, OpenAI

    from compact.adapters.clients.openai_client import compacting_client

    if not isinstance(client, OpenAI | AsyncOpenAI):
        return None
    return compacting_client(client, ClientCompactor(manager or CompactManager(), "openai", session_id))


def _wrap_anthropic(client: object, manager: CompactManager | None, session_id: SessionId) -> object:
    from anthropic import Anthropic, AsyncAnthropic

    from compact.adapters.anthropic import compaction_middleware

    if not isinstance(client, Anthropic | AsyncAnthropic):
        return None
    return client.with_middleware(compaction_middleware(manager or CompactManager(), session_id=session_id))


def _wrap_google(client: object, manager: CompactManager | None, session_id: SessionId) -> object:
    from google.genai import Client

    from compact.adapters.clients.google_client import compacting_client

    if not isinstance(client, Client):
        return None
    return compacting_client(client, ClientCompactor(manager or CompactManager(), "google", session_id))


def _wrap_bedrock(client: Any, manager: CompactManager | None, session_id: SessionId) -> object:
    from compact.adapters.clients.bedrock_client import SERVICE, compacting_client

    service = getattr(getattr(client, "meta", None), "service_model", None)
    if getattr(service, "service_name", None) != SERVICE:
        return None
    return compacting_client(client, ClientCompactor(manager or CompactManager(), "bedrock", session_id))


def _wrap_autogen(client: Any, manager: CompactManager | None, session_id: SessionId) -> object:
    from autogen_core.models import ChatCompletionClient

    from compact.adapters.autogen import compacting_client

    if not isinstance(client, ChatCompletionClient):
        return None
    return compacting_client(client, ClientCompactor(manager or CompactManager(), "autogen", session_id))


def _wrap_smolagents(client: Any, manager: CompactManager | None, session_id: SessionId) -> object:
    from smolagents import Model  # pyright: ignore[reportMissingTypeStubs]

    from compact.adapters.smolagents import compacting_model

    if not isinstance(client, Model):
        return None
    return compacting_model(client, ClientCompactor(manager or CompactManager(), "smolagents", session_id))


def _wrap_llama_index(client: Any, manager: CompactManager | None, session_id: SessionId) -> object:
    from llama_index.core.llms import LLM

    from compact.adapters.llama_index import compacting_llm

    if not isinstance(client, LLM):
        return None
    return compacting_llm(client, ClientCompactor(manager or CompactManager(), "llama_index", session_id))


# Frameworks whose only complete hook is the object by which they call a model, by the package of its class.
_FRAMEWORKS: Mapping[str, Callable[[Any, CompactManager | None, SessionId], object]] = {
    "autogen_core": _wrap_autogen,
    "smolagents": _wrap_smolagents,
    "llama_index": _wrap_llama_index,
}


def _unknown(client: Any) -> ConfigError:
    kind = client if isinstance(client, type) else type(client)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(client, type):
        return ConfigError(f"wrap takes a client, not the class {name}", hint=f"wrap({kind.__name__}(…))")
    hint = f"wrap takes {_KNOWN}; for others call manager.preflight before each request, or run `compact proxy`"
    return ConfigError(f"{name} is not a client that wrap knows", hint=hint)
