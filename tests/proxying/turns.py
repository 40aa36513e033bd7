"""A model whose answers have anything in them: thinking, text, and several calls of any tools, on the three wires."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from compact.testing.provider_api import RequestRejected
from proxying.models import (
    _WIRES,
    AnthropicWire,
    Fields,
    Model,
    Wire,
    _Chat,
    _Responses,
    chat_usage,
    halves,
    named,
    own_usage,
    sse,
)
from proxying.provider import Part, Received, as_json, streamed


@dataclass(frozen=True)
class Call:
    """One call of a tool."""

    id: str
    name: str
    input: Fields = field(default_factory=dict)

    @property
    def arguments(self) -> str:
        return json.dumps(self.input)


@dataclass(frozen=True)
class Said:
    """What a model says in one answer, in this order."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    output_tokens: int = 7


class TurnModel(Model):
    """Answers by `say`, if a request is legal, fits the window, and calls no tool that it was not offered."""

    def __init__(self, say: Callable[[Fields], Said], window_tokens: int = 128_000) -> None:
        super().__init__(lambda _: None, window_tokens=window_tokens)  # type: ignore[arg-type,return-value]
        self.say = say

    def __call__(self, request: Received) -> Iterable[Part]:
        wire = TURN_WIRES.get(request.path)
        if wire is None:
            return as_json({"error": {"message": "no such thing"}}, "404 Not Found")
        try:
            tokens = self._judge(wire, request)
            wire.check_thinking(request.json)
        except RequestRejected as rejected:
            self.rejections.append(rejected.message)
            return as_json(wire.error(rejected), "400 Bad Request")
        body = request.json
        said = self.say(body)
        return (
            streamed(wire.stream_type, wire.stream(body, said, tokens))
            if body.get("stream")
            else as_json(wire.answer(body, said, tokens))
        )


class _TurnWire(Wire):
    def check_thinking(self, body: Fields) -> None:
        """Reject thinking that is not as the model wrote it."""


class ChatTurns(_Chat, _TurnWire):
    def answer(self, body: Fields, turn: Any, tokens: int) -> Fields:
        message: Fields = {"role": "assistant", "content": turn.text or None, "refusal": None}
        if turn.calls:
            message["tool_calls"] = [self._call(call, call.arguments) for call in turn.calls]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if turn.calls else "stop"}
        known = {"id": f"chatcmpl-{tokens}", "object": "chat.completion", "created": 1, "model": body["model"]}
        return {**known, "choices": [choice], "usage": chat_usage(tokens)}

    def _call(self, call: Call, arguments: str) -> Fields:
        return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}

    def stream(self, body: Fields, turn: Any, tokens: int) -> Iterator[bytes]:
        known = {"id": f"chatcmpl-{tokens}", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}

        def piece(delta: Fields, finish: str | None = None) -> bytes:
            return sse({**known, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None})

        yield piece({"role": "assistant", "content": ""})
        for part in halves(turn.text):
            yield piece({"content": part})
        for index, call in enumerate(turn.calls):
            yield piece({"tool_calls": [{"index": index, **self._call(call, "")}]})
            for part in halves(call.arguments):
                yield piece({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        yield piece({}, "tool_calls" if turn.calls else "stop")
        if (body.get("stream_options") or {}).get("include_usage"):
            yield sse({**known, "choices": [], "usage": chat_usage(tokens)})
        yield b"data: [DONE]\n\n"


def signature(thinking: str) -> str:
    """The signature that only the model can make."""
    return f"signed-{sum(thinking.encode())}"


class AnthropicTurns(AnthropicWire, _TurnWire):
    def check_thinking(self, body: Fields) -> None:
        blocks = [block for message in body["messages"] for block in _blocks(message)]
        for block in blocks:
            if block.get("type") == "thinking" and block.get("signature") != signature(block.get("thinking", "")):
                raise RequestRejected("messages: Invalid `signature` in `thinking` block")
        self._check_newest(body)

    def _check_newest(self, body: Fields) -> None:
        """While tools are called the last answer begins with its thinking, if thinking is on."""
        last = next((message for message in reversed(body["messages"]) if message["role"] == "assistant"), {})
        results = [block for block in _blocks(body["messages"][-1]) if block.get("type") == "tool_result"]
        is_on = (body.get("thinking") or {}).get("type") == "enabled"
        if is_on and results and _blocks(last) and _blocks(last)[0].get("type") != "thinking":
            raise RequestRejected("messages: Expected `thinking` when thinking is enabled, but found `tool_use`")

    def answer(self, body: Fields, turn: Any, tokens: int) -> Fields:
        blocks: list[Fields] = []
        if turn.thinking:
            blocks.append({"type": "thinking", "thinking": turn.thinking, "signature": signature(turn.thinking)})
        if turn.text:
            blocks.append({"type": "text", "text": turn.text})
        blocks += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input} for call in turn.calls]
        known = {"id": f"msg_{tokens}", "type": "message", "role": "assistant", "model": body["model"]}
        end = {"stop_reason": "tool_use" if turn.calls else "end_turn", "stop_sequence": None}
        return {**known, "content": blocks, **end, "usage": own_usage(tokens)}

    def stream(self, body: Fields, turn: Any, tokens: int) -> Iterator[bytes]:
        done = self.answer(body, turn, tokens)
        begun = {**done, "content": [], "stop_reason": None, "usage": {**done["usage"], "output_tokens": 1}}
        yield named("message_start", message=begun)
        for index, block in enumerate(done["content"]):
            yield from self._block(index, block)
            yield named("ping")
        end = {"stop_reason": done["stop_reason"], "stop_sequence": None}
        yield named("message_delta", delta=end, usage={"output_tokens": 7})
        yield named("message_stop")

    def _block(self, index: int, block: Fields) -> Iterator[bytes]:
        kind = block["type"]
        empty = {"thinking": {"thinking": "", "signature": ""}, "text": {"text": ""}, "tool_use": {"input": {}}}[kind]
        yield named("content_block_start", index=index, content_block={**block, **empty})
        written = {"thinking": ("thinking_delta", "thinking"), "text": ("text_delta", "text")}.get(kind)
        delta, key = written or ("input_json_delta", "partial_json")
        for part in halves(block[key] if written else json.dumps(block["input"])):
            yield named("content_block_delta", index=index, delta={"type": delta, key: part})
        if kind == "thinking":
            signed = {"type": "signature_delta", "signature": block["signature"]}
            yield named("content_block_delta", index=index, delta=signed)
        yield named("content_block_stop", index=index)


