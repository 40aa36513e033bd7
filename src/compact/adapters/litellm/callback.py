"""A callback of LiteLLM that compacts chat completions, and feeds the reported usage back."""

# LiteLLM's own functions have untyped parameters.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias
from uuid import uuid4

import litellm
from litellm.integrations.custom_logger import CustomLogger

from compact.adapters.litellm.defaults import default_output_tokens
from compact.adapters.support import (
    OutgoingRequest,
    PreparedRequest,
    RecentDict,
    RequestPreparer,
    SessionFinder,
    UsageFeedback,
    aobserve_overflow,
    checked_manager,
    counted,
    named_session,
    observe_overflow,
    output_limit,
)
from compact.dialects.dialect import without_cache_marks
from compact.dialects.objects import plain_item
from compact.manager import CompactManager

SessionId: TypeAlias = str | Callable[[Mapping[str, Any]], str] | None
_CHAT_CALLS = ("completion", "acompletion")


class CompactionLogger(CustomLogger):
    """Compacts what LiteLLM sends, and takes in the usage that comes back.

    A session is named by `session_id`, by LiteLLM's own `litellm_session_id`, or by `metadata["session_id"]`; without
    any it is known by its history for as long as the process lives.

    Args:
        manager: Keeps the sessions.
        session_id: Names the session: a text, or a function of the call's arguments.
        strict: Raise what goes wrong; by default the request goes out as it is then, and an event says why.

    Example:
        >>> import litellm
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.adapters.litellm import CompactionLogger
        >>> compacting = CompactionLogger(CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=8_000)))
        >>> litellm.callbacks.append(compacting)  # every `acompletion` from here on
        >>> litellm.callbacks.remove(compacting)  # switches it off again
    """

    def __init__(self, manager: CompactManager, *, session_id: SessionId = None, strict: bool = False) -> None:
        super().__init__()
        self._manager = manager
        self._session_id = session_id
        self._finder = SessionFinder("litellm", normalise=without_cache_marks, is_busy=checked_manager(manager).is_busy)
        self._preparer: RequestPreparer[Mapping[str, Any]] = RequestPreparer(
            manager, "litellm", session_of=self._session_of, read=self._read, strict=strict
        )
        self._usage = UsageFeedback()
        self._calls: RecentDict[str, tuple[str, int]] = RecentDict()  # call id: session id, call number
        self._own_calls: RecentDict[str, None] = RecentDict()  # those made by `completion` and `acompletion`

    # -- before a call --------------------------------------------------------------------------------------------

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Return the arguments of a call with the messages that are to be sent; None leaves it alone."""
        is_own = kwargs.get("litellm_call_id") in self._own_calls
        if is_own or getattr(call_type, "value", call_type) not in _CHAT_CALLS or not self._has_messages(kwargs):
            return None
        return self._arguments(kwargs, await self._preparer.aprepare(kwargs))

    def prepare(self, **kwargs: Any) -> dict[str, Any]:
        """Return the arguments for `litellm.completion`, with the messages that are to be sent.

        Args:
            kwargs: The arguments of the call, `messages` among them.

        Example:
            >>> from compact.testing import tool_run
            >>> arguments = compacting.prepare(model="gpt-4o", messages=tool_run(60, words=200))
            >>> len(arguments["messages"]) < 121
            True
        """
        if not self._has_messages(kwargs):
            return kwargs
        kwargs.setdefault("litellm_call_id", str(uuid4()))
        return self._arguments(kwargs, self._preparer.prepare(kwargs))

    def completion(self, **kwargs: Any) -> Any:
        """Call `litellm.completion`, compacted: LiteLLM has no hook before the synchronous call.

        Args:
            kwargs: The arguments of the call, `messages` among them.

        Returns:
            What `litellm.completion` returns.

        Example:
            >>> from compact.testing import ScriptedModel, say
            >>> history = [{"role": "user", "content": "Hello"}]
            >>> with ScriptedModel(say("Hi.")) as model:
            ...     server = {"model": "openai/gpt-4o", "api_base": model.base_url, "api_key": "none"}
            ...     answer = compacting.completion(messages=history, **server)
            >>> answer.choices[0].message.content
            'Hi.'
        """
        if not self._has_messages(kwargs):
            return litellm.completion(**kwargs)
        kwargs.setdefault("litellm_call_id", str(uuid4()))
        call_ids: list[str] = []

        def call(prepared: PreparedRequest) -> Any:
            arguments = self._own_arguments(kwargs, prepared, call_ids)
            response: Any = litellm.completion(**arguments)
            return response

        _, response = self._preparer.send(kwargs, call)
        if kwargs.get("stream"):
            _watch(response, lambda chunk: self._observe(call_ids[-1], chunk))
        else:
            self._observe(call_ids[-1], response)
        return response

    async def acompletion(self, **kwargs: Any) -> Any:
        """`completion` for an event loop; same arguments, result and errors.

        Beside the callback it has one use: a prompt that the provider refuses as too long is sent once more, smaller.
        LiteLLM shows its callbacks an error only when the call is over.

        Example:
            >>> import asyncio
            >>> from compact.testing import ScriptedModel, say
            >>> history = [{"role": "user", "content": "Hello"}]
            >>> with ScriptedModel(say("Hi.")) as model:
            ...     server = {"model": "openai/gpt-4o", "api_base": model.base_url, "api_key": "none"}
            ...     answer = asyncio.run(compacting.acompletion(messages=history, **server))
            >>> answer.choices[0].message.content
            'Hi.'
        """
        if not self._has_messages(kwargs):
            return await litellm.acompletion(**kwargs)
        kwargs.setdefault("litellm_call_id", str(uuid4()))
        call_ids: list[str] = []

        async def call(prepared: PreparedRequest) -> Any:
            return await litellm.acompletion(**self._own_arguments(kwargs, prepared, call_ids))

        _, response = await self._preparer.asend(kwargs, call)
        if kwargs.get("stream"):
            _awatch(response, lambda chunk: self._aobserve(call_ids[-1], chunk))
        else:
            await self._aobserve(call_ids[-1], response)
        return response

    def _own_arguments(
        self, kwargs: Mapping[str, Any], prepared: PreparedRequest, call_ids: list[str]
    ) -> dict[str, Any]:
        """Return the arguments of a call that is made here, and note its id: the callback leaves such calls alone.

        A second call has an id of its own, because LiteLLM reports on the first one late.
        """
        arguments = self._arguments(kwargs, prepared)
        known = arguments["litellm_call_id"]
        if call_ids:
            arguments["litellm_call_id"] = str(uuid4())
            if known in self._calls:
                self._calls[arguments["litellm_call_id"]] = self._calls.pop(known)
        call_ids.append(arguments["litellm_call_id"])
        self._own_calls[call_ids[-1]] = None
        return arguments

    def session_of(self, **kwargs: Any) -> str:
        """Return the session of a call with these arguments, for `manager.recall` and other questions.

        Args:
            kwargs: The arguments of the call, `messages` among them.

        Example:
            >>> compacting.session_of(messages=[], litellm_session_id="chat-1")
            'chat-1'
        """
        return self._session_of(kwargs)

    def _session_of(self, kwargs: Mapping[str, Any]) -> str:
        metadata: Mapping[str, Any] = kwargs.get("metadata") or {}
        named = (
            named_session(self._session_id, kwargs)
            if self._session_id is not None
            else str(kwargs.get("litellm_session_id") or metadata.get("session_id") or "")
        )
        return named or self._finder.find([plain_item(message) for message in kwargs["messages"]])

    def _has_messages(self, kwargs: Mapping[str, Any]) -> bool:
        if isinstance(kwargs.get("messages"), list | tuple):
            return True
        message = "a call without messages= is not compacted: LiteLLM shows its hooks keyword arguments only"
        self._preparer.notice_once("", message, severity="high")
        return False

    def _read(self, kwargs: Mapping[str, Any], session_id: str) -> OutgoingRequest:
        call_id = kwargs.get("litellm_call_id")
        if call_id:
            self._calls[call_id] = session_id, self._usage.begin(session_id)
        model = str(kwargs.get("model") or "")
        return OutgoingRequest(
            items=list(kwargs["messages"]),
            tools=kwargs.get("tools") or (),
            output_tokens=output_limit(kwargs) or default_output_tokens(model, kwargs.get("custom_llm_provider")),
            model=model,
            dialect="chat",
        )

    def _arguments(self, kwargs: Mapping[str, Any], prepared: PreparedRequest) -> dict[str, Any]:
        if prepared.error is not None:  # the usage of this call is not about a prompt of ours
            self._calls.pop(kwargs.get("litellm_call_id", ""), None)
        return {**kwargs, "messages": prepared.items_or(kwargs["messages"])}

    # -- after a call ---------------------------------------------------------------------------------------------

    async def async_post_call_success_deployment_hook(self, request_data: Any, response: Any, call_type: Any) -> None:
        """Take in the usage of a whole answer, as soon as it is there."""
        await self._aobserve(request_data.get("litellm_call_id"), response)

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Take in the usage of a stream, which is known at its end."""
        await self._aobserve(kwargs.get("litellm_call_id"), response_obj)

    def log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Take in the usage of a synchronous call."""
        self._observe(kwargs.get("litellm_call_id"), response_obj)

    async def async_log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Learn from a prompt that was refused as too long, for the next call."""
        session_id, error = self._refused(kwargs)
        if session_id and error:
            await aobserve_overflow(self._manager, session_id, error)

    def log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Learn from a synchronous call whose prompt was refused as too long, for the next call."""
        session_id, error = self._refused(kwargs)
        if session_id and error:
            observe_overflow(self._manager, session_id, error)

    def _refused(self, kwargs: Mapping[str, Any]) -> tuple[str, Exception | None]:
        """Return the session and the error of a call that failed, if it is the newest of its session."""
        call_id, error = kwargs.get("litellm_call_id") or "", kwargs.get("exception")
        call = None if call_id in self._own_calls else self._calls.pop(call_id, None)
        if call is None or not isinstance(error, Exception) or not self._usage.is_newest(*call):
            return "", None
        return call[0], error

    def _observe(self, call_id: str | None, response: Any) -> None:
        session_id = self._note(call_id, response)
        if session_id:
            self._usage.apply(self._manager, session_id)

    async def _aobserve(self, call_id: str | None, response: Any) -> None:
        session_id = self._note(call_id, response)
        if session_id:
            await self._usage.aapply(self._manager, session_id)

    def _note(self, call_id: str | None, response: Any) -> str:
        """Keep the usage of a call, which LiteLLM may report twice, and late; return its session, empty if unknown."""
        told = _reported(getattr(response, "usage", None))
        call = self._calls.get(call_id or "")
        if call is None or told is None:
            return ""
        session_id, number = call
        self._usage.report(session_id, number, told)
        return session_id


def _watch(stream: Any, look: Callable[[Any], None]) -> None:
    """Have each chunk of a stream shown to `look`; the last may report the usage. The stream stays what it is."""
    own: Any = stream.__class__

    def advance(self: Any) -> Any:
        chunk = own.__next__(self)
        look(chunk)
        return chunk

    stream.__class__ = type(own.__name__, (own,), {"__next__": advance, "__module__": own.__module__})


def _awatch(stream: Any, look: Callable[[Any], Awaitable[None]]) -> None:
    """Do what `_watch` does for a stream in an event loop."""
    own: Any = stream.__class__

    async def advance(self: Any) -> Any:
        chunk = await own.__anext__(self)
        await look(chunk)
        return chunk

    stream.__class__ = type(own.__name__, (own,), {"__anext__": advance, "__module__": own.__module__})


def _reported(usage: Any) -> object:
    """Return what LiteLLM says a provider has counted: for every provider, cached tokens are in the prompt's."""
    details = getattr(usage, "prompt_tokens_details", None)
    return counted(
        getattr(usage, "prompt_tokens", None),
        cache_read=getattr(details, "cached_tokens", None),
        cache_write=getattr(details, "cache_creation_tokens", None),
    )
