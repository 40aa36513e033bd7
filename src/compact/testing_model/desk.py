"""What happens to a request between its arrival and its answer: it is recorded, judged, and given its step."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any, Literal, NoReturn

from compact.testing_model.anthropic_wire import AnthropicWire
from compact.testing_model.openai_wire import OpenAIWire
from compact.testing_model.rules import Fields, Rejected, Rules, Wire, as_fields, cut_to, prompt_tokens
from compact.testing_model.steps import Answer, Failure, Held, ModelRequest, Script, Slow, Step

WIRES: dict[str, tuple[Literal["openai", "anthropic"], Wire]] = {
    "/v1/chat/completions": ("openai", OpenAIWire()),
    "/v1/messages": ("anthropic", AnthropicWire()),
}
_SECRETS = ("authorization", "x-api-key")


class Desk:
    """The state of one server, shared by the threads that answer."""

    def __init__(self, script: tuple[Script, ...], rules: Rules) -> None:
        self.rules = rules
        self.requests: list[ModelRequest] = []
        self.rejections: list[str] = []
        self.script_errors: list[Exception] = []
        self.hangups = 0
        self.changed = threading.Condition()
        self.closing = threading.Event()
        self._script = script
        self._taken = 0

    def hung_up(self) -> None:
        """A client did not wait for its answer."""
        with self.changed:
            self.hangups += 1
            self.changed.notify_all()

    def rejected(self, why: str) -> None:
        """A request was not taken."""
        with self.changed:
            self.rejections.append(why)

    def receive(self, path: str, payload: bytes, headers: dict[str, str]) -> ModelRequest:
        """Read, record and judge one request; raise Rejected if the provider would not take it."""
        if path not in WIRES:
            raise Rejected(f"Invalid URL (POST {path})", status=404)
        api, wire = WIRES[path]
        body = _parse(payload)
        request = self._record(ModelRequest(0, api, path, body, _masked(headers)))
        self.check_key(wire.key(headers))
        wire.check(body, headers, self.rules)
        if not self.rules.any_model and body["model"] not in self.rules.models:
            raise Rejected(f"The model `{body['model']}` does not exist.", status=404, param="model")
        request = self._weigh(request, wire)
        limit = wire.limit(body) or 0
        if request.prompt_tokens + limit > self.rules.window_tokens:
            raise wire.too_long(request.prompt_tokens, limit, self.rules.window_tokens)
        return request

    def check_key(self, key: str) -> None:
        """Raise Rejected if a key is needed and this is not it."""
        if self.rules.api_key is None or key == self.rules.api_key:
            return
        text = "Incorrect API key provided." if key else "You didn't provide an API key."
        raise Rejected(text, status=401)

    def next_step(self, request: ModelRequest) -> Step:
        """The step for this request, when its time has come."""
        with self.changed:
            entry = self._script[min(self._taken, len(self._script) - 1)]
            self._taken += 1
        try:
            step = entry(request) if callable(entry) else entry
        except Exception as error:
            self.script_errors.append(error)
            return Failure(500, f"the script raised {error!r}")
        while isinstance(step, Slow | Held):
            self._wait(step)
            step = step.then
        return step

    def complete(self, answer: Answer, request: ModelRequest) -> dict[str, Any]:
        """The body of an answer, cut where the limit or the window ends."""
        wire, count = WIRES[request.path][1], self.rules.count
        room = self.rules.window_tokens - request.prompt_tokens
        answer = cut_to(answer, min(wire.limit(request.body) or room, room), count)
        spent = count(answer.text or answer.refusal or "") + answer.reasoning_tokens
        return wire.answer(answer, request.number, request.body["model"], (request.prompt_tokens, spent))

    def _record(self, request: ModelRequest) -> ModelRequest:
        with self.changed:
            request = replace(request, number=len(self.requests) + 1)
            self.requests.append(request)
            self.changed.notify_all()
        return request

    def _weigh(self, request: ModelRequest, wire: Wire) -> ModelRequest:
        texts = wire.texts(request.body)
        asked = next((text for role, text in reversed(texts) if role == "user"), "")
        weight = prompt_tokens(texts, self.rules.count)
        prompt = "\n".join(text for _, text in texts)
        request = replace(request, prompt=prompt, asked=asked, prompt_tokens=weight)
        with self.changed:
            self.requests[request.number - 1] = request
        return request

    def _wait(self, step: Slow | Held) -> None:
        if isinstance(step, Slow):
            self.closing.wait(step.seconds)
            return
        while not step.release.wait(0.02) and not self.closing.is_set():
            continue


def _parse(payload: bytes) -> Fields:
    try:
        body = as_fields(json.loads(payload, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        body = None
    if body is None:
        raise Rejected("We could not parse the JSON body of your request.")
    return body


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is Python, not JSON")


def _masked(headers: dict[str, str]) -> dict[str, str]:
    return {name: "***" if name in _SECRETS and value else value for name, value in headers.items()}
