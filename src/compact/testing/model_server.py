"""A model server that answers by script: real HTTP on loopback, as strict as the providers, and sick on demand.

    with ScriptedModel(fail(429, retry_after=0.1), refuse(), say("A short summary.")) as model:
        client = OpenAI(base_url=model.base_url, api_key="any")

It speaks OpenAI Chat Completions and Responses, Anthropic Messages, Gemini's generateContent and Bedrock's Converse
with the same script, and streams where a request asks for it. A request that the provider would reject,
because it does not fit the window with the room for its answer for instance, is rejected, takes no step of the script,
and is named in `model.rejections`.
"""

from __future__ import annotations

import json
import re
import select
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, NoReturn, TypeAlias, cast
from urllib.parse import unquote

from compact.testing.anthropic_api import MessagesApi
from compact.testing.apis.converse import ConverseApi
from compact.testing.apis.converse_stream import EVENT_STREAM, stream_converse
from compact.testing.apis.gemini import GenerateContentApi
from compact.testing.apis.responses import ResponsesApi
from compact.testing.apis.streams import stream_chat, stream_contents, stream_messages, stream_responses
from compact.testing.model_script import (
    Cut,
    Echo,
    Failure,
    Held,
    Raw,
    ReceivedRequest,
    Script,
    ScriptedAnswer,
    Slow,
    Step,
)
from compact.testing.openai_api import ChatCompletionsApi
from compact.testing.provider_api import (
    Fields,
    ProviderApi,
    RequestRejected,
    ServerSettings,
    TokenUsage,
    as_fields,
    count_pieces,
    count_prompt,
    cut_to,
)

