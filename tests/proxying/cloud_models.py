"""Models that speak the wires of Google, AWS and Ollama, streaming or not, and reject what their providers would."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from compact.dialects.ollama import check_ollama
from compact.testing import ScriptedAnswer, ScriptedCall
from compact.testing.anthropic_api import MessagesApi
from compact.testing.apis.converse import ConverseApi
from compact.testing.apis.converse_stream import EVENT_STREAM, frame_event, stream_converse
from compact.testing.apis.gemini import GenerateContentApi
from compact.testing.apis.streams import stream_contents
from compact.testing.provider_api import ProviderApi, RequestRejected, TokenUsage
from proxying.models import AnthropicWire, Fields, Model, Turn, Wire, halves, server_settings
from proxying.provider import Received


class _ScriptedWire(Wire):
    """A wire whose rules and answers are those of the scripted models."""

    api: ProviderApi

    def check(self, body: Fields, request: Received) -> None:
        self.api.check(body, {name.lower(): value for name, value in request.headers}, server_settings())

    def error(self, rejected: RequestRejected) -> Fields:
        return self.api.error(rejected)

    def answer(self, body: Fields, turn: Turn, tokens: int) -> Fields:
        calls = (ScriptedCall("read_file", {"path": turn.path}, turn.call_id),) if turn.call_id else ()
        return self.api.answer(ScriptedAnswer(turn.text or None, calls=calls), 1, "model", TokenUsage(tokens, 7))


class _Gemini(_ScriptedWire):
    api = GenerateContentApi()

    def is_streamed(self, request: Received) -> bool:
        return "streamGenerateContent?alt=sse" in request.target

    def stream(self, body: Fields, turn: Turn, tokens: int) -> Iterator[bytes]:
        yield from stream_contents(self.answer(body, turn, tokens), body)


class _GeminiArray(_Gemini):
    """A stream without `alt=sse`: one JSON array, whose parts come one by one."""

    stream_type = "application/json"

    def is_streamed(self, request: Received) -> bool:
        return True

    def stream(self, body: Fields, turn: Turn, tokens: int) -> Iterator[bytes]:
        before = b"["
        for event in super().stream(body, turn, tokens):
            yield before + event.removeprefix(b"data: ").strip()
            before = b",\r\n"
        yield b"]"


class _Converse(_ScriptedWire):
    api = ConverseApi()
    stream_type = EVENT_STREAM

    def is_streamed(self, request: Received) -> bool:
        return request.path.endswith("/converse-stream")

    def stream(self, body: Fields, turn: Turn, tokens: int) -> Iterator[bytes]:
        yield from stream_converse(self.answer(body, turn, tokens), body)


class _HostedAnthropic(AnthropicWire):
    """Claude at Vertex or Bedrock: the version is in the body, and the model in the path."""

    first_version = "vertex-2023-10-16"

    def check(self, body: Fields, request: Received) -> None:
        if "model" in body:
            raise RequestRejected("model: Extra inputs are not permitted")
        version = str(body.get("anthropic_version"))
        version = "2023-06-01" if version == self.first_version else version
        plain = {name: value for name, value in body.items() if name not in ("anthropic_version", "anthropic_beta")}
        MessagesApi().check({**plain, "model": "m"}, {"anthropic-version": version}, server_settings())

    def is_streamed(self, request: Received) -> bool:
        return "streamRawPredict" in request.path or "response-stream" in request.path

    def answer(self, body: Fields, turn: Turn, tokens: int) -> Fields:
        return super().answer({**body, "model": "m"}, turn, tokens)


class _BedrockAnthropic(_HostedAnthropic):
    first_version = "bedrock-2023-05-31"
    stream_type = EVENT_STREAM

    def stream(self, body: Fields, turn: Turn, tokens: int) -> Iterator[bytes]:
        for event in super().stream(body, turn, tokens):
            data = event.partition(b"data: ")[2].strip()
            yield frame_event("chunk", {"bytes": base64.b64encode(data).decode(), "p": "abcdefgh"})


class _Ollama(Wire):
    stream_type = "application/x-ndjson"

    def check(self, body: Fields, request: Received) -> None:
        for violation in check_ollama(body["messages"], known_only=True):
            raise RequestRejected(f"messages[{violation.place}]: {violation.rule}: {violation.detail}")

    def error(self, rejected: RequestRejected) -> Fields:
        return {"error": rejected.message}

    def is_streamed(self, request: Received) -> bool:
        return request.json.get("stream", True)

    def answer(self, body: Fields, turn: Turn, tokens: int) -> Fields:
        message: Fields = {"role": "assistant", "content": turn.text}
        if turn.call_id:
            message["tool_calls"] = [{"function": {"name": "read_file", "arguments": {"path": turn.path}}}]
        counts = {"total_duration": 1, "prompt_eval_count": tokens, "eval_count": 7}
        return {"model": body["model"], "message": message, "done": True, "done_reason": "stop", **counts}

    def stream(self, body: Fields, turn: Turn, tokens: int) -> Iterator[bytes]:
        done = self.answer(body, turn, tokens)
        parts: list[Fields] = [{"role": "assistant", "content": part} for part in halves(turn.text)]
        parts += [done["message"]] if turn.call_id else []
        for part in parts:
            yield json.dumps({"model": body["model"], "message": part, "done": False}).encode() + b"\n"
        yield json.dumps({**done, "message": {"role": "assistant", "content": ""}}).encode() + b"\n"


_PATHS: tuple[tuple[str, Wire], ...] = (
    (r"/v1(beta)?/(projects/p/locations/l/publishers/google/)?models/[\w.-]+:generateContent", _Gemini()),
    (r"/v1(beta)?/(projects/p/locations/l/publishers/google/)?models/[\w.-]+:streamGenerateContent", _Gemini()),
    (r"/model/[^/]+/converse(-stream)?", _Converse()),
    (r"/model/[^/]+/invoke(-with-response-stream)?", _BedrockAnthropic()),
    (r"/v1/projects/p/locations/l/publishers/anthropic/models/[^/]+:(stream)?[rR]awPredict", _HostedAnthropic()),
    (r"/api/chat", _Ollama()),
)


@dataclass
class CloudModel(Model):
    """Answers on these wires; with `credentials`, only what is signed with them is taken."""

    credentials: tuple[str, str] | None = None

    def wire_of(self, request: Received) -> Wire | None:
        if self.credentials and not is_signed_with(self.credentials, request):
            raise AssertionError("the signature is not the one that these credentials make")
        if request.target.endswith(":streamGenerateContent"):
            return _GeminiArray()
        return next((wire for pattern, wire in _PATHS if re.fullmatch(pattern, request.path)), None)


def is_signed_with(credentials: tuple[str, str], request: Received) -> bool:
    """Whether AWS would take a request: its signature is made again from what arrived."""
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d+/([^/]+)/([^/]+)/aws4_request, SignedHeaders=(\S+), Signature=(\w+)",
        request.header("authorization"),
    )
    if not found or found[1] != credentials[0]:
        return False
    headers = {name: request.header(name) for name in found[4].split(";")}
    assert {"host", "x-amz-date"} <= headers.keys()
    again: Any = AWSRequest(request.method, f"http://{headers['host']}{request.target}", headers, request.body)
    again.context["timestamp"] = headers["x-amz-date"]
    auth = SigV4Auth(Credentials(*credentials), found[3], found[2])
    return auth.signature(auth.string_to_sign(again, auth.canonical_request(again)), again) == found[5]