def _blocks(message: Fields) -> list[Fields]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


class ResponsesTurns(_Responses, _TurnWire):
    def check_thinking(self, body: Fields) -> None:
        for item in body["input"] if isinstance(body["input"], list) else []:
            if item.get("type") == "reasoning" and not str(item.get("encrypted_content", "")).startswith("signed-"):
                raise RequestRejected("Item of type 'reasoning' not found: items are not kept when `store` is false")

    def answer(self, body: Fields, turn: Any, tokens: int) -> Fields:
        items: list[Fields] = []
        if turn.thinking:
            secret = {"encrypted_content": signature(turn.thinking), "summary": []}
            items.append({"type": "reasoning", "id": f"rs_{tokens}", **secret})
        if turn.text:
            part = {"type": "output_text", "text": turn.text, "annotations": []}
            known = {"role": "assistant", "status": "completed", "content": [part]}
            items.append({"type": "message", "id": f"msg_{tokens}", **known})
        for call in turn.calls:
            made = {"call_id": call.id, "name": call.name, "arguments": call.arguments, "status": "completed"}
            items.append({"type": "function_call", "id": f"fc_{call.id}", **made})
        usage = {"input_tokens": tokens, "output_tokens": 7, "total_tokens": tokens + 7}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        known = {"id": f"resp_{tokens}", "object": "response", "created_at": 1, "model": body["model"]}
        settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None}
        return {**known, "status": "completed", **settings, "output": items, "usage": {**usage, **details}}

    def stream(self, body: Fields, turn: Any, tokens: int) -> Iterator[bytes]:
        done = self.answer(body, turn, tokens)
        told = [("response.created", {"response": {**done, "status": "in_progress", "output": [], "usage": None}})]
        for index, item in enumerate(done["output"]):
            told += self._item(index, item)
        told.append(("response.completed", {"response": done}))
        for number, (kind, fields) in enumerate(told):
            yield named(kind, sequence_number=number, **fields)

    def _item(self, index: int, item: Fields) -> Iterator[tuple[str, Fields]]:
        empty = {"message": {"content": []}, "function_call": {"arguments": ""}}.get(item["type"], {})
        at = {"output_index": index, "item_id": item["id"]}
        yield "response.output_item.added", {"output_index": index, "item": {**item, **empty, "status": "in_progress"}}
        if item["type"] == "function_call":
            for part in halves(item["arguments"]):
                yield "response.function_call_arguments.delta", {**at, "delta": part}
            yield "response.function_call_arguments.done", {**at, "arguments": item["arguments"], "name": item["name"]}
        if item["type"] == "message":
            text, place = item["content"][0]["text"], {**at, "content_index": 0}
            yield "response.content_part.added", {**place, "part": {**item["content"][0], "text": ""}}
            for part in halves(text):
                yield "response.output_text.delta", {**place, "delta": part, "logprobs": []}
            yield "response.output_text.done", {**place, "text": text, "logprobs": []}
            yield "response.content_part.done", {**place, "part": item["content"][0]}
        yield "response.output_item.done", {"output_index": index, "item": item}


TURN_WIRES: dict[str, Any] = {
    "/v1/chat/completions": ChatTurns(),
    "/v1/messages": AnthropicTurns(),
    "/v1/responses": ResponsesTurns(),
}
assert set(TURN_WIRES) <= set(_WIRES)
