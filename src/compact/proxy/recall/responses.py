"""An answer of the Responses API, whole or streamed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compact.proxy.recall.answer import Answer, Fields, HiddenCall, mapping, number_of, summed
from compact.proxy.recall.event_stream import StreamEvent, write_event

_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.done")


class ResponsesAnswer(Answer):
    """The output items of a response; those of later rounds are numbered on from the first.

    With `is_stored` False the provider keeps no items: reasoning that is not in the item itself cannot be sent back.
    """

    def __init__(self, *, is_stored: bool = True) -> None:
        super().__init__()
        self._is_stored = is_stored
        # Per index of an item in this round: its hidden call, or the item that the agent sees.
        self._items: dict[int, HiddenCall | Fields] = {}
        self._sequence = -1
        self._id = ""
        self._body: Fields = {}

    def begin_round(self, *, hides: bool = True) -> None:
        super().begin_round(hides=hides)
        self._items = {}

    def _shown_items(self) -> list[Fields]:
        return [item for _, item in sorted(self._items.items()) if not isinstance(item, HiddenCall)]

    def _shown_before(self) -> list[Fields]:
        return [item for each in self.rounds[:-1] for item in each.shown]

    # -- a stream

    def feed(self, event: StreamEvent) -> bytes:
        fields = event.fields
        if fields is None:
            return event.raw
        kind = fields.get("type")
        self._id = self._id or str(mapping(fields.get("response")).get("id") or "")
        if len(self.rounds) > 1 and kind in ("response.created", "response.in_progress", "response.queued"):
            return b""
        if kind in _ENDS:
            return self._feed_end(event, fields)
        index = fields.get("output_index")
        if not isinstance(index, int):
            return self._passed(event, fields)
        if kind in ("response.output_item.added", "response.output_item.done"):
            self._take_item(index, mapping(fields.get("item")))
        if isinstance(self._items.get(index), HiddenCall):
            return b""
        number = len(self._shown_before()) + sum(
            not isinstance(item, HiddenCall) for place, item in self._items.items() if place < index
        )
        return self._passed(event, fields if number == index else {**fields, "output_index": number})

    def _passed(self, event: StreamEvent, fields: Fields) -> bytes:
        """Return an event with the next number, if events carry numbers."""
        if "sequence_number" in fields:
            self._sequence += 1
            if fields["sequence_number"] != self._sequence and self.is_changed:
                fields = {**fields, "sequence_number": self._sequence}
            self._sequence = number_of(fields, "sequence_number")
        return write_event(fields, event.name) if self.is_changed else event.raw

    def _take_item(self, index: int, item: Mapping[str, Any]) -> None:
        """Take in an item when it begins, and again when it is complete."""
        known = self._items.get(index)
        if item.get("type") == "function_call" and self.hides_call(item.get("name")):
            if not isinstance(known, HiddenCall):
                known = self._items[index] = HiddenCall(str(item.get("call_id") or ""))
                self.round.hidden.append(known)
            known.arguments, known.original = str(item.get("arguments") or ""), _as_sent(dict(item))
            return
        if known is None and str(item.get("type")).endswith("_call") and item.get("call_id"):
            self.round.own_call_ids.append(str(item["call_id"]))
        self._items[index] = dict(item)

    def _feed_end(self, event: StreamEvent, fields: Fields) -> bytes:
        response = mapping(fields.get("response"))
        self.round.usage = dict(mapping(response.get("usage")))
        self.round.ends_with_calls = response.get("status") == "completed" or fields["type"] == "response.completed"
        if self.round.hidden:
            self.round.held.append((event, fields))
            return b""
        return self._passed(event, self._joined_end(fields))

    def _joined_end(self, fields: Fields) -> Fields:
        response = mapping(fields.get("response"))
        return {**fields, "response": self._joined(response)} if self.is_changed else fields

    def _joined(self, response: Mapping[str, Any]) -> Fields:
        """Return a response with what the agent was shown of all rounds, and their usage.

        A stream has told the id of the first round. A whole response has that of the last: a request that refers to it
        later finds no call without a result.
        """
        joined = {**response, "output": [*self._shown_before(), *self._shown_items()]}
        joined |= {"id": self._id} if self._id else {}
        if self.round.usage:
            usage = summed(self.round.usage, [each.usage for each in self.rounds[:-1]], "output_tokens")
            usage["total_tokens"] = number_of(usage, "input_tokens") + number_of(usage, "output_tokens")
            joined["usage"] = usage
        return joined

    def end(self) -> bytes:
        held, self.round.held = self.round.held, []
        return b"".join(self._passed(event, self._joined_end(fields)) for event, fields in held)

    # -- a whole response

    def take(self, body: Fields) -> None:
        self._body = body
        for index, item in enumerate(body.get("output") or ()):
            self._take_item(index, mapping(item))
        self.round.usage = dict(mapping(body.get("usage")))
        self.round.ends_with_calls = body.get("status") == "completed"

    def whole(self) -> Fields:
        return self._joined(self._body)

    # -- the next request

    def model_items(self) -> list[Any]:
        self.round.shown = self._shown_items()
        items = [item for _, item in sorted(self._items.items())]
        written = [hidden_item(item) if isinstance(item, HiddenCall) else _as_sent(item) for item in items]
        return [item for item in written if self._is_stored or not _is_kept_by_provider(item)]

    def result_items(self, results: Mapping[str, str]) -> list[Any]:
        return [hidden_output(call_id, text) for call_id, text in results.items()]

    def error(self, status: int, error: Fields) -> bytes:
        told = {
            "code": str(error.get("code") or error.get("type") or status),
            "message": str(error.get("message") or ""),
        }
        known = {"id": self._id, "object": "response", "status": "failed"}
        response = {**known, "error": told, "output": self._shown_before()}
        fields = {"type": "response.failed", "sequence_number": self._sequence + 1, "response": response}
        return write_event(fields, "response.failed")


def hidden_item(call: HiddenCall) -> Fields:
    """Return a hidden call as an item."""
    return {**call.original, "arguments": call.legal_arguments}


def hidden_output(call_id: str, text: str) -> Fields:
    """Return the result of a hidden call as an item."""
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def _as_sent(item: Fields) -> Fields:
    return {name: value for name, value in item.items() if value is not None}


def _is_kept_by_provider(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "reasoning" and not item.get("encrypted_content")
