"""The response that an agent gets: the provider's own bytes, or with calls of the recall tool answered in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

from compact.proxy.headers import Headers, by_name, for_client, without_body_headers
from compact.proxy.outcome import RequestOutcome
from compact.proxy.recall.rounds import RecallRounds
from compact.proxy.upstream import Response
from compact.proxy.usage import UsageReader


@dataclass(frozen=True, slots=True)
class PassedResponse:
    """The provider's response, with the headers and the parts of the body as the agent gets them.

    `reader` reads the usage of the prompt that was measured; it is None if none was.
    """

    response: Response
    headers: Headers
    parts: AsyncGenerator[bytes]
    reader: UsageReader | None
    outcome: RequestOutcome | None


def pass_unchanged(response: Response, outcome: RequestOutcome | None) -> PassedResponse:
    """Return a response as it came, byte for byte."""
    headers = for_client(response.headers.raw)
    reader = UsageReader(by_name(headers)) if outcome and outcome.call and response.status_code == 200 else None
    if outcome:
        headers.append(outcome.header)
    return PassedResponse(response, headers, _read(response, reader), reader, outcome)


async def pass_answered(response: Response, outcome: RequestOutcome, rounds: RecallRounds) -> PassedResponse:
    """Return a response in which calls of the recall tool are answered; one that holds no answer is as it came.

    A stream is answered while it passes; a whole response before it begins.
    """
    headers = for_client(response.headers.raw)
    kind = by_name(headers).get(b"content-type", b"").split(b";")[0].strip().lower()
    is_stream = kind == b"text/event-stream"
    if response.status_code != 200 or not (is_stream or kind.endswith((b"/json", b"+json"))):
        return pass_unchanged(response, outcome)
    reader = UsageReader(by_name(without_body_headers(headers)))
    if is_stream:
        headers = [*without_body_headers(headers), outcome.header]
        return PassedResponse(response, headers, rounds.stream(response, reader), reader, outcome)
    last, body = await rounds.whole(response, reader)
    outcome = replace(outcome, recalls=rounds.answered)
    length = (b"Content-Length", str(len(body)).encode())
    headers = [*without_body_headers(for_client(last.headers.raw)), length, outcome.header]
    return PassedResponse(last, headers, _single(body), reader, outcome)


async def _read(response: Response, reader: UsageReader | None) -> AsyncGenerator[bytes]:
    async for part in response.aiter_raw():
        if reader:
            reader.feed(part)
        yield part


async def _single(body: bytes) -> AsyncGenerator[bytes]:
    yield body
