"""An answer of Chat Completions, whole or streamed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compact.adapters.support.recall import RECALL_NAME
from compact.proxy.recall.answer import Answer, Fields, HiddenCall, listed, mapping, number_of, summed
from compact.proxy.recall.event_stream import StreamEvent, write_event

# What some servers say before they answer, and want back while tools are called.
_REASONING = ("reasoning_content", "reasoning_details")
_BETWEEN = "\n\n"  # the texts of two rounds are one text for the agent


class ChatAnswer(Answer):
    """The only choice of a completion."""

    def __init__(self) -> None:
        super().__init__()
        self._known: Fields = {}  # of the first chunk, which all others repeat: id, created
        self._message: Fields = {}
        # Per index of a call in this round: the call if it is hidden, or the index under which the agent sees it.
        self._calls: dict[int, tuple[str, HiddenCall | int]] = {}
        self._own: list[Fields] = []
        self._body: Fields = {}

    def begin_round(self, *, hides: bool = True) -> None:
        super().begin_round(hides=hides)
        self._message, self._calls, self._own = {}, {}, []

    @property
    def _text(self) -> str:
        return str(self._message.get("content") or "")

    @property
    def _earlier_text(self) -> str:
        return _BETWEEN.join(text for each in self.rounds[:-1] for text in each.shown)

    # -- a stream

    def feed(self, event: StreamEvent) -> bytes:
        chunk = event.fields
        if chunk is None:  # [DONE], or a comment
            return self._hold(event, {}) if event.data and self.round.hidden else event.raw
        if not self._known:
            self._known = {name: chunk[name] for name in ("id", "created") if name in chunk}
        choices = listed(chunk.get("choices"))
        if not choices:
            return self._without_choice(event, chunk)
        changed = self._read_choice(chunk, mapping(choices[0]))
        if changed is None:
            return b""
        is_end = mapping(mapping(changed["choices"][0])).get("finish_reason") is not None
        if is_end and self.round.hidden:
            return self._hold(event, changed)
        return event.raw if changed is chunk else write_event(changed)

    def _without_choice(self, event: StreamEvent, chunk: Fields) -> bytes:
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            self.round.usage = usage
        if self.round.hidden:
            return self._hold(event, chunk)
        if len(self.rounds) == 1:
            return event.raw
        return write_event(self._joined(chunk)) if usage else b""

    def _hold(self, event: StreamEvent, chunk: Fields) -> bytes:
        self.round.held.append((event, chunk))
        return b""

    def _read_choice(self, chunk: Fields, choice: Mapping[str, Any]) -> Fields | None:
        """Return a chunk as the agent gets it; None if nothing of it is left."""
        delta = mapping(choice.get("delta"))
        shown = self._read_delta(delta)
        finish = choice.get("finish_reason")
        self.round.ends_with_calls = self.round.ends_with_calls or finish in ("tool_calls", "stop", "function_call")
        if isinstance(chunk.get("usage"), dict):
            self.round.usage = chunk["usage"]
        if len(self.rounds) == 1 and shown is delta:
            return chunk
        if finish is None and not any(value for name, value in shown.items() if name != "role"):
            return None
        return self._joined({**chunk, "choices": [{**choice, "delta": shown}]})

    def _read_delta(self, delta: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take in what a chunk adds; return what the agent sees of it, the same object if that is all of it."""
        text, shown = delta.get("content"), dict(delta)
        if isinstance(text, str) and text:
            if len(self.rounds) > 1:
                shown.pop("role", None)
                shown["content"] = text if self._text or not self._earlier_text else _BETWEEN + text
            self._message["content"] = self._text + text
        elif len(self.rounds) > 1:
            shown = {name: value for name, value in shown.items() if name not in ("role", "content")}
        for name in _REASONING:
            if delta.get(name):
                self._message[name] = self._message[name] + delta[name] if name in self._message else delta[name]
        calls = listed(delta.get("tool_calls"))
        if calls:
            kept = [own for call in calls if (own := self._read_call(call)) is not None]
            shown = {**shown, "tool_calls": kept} if kept else {k: v for k, v in shown.items() if k != "tool_calls"}
        return delta if shown == delta else shown

    def _read_call(self, call: Any) -> Fields | None:
        """Take in a part of a call; return it as the agent sees it, None if it is hidden."""
        fields, function = mapping(call), mapping(mapping(call).get("function"))
        index, call_id = number_of(fields, "index"), str(fields.get("id") or "")
        known = self._calls.get(index)
        # Some servers give every call the index 0, and another id.
        if known is None or (call_id and function.get("name") and call_id != known[0]):
            known = self._calls[index] = (call_id, self._begin_call(fields))
        if isinstance(known[1], HiddenCall):
            known[1].arguments += str(function.get("arguments") or "")
            return None
        return {**fields, "index": known[1]} if "index" in fields else dict(fields)

    def _begin_call(self, call: Mapping[str, Any]) -> HiddenCall | int:
        call_id = str(call.get("id") or "")
        if self.hides_call(mapping(call.get("function")).get("name")):
            original = {name: value for name, value in call.items() if name not in ("index", "function")}
            self.round.hidden.append(HiddenCall(call_id, original=original))
            return self.round.hidden[-1]
        self.round.own_call_ids.append(call_id)
        return len(self.round.own_call_ids) - 1

    def _joined(self, chunk: Fields) -> Fields:
        """Return a chunk as one of the first response, with the usage of all rounds."""
        chunk = {**chunk, **self._known}
        usage = dict(mapping(chunk.get("usage")))
        return {**chunk, "usage": self._usage(usage)} if usage else chunk

    def _usage(self, usage: Fields) -> Fields:
        joined = summed(usage, [each.usage for each in self.rounds[:-1]], "completion_tokens")
        if "total_tokens" in usage:
            joined["total_tokens"] = number_of(joined, "prompt_tokens") + number_of(joined, "completion_tokens")
        return joined

    def end(self) -> bytes:
        held, self.round.held = self.round.held, []
        return b"".join(write_event(self._joined(chunk)) if chunk else event.raw for event, chunk in held)

    # -- a whole response

    def take(self, body: Fields) -> None:
        choice = mapping(next(iter(listed(body.get("choices"))), None))
        message, self._body = mapping(choice.get("message")), body
        self._message = {name: message[name] for name in ("content", *_REASONING) if message.get(name)}
        self.round.usage = dict(mapping(body.get("usage")))
        self.round.ends_with_calls = choice.get("finish_reason") in ("tool_calls", "stop", "function_call")
        for call in message.get("tool_calls") or ():
            function = mapping(mapping(call).get("function"))
            made = self._begin_call(mapping(call))
            if isinstance(made, HiddenCall):
                made.arguments = str(function.get("arguments") or "")
            else:
                self._own.append(call)

    def whole(self) -> Fields:
        choice = mapping(self._body["choices"][0])
        texts = [text for text in (self._earlier_text, self._text) if text]
        message = {**mapping(choice.get("message")), "content": _BETWEEN.join(texts) or None}
        message.pop("tool_calls", None)
        if self._own:
            message["tool_calls"] = self._own
        joined = {**self._body, "choices": [{**choice, "message": message}]}
        return {**joined, "usage": self._usage(self.round.usage)} if self.round.usage else joined

    # -- the next request

    def model_items(self) -> list[Any]:
        self.round.shown = [self._text] if self._text else []
        calls = [hidden_chat_call(call) for call in self.round.hidden]
        return [{"role": "assistant", "content": self._text or None, **self._message, "tool_calls": calls}]

    def result_items(self, results: Mapping[str, str]) -> list[Any]:
        return [{"role": "tool", "tool_call_id": call_id, "content": text} for call_id, text in results.items()]

    def error(self, status: int, error: Fields) -> bytes:
        return write_event({"error": error})


def hidden_chat_call(call: HiddenCall) -> Fields:
    """Return a hidden call as an assistant's message has it."""
    function = {"name": RECALL_NAME, "arguments": call.legal_arguments}
    return {"id": call.call_id, "type": "function", **call.original, "function": function}