# Turns the body of an answer, and of the request for it, into the events of a stream.
Stream: TypeAlias = Callable[[Fields, Fields], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class ServedApi:
    """A path of the server: the word for its provider, the API that answers there, and how an answer is streamed.

    A request asks for a stream in its body, unless the path is there for nothing else (`is_stream`).
    """

    provider: Literal["openai", "anthropic", "gemini", "bedrock"]
    api: ProviderApi
    stream: Stream | None = None
    is_stream: bool = False
    stream_type: str = "text/event-stream"

    def asks_for_stream(self, request: ReceivedRequest) -> bool:
        """Return True if a request wants its answer in parts."""
        return self.is_stream or request.body.get("stream") is True


ENDPOINTS: Mapping[str, ServedApi] = {
    "/v1/chat/completions": ServedApi("openai", ChatCompletionsApi(), stream_chat),
    "/v1/messages": ServedApi("anthropic", MessagesApi(), stream_messages),
    "/v1/responses": ServedApi("openai", ResponsesApi(), stream_responses),
}
# Here the model is in the path.
_MODEL_PATHS = (
    (re.compile(r"/v1(?:alpha|beta)?/models/([^/:]+):generateContent"), ServedApi("gemini", GenerateContentApi())),
    (
        re.compile(r"/v1(?:alpha|beta)?/models/([^/:]+):streamGenerateContent"),
        ServedApi("gemini", GenerateContentApi(), stream_contents, is_stream=True),
    ),
    (re.compile(r"/model/([^/]+)/converse"), ServedApi("bedrock", ConverseApi())),
    (
        re.compile(r"/model/([^/]+)/converse-stream"),
        ServedApi("bedrock", ConverseApi(), stream_converse, is_stream=True, stream_type=EVENT_STREAM),
    ),
)
_SECRET_HEADERS = ("authorization", "x-api-key")


def find_api(path: str) -> tuple[ServedApi | None, str]:
    """Return the API that answers at a path, and the model that the path names."""
    for pattern, served in _MODEL_PATHS:
        if found := pattern.fullmatch(path):
            return served, unquote(found[1])
    return ENDPOINTS.get(path), ""


class ScriptRunner:
    """The state of one scripted server, shared by the threads that answer: the requests so far, and the next step."""

    def __init__(self, script: tuple[Script, ...], settings: ServerSettings) -> None:
        self.settings = settings
        self.requests: list[ReceivedRequest] = []
        self.rejections: list[str] = []
        self.script_errors: list[Exception] = []
        self.hangups = 0
        self.changed = threading.Condition()
        self.closing = threading.Event()
        self._script = script
        self._taken = 0

    def record_hangup(self) -> None:
        """Count a client that did not wait for its answer."""
        with self.changed:
            self.hangups += 1
            self.changed.notify_all()

    def record_rejection(self, reason: str) -> None:
        """Keep why a request was not taken."""
        with self.changed:
            self.rejections.append(reason)

    def receive(self, path: str, payload: bytes, headers: dict[str, str]) -> ReceivedRequest:
        """Read, record and check one request; raise RequestRejected if the provider would not take it."""
        endpoint, model = find_api(path)
        if endpoint is None:
            raise RequestRejected(f"Invalid URL (POST {path})", status=404)
        body = {"model": model, **_parse(payload)} if model else _parse(payload)
        request = self._record(ReceivedRequest(0, endpoint.provider, path, body, _masked(headers)))
        self.check_key(endpoint.api.key(headers))
        endpoint.api.check(body, headers, self.settings)
        if not self.settings.any_model and body["model"] not in self.settings.models:
            raise RequestRejected(f"The model `{body['model']}` does not exist.", status=404, param="model")
        request = self._count(request, endpoint.api)
        limit = endpoint.api.limit(body) or 0
        if request.prompt_tokens + limit > self.settings.window_tokens:
            raise endpoint.api.too_long(request.prompt_tokens, limit, self.settings.window_tokens)
        return request

    def check_key(self, key: str) -> None:
        """Raise RequestRejected if a key is needed and this is not it."""
        if self.settings.api_key is None or key == self.settings.api_key:
            return
        text = "Incorrect API key provided." if key else "You didn't provide an API key."
        raise RequestRejected(text, status=401)

    def next_step(self, request: ReceivedRequest) -> Step:
        """Return the step for this request, once its time has come."""
        with self.changed:
            entry = self._script[min(self._taken, len(self._script) - 1)]
            self._taken += 1
        try:
            step = entry(request) if callable(entry) else entry
        except Exception as error:  # noqa: BLE001 - a function of the test: what it raises is raised again by `close`
            self.script_errors.append(error)
            return Failure(500, f"the script raised {error!r}")
        while isinstance(step, Slow | Held):
            self._wait(step)
            step = step.then
        return step

    def complete(self, answer: ScriptedAnswer, request: ReceivedRequest) -> dict[str, Any]:
        """Return the body of an answer, cut where the limit or the window ends."""
        served, _ = find_api(request.path)
        assert served is not None, "a request is only received where an API answers"
        api, count = served.api, self.settings.count
        room = self.settings.window_tokens - request.prompt_tokens
        answer = cut_to(answer, min(api.limit(request.body) or room, room), count)
        output_tokens = count(answer.text or answer.refusal or "") + answer.reasoning_tokens
        usage = TokenUsage(request.prompt_tokens, output_tokens)
        return api.answer(answer, request.number, request.body["model"], usage)

    def _record(self, request: ReceivedRequest) -> ReceivedRequest:
        with self.changed:
            request = replace(request, number=len(self.requests) + 1)
            self.requests.append(request)
            self.changed.notify_all()
        return request

    def _count(self, request: ReceivedRequest, api: ProviderApi) -> ReceivedRequest:
        texts = api.texts(request.body)
        asked = next((each.text for each in reversed(texts) if each.role == "user"), "")
        prompt = "\n".join(each.text for each in texts)
        tokens = count_prompt(texts, self.settings.count)
        request = replace(request, prompt=prompt, asked=asked, prompt_tokens=tokens)
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
        raise RequestRejected("We could not parse the JSON body of your request.")
    return body


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is Python, not JSON")


def _masked(headers: dict[str, str]) -> dict[str, str]:
    return {name: "***" if name in _SECRET_HEADERS and value else value for name, value in headers.items()}


class ScriptedModel:
    """A model server on loopback that answers by script: one step a request, the last one again and again.

    It speaks OpenAI Chat Completions and Responses, Anthropic Messages, Gemini's generateContent and Bedrock's
    Converse. A request that the provider would reject is rejected, takes no step of the script, and is named in
    `rejections`.

    Args:
        script: The steps (`say`, `fail`, `refuse`, …), or functions of a `ReceivedRequest` that return one.
        window_tokens: The window, for prompt and answer together.
        api_key: The only key that is taken; every other one gets a 401. By default any key will do.
        models: The models there are; every other one gets a 404. By default any name will do.
        reasoning: The manner of OpenAI's thinking models, which take neither `max_tokens` nor a temperature.
        count: Counts the tokens of a text.

    Raises:
        ValueError: The script has no step.

    Example:
        >>> import json
        >>> from urllib.request import Request, urlopen
        >>> from compact.testing import ScriptedModel, say
        >>> model = ScriptedModel(say("Hello."))
        >>> body = {"model": "any", "messages": [{"role": "user", "content": "Hi"}]}
        >>> url = f"{model.base_url}/chat/completions"  # what a client makes of base_url
        >>> request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        >>> with urlopen(request) as response:
        ...     json.load(response)["choices"][0]["message"]["content"]
        'Hello.'
        >>> model.requests[0].asked, model.rejections
        ('Hi', ())
        >>> model.close()
    """

    def __init__(
        self,
        *script: Script,
        window_tokens: int = 128_000,
        api_key: str | None = None,
        models: Sequence[str] = (),
        reasoning: bool = False,
        count: Callable[[str], int] = count_pieces,
    ) -> None:
        if not script:
            raise ValueError("a script needs at least one step\nhint: ScriptedModel(say('hello'))")
        known = tuple(models) or ("scripted-model",)
        self._runner = ScriptRunner(script, ServerSettings(window_tokens, api_key, known, not models, reasoning, count))
        self._server = _Server(self._runner)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __enter__(self) -> ScriptedModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop, without waiting for slow steps.

        Raises:
            RuntimeError: A function of the script raised; its error is the cause.

        Example:
            >>> model = ScriptedModel(say("Hello."))
            >>> model.close()
        """
        self._runner.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self._runner.script_errors:
            first = self._runner.script_errors[0]
            raise RuntimeError(f"a function of the script raised {first!r}") from first

    @property
    def anthropic_url(self) -> str:
        """What the Anthropic client takes as its base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def base_url(self) -> str:
        """What the OpenAI client takes as its base URL."""
        return f"{self.anthropic_url}/v1"

    @property
    def requests(self) -> tuple[ReceivedRequest, ...]:
        """Every request that could be parsed, oldest first, rejected ones included."""
        with self._runner.changed:
            return tuple(self._runner.requests)

    @property
    def rejections(self) -> tuple[str, ...]:
        """Why requests were not taken; empty if the client did everything right."""
        with self._runner.changed:
            return tuple(self._runner.rejections)

    @property
    def hangups(self) -> int:
        """How many clients left before they had their answer."""
        with self._runner.changed:
            return self._runner.hangups

    def wait_for(self, *, requests: int = 0, hangups: int = 0, timeout_seconds: float = 10.0) -> bool:
        """Wait until so many requests have arrived and so many clients have left.

        Args:
            requests: The requests to wait for.
            hangups: The clients to wait for that leave before they have their answer.
            timeout_seconds: How long to wait at most.

        Returns:
            False if they have not.

        Example:
            >>> model.wait_for(requests=1)
            True
        """
        runner = self._runner
        with runner.changed:
            return runner.changed.wait_for(
                lambda: len(runner.requests) >= requests and runner.hangups >= hangups, timeout_seconds
            )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, runner: ScriptRunner) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.runner = runner


