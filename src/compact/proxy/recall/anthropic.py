"""An answer of Anthropic Messages, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compact.proxy.recall.answer import Answer, Fields, HiddenCall, mapping, summed
from compact.proxy.recall.event_stream import StreamEvent, write_event

_INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicAnswer(Answer):
    """The blocks of a message; those of later rounds are numbered on from the first."""

    def __init__(self) -> None:
        super().__init__()
        # Per index of a block in this round: its hidden call, or the block that the agent sees, as it grows.
        self._blocks: dict[int, HiddenCall | Fields] = {}
        self._shown_before = 0
        self._body: Fields = {}

    def begin_round(self, *, hides: bool = True) -> None:
        self._shown_before += len(self._shown_blocks())
        super().begin_round(hides=hides)
        self._blocks = {}

    def _shown_blocks(self) -> list[Fields]:
        return [block for block in self._blocks.values() if not isinstance(block, HiddenCall)]

    # -- a stream

    def feed(self, event: StreamEvent) -> bytes:
        fields = event.fields
        if fields is None:
            return event.raw
        match fields.get("type"):
            case "message_start":
                self.round.usage = dict(mapping(mapping(fields.get("message")).get("usage")))
                return event.raw if len(self.rounds) == 1 else b""
            case "content_block_start" | "content_block_delta" | "content_block_stop":
                return self._feed_block(event, fields)
            case "message_delta":
                return self._feed_end(event, fields)
            case "message_stop" if self.round.hidden:
                self.round.held.append((event, {}))
                return b""
            case _:
                return event.raw

    def _feed_block(self, event: StreamEvent, fields: Fields) -> bytes:
        index = fields.get("index")
        if not isinstance(index, int):
            return event.raw
        if fields["type"] == "content_block_start":
            self._blocks[index] = self._begin_block(mapping(fields.get("content_block")))
        block = self._blocks.get(index)
        if fields["type"] == "content_block_delta" and block is not None:
            _grow(block, mapping(fields.get("delta")))
        if isinstance(block, HiddenCall):
            return b""
        number = self._shown_before + sum(
            not isinstance(other, HiddenCall) for place, other in self._blocks.items() if place < index
        )
        return event.raw if number == index else write_event({**fields, "index": number}, event.name)

    def _begin_block(self, block: Mapping[str, Any]) -> HiddenCall | Fields:
        if block.get("type") == "tool_use" and self.hides_call(block.get("name")):
            made = HiddenCall(str(block.get("id") or ""), original=dict(block))
            if block.get("input"):
                made.arguments = json.dumps(block["input"])
            self.round.hidden.append(made)
            return made
        if block.get("type") == "tool_use":
            self.round.own_call_ids.append(str(block.get("id") or ""))
        return dict(block)

    def _feed_end(self, event: StreamEvent, fields: Fields) -> bytes:
        usage = dict(mapping(fields.get("usage")))
        self.round.ends_with_calls = mapping(fields.get("delta")).get("stop_reason") == "tool_use"
        self.round.usage |= usage
        if self.round.hidden:
            self.round.held.append((event, fields))
            return b""
        return event.raw if len(self.rounds) == 1 else self._end_event(event, fields)

    def _end_event(self, event: StreamEvent, fields: Fields) -> bytes:
        """Return the end with the output of all rounds and the input of the last; the start told that of the first."""
        told = {name: self.round.usage[name] for name in _INPUT_COUNTS if name in self.round.usage}
        usage = {**mapping(fields.get("usage")), **(told if len(self.rounds) > 1 else {})}
        return write_event({**fields, "usage": summed(usage, self._earlier_usage(), "output_tokens")}, event.name)

    def _earlier_usage(self) -> list[Fields]:
        return [each.usage for each in self.rounds[:-1]]

    def end(self) -> bytes:
        held, self.round.held = self.round.held, []
        return b"".join(self._end_event(event, fields) if fields else event.raw for event, fields in held)

    # -- a whole response

    def take(self, body: Fields) -> None:
        self._body = body
        self._blocks = {place: self._begin_block(mapping(b)) for place, b in enumerate(body.get("content") or ())}
        self.round.usage = dict(mapping(body.get("usage")))
        self.round.ends_with_calls = body.get("stop_reason") == "tool_use"

    def whole(self) -> Fields:
        shown = [block for each in self.rounds[:-1] for block in each.shown] + self._shown_blocks()
        joined = {**self._body, "content": shown}
        if self.round.usage:
            joined["usage"] = summed(self.round.usage, self._earlier_usage(), "output_tokens")
        return joined

    # -- the next request

    def model_items(self) -> list[Any]:
        # An empty text is rejected on its way back.
        blocks = [block for block in self._blocks.values() if isinstance(block, HiddenCall) or not _is_empty(block)]
        self.round.shown = self._shown_blocks()
        written = [hidden_block(block) if isinstance(block, HiddenCall) else _as_sent(block) for block in blocks]
        return [{"role": "assistant", "content": written}]

    def result_items(self, results: Mapping[str, str]) -> list[Any]:
        return [{"role": "user", "content": [hidden_result(call_id, text) for call_id, text in results.items()]}]

    def error(self, status: int, error: Fields) -> bytes:
        return write_event({"type": "error", "error": error}, "error")


def hidden_block(call: HiddenCall) -> Fields:
    """Return a hidden call as a block."""
    return {**call.original, "input": call.input}


def hidden_result(call_id: str, text: str) -> Fields:
    """Return the result of a hidden call as a block."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


def _grow(block: HiddenCall | Fields, delta: Mapping[str, Any]) -> None:
    """Add a delta to its block, whatever it is a part of: text, thinking, a signature, a call's input."""
    if isinstance(block, HiddenCall):
        block.arguments += str(delta.get("partial_json") or "")
        return
    for name, value in delta.items():
        if name == "citation":
            block["citations"] = [*(block.get("citations") or ()), value]
        elif name != "type" and isinstance(value, str):
            block[name] = str(block.get(name) or "") + value


def _as_sent(block: Fields) -> Fields:
    """Return a streamed block as a request has it: the input of a call, which came in parts, as data."""
    if "partial_json" not in block:
        return block
    try:
        value = json.loads(block["partial_json"] or "{}")
    except ValueError:
        value = {}
    return {**{name: part for name, part in block.items() if name != "partial_json"}, "input": value}


def _is_empty(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and not str(block.get("text") or "").strip()
