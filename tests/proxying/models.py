"""Models that speak the wires of OpenAI and Anthropic, streaming or not, and reject what those would reject."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from compact.dialects import get_dialect
from compact.testing.anthropic_api import MessagesApi
from compact.testing.openai_api import ChatCompletionsApi
from compact.testing.provider_api import RequestRejected, ServerSettings, count_pieces
from compact.tokens import get_tokenizer
from proxying.provider import Part, Received, as_json, streamed

Fields = dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """What a model answers: a text, or a call of `read_file`."""

    text: str = ""
    call_id: str = ""
    path: str = ""

    @property
    def arguments(self) -> str:
        return json.dumps({"path": self.path})


Play = Callable[[Fields], Turn]


@dataclass
class Model:
    """Answers a request on any of its wires by `play`, if it is legal and fits the window."""

    play: Play
    window_tokens: int = 128_000
    rejections: list[str] = field(default_factory=list)
    largest: int = 0
    _count: Callable[[str], int] = field(default_factory=lambda: get_tokenizer("gpt-4o").count_text)

    def __call__(self, request: Received) -> Iterable[Part]:
        wire = self.wire_of(request)
        if wire is None:
            return as_json({"error": {"message": "no such thing"}}, "404 Not Found")
        try:
            tokens = self._judge(wire, request)
        except RequestRejected as rejected:
            self.rejections.append(rejected.message)
            return as_json(wire.error(rejected), "400 Bad Request")
        turn, body = self.play(request.json), request.json
        if wire.is_streamed(request):
            return streamed(wire.stream_type, wire.stream(body, turn, tokens))
        return as_json(wire.answer(body, turn, tokens))

    def wire_of(self, request: Received) -> Wire | None:
        """The wire that a request is on."""
        return _WIRES.get(request.path)

    def _judge(self, wire: Wire, request: Received) -> int:
        body = request.json
        wire.check({key: value for key, value in body.items() if key != "stream"}, request)
        conversation = body.get("messages") or body.get("input") or body.get("contents")
        text = json.dumps(conversation, ensure_ascii=False)
        tokens = self._count(text)
        self.largest = max(self.largest, tokens)
        if tokens > self.window_tokens:
            raise RequestRejected(
                f"maximum context length is {self.window_tokens} tokens", code="context_length_exceeded"
            )
        return tokens


def server_settings() -> ServerSettings:
    return ServerSettings(10**9, None, ("any",), True, False, count_pieces)


class Wire:
    stream_type = "text/event-stream"

    def is_streamed(self, request: Received) -> bool:
        return bool(request.json.get("stream"))

    def check(self, body: Fields, request: Received) -> None: ...

    def error(self, rejected: RequestRejected) -> Fields: ...

    def answer(self, body: Fields, turn: Turn, tokens: int) -> Fields: ...

    def stream(self, body: Fields, turn: Turn, tokens: int) -> Iterator[bytes]: ...


class _Chat(Wire):
    def check(self, body: Fields, request: Received) -> None:
        ChatCompletionsApi().check(body, {}, server_settings())

    def error(self, rejected: RequestRejected) -> Fields:
        return ChatCompletionsApi().error(rejected)

    def answer(self, body: Fields, turn: Turn, tokens: int) -> Fields:
        message: Fields = {"role": "assistant", "content": turn.text or None, "refusal": None}
        if turn.call_id:
            function = {"name": "read_file", "arguments": turn.arguments}
            message["tool_calls"] = [{"id": turn.call_id, "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if turn.call_id else "stop"}
        known = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"]}
        return {**known, "choices": [choice], "usage": chat_usage(tokens)}

    def stream(self, body: Fields, turn: Turn, tokens: int) -> Iterator[bytes]:
        known = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}

        def piece(delta: Fields, finish: str | None = None) -> bytes:
            return sse({**known, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None})

        yield piece({"role": "assistant", "content": ""})
        if turn.call_id:
            function = {"name": "read_file", "arguments": ""}
            yield piece({"tool_calls": [{"index": 0, "id": turn.call_id, "type": "function", "function": function}]})
            for part in halves(turn.arguments):
                yield piece({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
        for part in halves(turn.text):
            yield piece({"content": part})
        yield piece({}, "tool_calls" if turn.call_id else "stop")
        if (body.get("stream_options") or {}).get("include_usage"):
            yield sse({**known, "choices": [], "usage": chat_usage(tokens)})
        yield b"data: [DONE]\n\n"


class AnthropicWire(Wire):
    def check(self, body: Fields, request: Received) -> None:
        MessagesApi().check(body, {name.lower(): value for name, value in request.headers}, server_settings())

    def error(self, rejected: RequestRejected) -> Fields:
        return MessagesApi().error(rejected)

    def answer(self, body: Fields, turn: Turn, tokens: int) -> Fields:
        block: Fields = {"type": "text", "text": turn.text}
        if turn.call_id:
            block = {"type": "tool_use", "id": turn.call_id, "name": "read_file", "input": {"path": turn.path}}
        reason = "tool_use" if turn.call_id else "end_turn"
        known = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]}
        return {**known, "content": [block], "stop_reason": reason, "stop_sequence": None, "usage": own_usage(tokens)}

    def stream(self, body: Fields, turn: Turn, tokens: int) -> Iterator[bytes]:
        done = self.answer(body, turn, tokens)
        begun = {**done, "content": [], "stop_reason": None, "usage": {**done["usage"], "output_tokens": 1}}
        (block,) = done["content"]
        empty = {**block, "input": {}} if turn.call_id else {**block, "text": ""}
        yield named("message_start", message=begun)
        yield named("content_block_start", index=0, content_block=empty)
        yield named("ping")
        for part in halves(turn.arguments if turn.call_id else turn.text):
            delta = {"type": "input_json_delta", "partial_json": part} if turn.call_id else {}
            yield named("content_block_delta", index=0, delta=delta or {"type": "text_delta", "text": part})
        yield named("content_block_stop", index=0)
        end = {"stop_reason": done["stop_reason"], "stop_sequence": None}
        yield named("message_delta", delta=end, usage={"output_tokens": 7})
        yield named("message_stop")


class _Responses(Wire):
    def check(self, body: Fields, request: Received) -> None:
        items = body["input"] if isinstance(body["input"], list) else []
        for violation in get_dialect("responses").check(items):
            raise RequestRejected(str(violation))

    def error(self, rejected: RequestRejected) -> Fields:
        return ChatCompletionsApi().error(rejected)

    def answer(self, body: Fields, turn: Turn, tokens: int) -> Fields:
        part = {"type": "output_text", "text": turn.text, "annotations": []}
        item: Fields = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
        if turn.call_id:
            item = {"type": "function_call", "id": f"fc_{turn.call_id}", "call_id": turn.call_id}
            item |= {"name": "read_file", "arguments": turn.arguments, "status": "completed"}
        usage = {"input_tokens": tokens, "output_tokens": 7, "total_tokens": tokens + 7}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        known = {"id": "resp_1", "object": "response", "created_at": 1, "model": body["model"], "status": "completed"}
        settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None}
        return {**known, **settings, "output": [item], "usage": {**usage, **details}}

    def stream(self, body: Fields, turn: Turn, tokens: int) -> Iterator[bytes]:
        done = self.answer(body, turn, tokens)
        begun = {**done, "status": "in_progress", "output": [], "usage": None}
        (item,) = done["output"]
        yield named("response.created", sequence_number=0, response=begun)
        yield named("response.output_item.added", sequence_number=1, output_index=0, item={**item, "content": []})
        for number, part in enumerate(halves(turn.text), 2):
            place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "logprobs": []}
            yield named("response.output_text.delta", sequence_number=number, delta=part, **place)
        yield named("response.output_item.done", sequence_number=8, output_index=0, item=item)
        yield named("response.completed", sequence_number=9, response=done)


def sse(value: Fields) -> bytes:
    """One event."""
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def named(kind: str, **fields: Any) -> bytes:
    """One event with its name."""
    return f"event: {kind}\n".encode() + sse({"type": kind, **fields})


def halves(text: str) -> list[str]:
    """A text in two parts; nothing for nothing."""
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]


def chat_usage(tokens: int) -> Fields:
    """What Chat Completions reports."""
    return {"prompt_tokens": tokens, "completion_tokens": 7, "total_tokens": tokens + 7}


def own_usage(tokens: int) -> Fields:
    """What Anthropic reports: what came from the cache is counted beside the input."""
    cached = {"cache_read_input_tokens": tokens - 10, "cache_creation_input_tokens": 0}
    return {"input_tokens": 10, **cached, "output_tokens": 7}


_WIRES: dict[str, Wire] = {
    "/v1/chat/completions": _Chat(),
    "/v1/messages": AnthropicWire(),
    "/v1/responses": _Responses(),
}