class _Handler(BaseHTTPRequestHandler):
    """One request per connection, so that nothing is left open when the server stops."""

    protocol_version = "HTTP/1.1"
    server_version = "ScriptedModel"
    disable_nagle_algorithm = True

    @property
    def runner(self) -> ScriptRunner:
        return cast("_Server", self.server).runner

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: requests are recorded."""

    def do_GET(self) -> None:
        api = ChatCompletionsApi()
        try:
            if self.path != "/v1/models":
                raise RequestRejected(f"Invalid URL (GET {self.path})", status=404)
            self.runner.check_key(api.key(self._request_headers()))
        except RequestRejected as rejected:
            self._reject(rejected, api)
            return
        models = self.runner.settings.models
        entries = [{"id": name, "object": "model", "created": 1, "owned_by": "script"} for name in models]
        self._send_json(200, {"object": "list", "data": entries})

    def do_POST(self) -> None:
        payload = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.split("?")[0]
        served, _ = find_api(path)
        api: ProviderApi = served.api if served else ChatCompletionsApi()
        try:
            request = self.runner.receive(path, payload, self._request_headers())
        except RequestRejected as rejected:
            self._reject(rejected, api)
            return
        self._answer(self.runner.next_step(request), request, api)

    def _request_headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def _reject(self, rejected: RequestRejected, api: ProviderApi) -> None:
        self.runner.record_rejection(rejected.message)
        self._send_json(rejected.status, api.error(rejected))

    def _answer(self, step: Step, request: ReceivedRequest, api: ProviderApi) -> None:
        match step:
            case ScriptedAnswer():
                self._send_answer(self.runner.complete(step, request), request)
            case Echo():
                self._send_answer(self.runner.complete(ScriptedAnswer(request.asked), request), request)
            case Failure():
                error = RequestRejected(step.message, status=step.status, code=step.code, param=step.param)
                extra = {} if step.retry_after is None else {"Retry-After": f"{step.retry_after:g}"}
                self._send_json(step.status, api.error(error), extra)
            case Raw():
                self._send(step.status, step.body, {"Content-Type": step.content_type})
            case Cut():
                whole = json.dumps(self.runner.complete(ScriptedAnswer(step.text), request)).encode()
                announced = {"Content-Type": "application/json", "Content-Length": str(len(whole))}
                self._send(200, whole[: len(whole) // 2], announced)
            case _:
                raise TypeError(f"not a step that can be answered: {step!r}")

    def _send_answer(self, body: Fields, request: ReceivedRequest) -> None:
        served, _ = find_api(request.path)
        if served and served.stream and served.asks_for_stream(request):
            self._send_stream(served.stream(body, request.body), served.stream_type)
        else:
            self._send_json(200, body)

    def _send_stream(self, events: Iterator[bytes], content_type: str) -> None:
        """Send events one by one; the stream ends with the connection."""
        self.close_connection = True
        self.send_response(200)
        for name, value in {"Content-Type": content_type, "Connection": "close"}.items():
            self.send_header(name, value)
        try:
            self.end_headers()
            for event in events:
                self.wfile.write(event)
        except ConnectionError:
            self.runner.record_hangup()

    def _send_json(self, status: int, body: Fields, extra: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(body).encode(), {"Content-Type": "application/json", **(extra or {})})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.close_connection = True
        try:
            if self._client_left():
                self.runner.record_hangup()
                return
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers, "Connection": "close"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            self.runner.record_hangup()

    def _client_left(self) -> bool:
        # Writing to a client that has gone succeeds the first time, so ask the socket instead.
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
