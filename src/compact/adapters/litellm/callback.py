"""LiteLLM: a callback that compacts every `acompletion` (and the Router's), and a `completion` that does the same.

    import litellm
    from compact import CompactConfig, CompactManager
    from compact.adapters.litellm import CompactionLogger

    compacting = CompactionLogger(CompactManager(CompactConfig(model="gpt-4o")))
    litellm.callbacks.append(compacting)
    await litellm.acompletion(model="gpt-4o", messages=history, litellm_session_id="chat-1")
    compacting.completion(model="gpt-4o", messages=history, litellm_session_id="chat-1")  # LiteLLM has no sync hook

Only the request is compacted: the list that is passed in stays as it is.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias
from uuid import uuid4

try:
    import litellm
    from litellm.integrations.custom_logger import CustomLogger
except ImportError as error:
    raise ImportError(
        'the LiteLLM adapter needs the package litellm\nhint: pip install "compact-context[litellm]"'
    ) from error

from compact.adapters.failing_open import tell, tell_failure, without_marks
from compact.adapters.plain_items import as_plain, own_objects
from compact.adapters.which_session import SessionFinder, without_cache_marks
from compact.core.engine.events import NoticeEvent
from compact.manager import CompactManager

__all__ = ["SUPPORTED_VERSIONS", "CompactionLogger"]

SUPPORTED_VERSIONS = ">=1.80,<2"
SessionId: TypeAlias = str | Callable[[Mapping[str, Any]], str] | None
_CHAT_CALLS = ("completion", "acompletion")
_MOST_REMEMBERED = 10_000


class CompactionLogger(CustomLogger):
    """Compacts what LiteLLM sends, and takes in the usage that comes back.

    The conversation is named by `session_id` (a name, or a function of the call's arguments), by LiteLLM's own
    `litellm_session_id` or `metadata["session_id"]`; without any it is known by its history for as long as the process
    lives. If compaction fails the request goes out as it is, unless `strict`.
    """

    def __init__(self, manager: CompactManager, *, session_id: SessionId = None, strict: bool = False) -> None:
        super().__init__()
        self._manager = manager
        self._session_id = session_id
        self._strict = strict
        self._finder = SessionFinder("litellm", normalise=without_cache_marks)
        self._under_way: OrderedDict[str, str] = OrderedDict()
        self._newest: OrderedDict[str, str] = OrderedDict()
        self._observing = threading.Lock()
        self._has_warned = False

    # -- before a call --------------------------------------------------------------------------------------------

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """LiteLLM's hook: the arguments of a call, with the messages that are to be sent."""
        if getattr(call_type, "value", call_type) not in _CHAT_CALLS or not self._can_read(kwargs):
            return None
        messages = kwargs["messages"]
        plain = as_plain(messages)
        session_id = "litellm"
        try:
            session_id = self._begin(kwargs, plain)
            sent = await self._manager.apreflight(session_id, plain, **_beside(kwargs), dialect="chat")
        except Exception as error:
            sent = self._failed(session_id, error, plain, kwargs)
        return {**kwargs, "messages": own_objects(sent, plain, messages)}

    def prepare(self, **kwargs: Any) -> dict[str, Any]:
        """The arguments for `litellm.completion`, with the messages that are to be sent."""
        if not self._can_read(kwargs):
            return kwargs
        messages = kwargs["messages"]
        plain = as_plain(messages)
        kwargs.setdefault("litellm_call_id", str(uuid4()))
        session_id = "litellm"
        try:
            session_id = self._begin(kwargs, plain)
            sent = self._manager.preflight(session_id, plain, **_beside(kwargs), dialect="chat")
        except Exception as error:
            sent = self._failed(session_id, error, plain, kwargs)
        return {**kwargs, "messages": own_objects(sent, plain, messages)}

    def completion(self, **kwargs: Any) -> Any:
        """`litellm.completion`, compacted."""
        prepared = self.prepare(**kwargs)
        response = litellm.completion(**prepared)
        self._observe(prepared.get("litellm_call_id"), getattr(response, "usage", None))
        return response

    def session_of(self, **kwargs: Any) -> str:
        """The session that a call with these arguments belongs to, for `manager.recall` and the other questions."""
        return self._base(kwargs) or self._finder.find(as_plain(kwargs["messages"]))

    def _can_read(self, kwargs: Mapping[str, Any]) -> bool:
        if isinstance(kwargs.get("messages"), list | tuple):
            return True
        if not self._has_warned:
            self._has_warned = True
            message = "a call without messages= is not compacted: LiteLLM shows its hooks keyword arguments only"
            tell(self._manager, NoticeEvent(session_id="litellm", message=message, severity="high"))
        return False

    def _base(self, kwargs: Mapping[str, Any]) -> str:
        if self._session_id is not None:
            return self._session_id(kwargs) if callable(self._session_id) else self._session_id
        metadata = kwargs.get("metadata") or {}
        return str(kwargs.get("litellm_session_id") or metadata.get("session_id") or "")

    def _begin(self, kwargs: Mapping[str, Any], plain: Sequence[Any]) -> str:
        session_id = self._base(kwargs) or self._finder.find(plain)
        call_id = kwargs.get("litellm_call_id")
        if call_id:
            self._newest[session_id] = call_id
            self._under_way[call_id] = session_id
            for remembered in (self._under_way, self._newest):
                while len(remembered) > _MOST_REMEMBERED:
                    remembered.popitem(last=False)
        return session_id

    def _failed(self, session_id: str, error: Exception, plain: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        if self._strict:
            raise error
        self._under_way.pop(kwargs.get("litellm_call_id", ""), None)  # its usage is not about a prompt of ours
        tell_failure(self._manager, session_id, error)
        return without_marks(plain)

    # -- after a call ---------------------------------------------------------------------------------------------

    async def async_post_call_success_deployment_hook(self, request_data: Any, response: Any, call_type: Any) -> None:
        """At once, where LiteLLM says so at once."""
        usage = getattr(response, "usage", None)
        await asyncio.to_thread(self._observe, request_data.get("litellm_call_id"), usage)

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Streams tell at their end."""
        usage = getattr(response_obj, "usage", None)
        await asyncio.to_thread(self._observe, kwargs.get("litellm_call_id"), usage)

    def log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """The same for calls that are not async."""
        self._observe(kwargs.get("litellm_call_id"), getattr(response_obj, "usage", None))

    def _observe(self, call_id: str | None, usage: Any) -> None:
        """Take in the usage of a call, once; who tells it second waits until it is taken in."""
        tokens = getattr(usage, "prompt_tokens", 0) or 0
        if not call_id or not tokens:
            return
        with self._observing:
            session_id = self._under_way.pop(call_id, None)
            # What LiteLLM tells late may be about a prompt that is no longer the newest: it would mislead.
            if session_id is None or self._newest.get(session_id) != call_id:
                return
            try:
                self._manager.observe_usage(session_id, tokens)
            except Exception as error:
                tell_failure(self._manager, session_id, error, "the reported usage is not taken in")


def _beside(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What is sent beside the messages, and what is set aside for the answer."""
    output = kwargs.get("max_completion_tokens") or kwargs.get("max_tokens")
    return {"tools": kwargs.get("tools") or (), "output_tokens": output if isinstance(output, int) else 0}
