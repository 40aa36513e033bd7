"""Answers as the streams of their APIs: one event for each word of a text, in the order and form of the provider."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Body: TypeAlias = Mapping[str, Any]
Event: TypeAlias = dict[str, Any]


def stream_chat(answer: Body, request: Body) -> Iterator[bytes]:
    """Yield a chat completion as chunks; its usage only where `stream_options` asks for it."""
    kept = {key: answer[key] for key in ("id", "created", "model", "system_fingerprint")}
    options: Body = request.get("stream_options") or {}
    asks_usage = bool(options.get("include_usage"))
    choice = answer["choices"][0]
    deltas: list[Event] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in _words(choice["message"].get("content"))]
    for place, call in enumerate(choice["message"].get("tool_calls", ())):
        function = call["function"]
        deltas.append({"tool_calls": [{**call, "index": place, "function": {**function, "arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": place, "function": {"arguments": word}}]}
            for word in _words(function["arguments"])
        ]
    choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices.append([{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}])
    for each in choices:
        chunk = {**kept, "object": "chat.completion.chunk", "choices": each}
        yield _event({**chunk, "usage": None} if asks_usage else chunk)
    if asks_usage:
        yield _event({**kept, "object": "chat.completion.chunk", "choices": [], "usage": answer["usage"]})
    yield b"data: [DONE]\n\n"


def stream_responses(answer: Body, request: Body) -> Iterator[bytes]:
    """Yield a response as events; the last one has all of it, with its usage."""
    begun: Event = {**answer, "status": "in_progress", "output": [], "usage": None}
    events: list[Event] = [{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")]
    for place, item in enumerate(answer["output"]):
        where = {"output_index": place, "item_id": item["id"]}
        empty: Event = {"content": []} if item["type"] == "message" else {"arguments": ""}
        opened = {**item, **empty, "status": "in_progress"}
        events.append({"type": "response.output_item.added", "output_index": place, "item": opened})
        events += _call_events(item, where) if item["type"] == "function_call" else _text_events(item, where)
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    events.append({"type": "response.completed", "response": answer})
    for number, event in enumerate(events):
        yield _event({**event, "sequence_number": number}, event["type"])


def _call_events(item: Body, where: Event) -> list[Event]:
    kind = "response.function_call_arguments"
    deltas = [{"type": f"{kind}.delta", **where, "delta": word} for word in _words(item["arguments"])]
    return [*deltas, {"type": f"{kind}.done", **where, "name": item["name"], "arguments": item["arguments"]}]


def _text_events(item: Body, where: Event) -> list[Event]:
    part = item["content"][0]
    where = {**where, "content_index": 0}
    added: Event = {"type": "response.content_part.added", **where, "part": {**part, "text": ""}}
    deltas: list[Event] = [
        {"type": "response.output_text.delta", **where, "delta": word, "logprobs": []} for word in _words(part["text"])
    ]
    done: Event = {"type": "response.output_text.done", **where, "text": part["text"], "logprobs": []}
    return [added, *deltas, done, {"type": "response.content_part.done", **where, "part": part}]


def stream_messages(answer: Body, request: Body) -> Iterator[bytes]:
    """Yield a message as events; the first one has the usage of the prompt, the last but one that of the answer."""
    begun: Event = {**answer, "content": [], "stop_reason": None, "usage": {**answer["usage"], "output_tokens": 1}}
    events: list[Event] = [{"type": "message_start", "message": begun}]
    for place, block in enumerate(answer["content"]):
        is_text = block["type"] == "text"
        opened: Event = {**block, "text": ""} if is_text else {**block, "input": {}}
        events.append({"type": "content_block_start", "index": place, "content_block": opened})
        whole = block["text"] if is_text else json.dumps(block["input"])
        kind, name = ("text_delta", "text") if is_text else ("input_json_delta", "partial_json")
        deltas = [{"type": kind, name: word} for word in _words(whole)]
        events += [{"type": "content_block_delta", "index": place, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": place})
    ended = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": answer["usage"]["output_tokens"]}
    events += [{"type": "message_delta", "delta": ended, "usage": usage}, {"type": "message_stop"}]
    for event in events:
        yield _event(event, event["type"])


def stream_contents(answer: Body, request: Body) -> Iterator[bytes]:
    """Yield an answer of Gemini in parts, each with the usage so far."""
    candidate = answer["candidates"][0]
    parts: list[Event] = []
    for part in candidate["content"]["parts"]:
        parts += [{"text": word} for word in _words(part["text"])] if "text" in part else [part]
    for number, part in enumerate(parts, 1):
        content = {"role": "model", "parts": [part]}
        ended = {"finishReason": candidate["finishReason"]} if number == len(parts) else {}
        yield _event({**answer, "candidates": [{"content": content, "index": 0, **ended}]})


def _words(text: object) -> list[str]:
    """Return a text in pieces that are the text again when they are put together."""
    return re.findall(r"\s*\S+|\s+", text) if isinstance(text, str) else []


def _event(data: Event, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()
