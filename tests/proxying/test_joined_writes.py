"""The start of a response and its body leave together."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from compact.proxy.joined_writes import JoinedWrites


class _Sent:
    """What a transport was told to do."""

    def __init__(self) -> None:
        self.done: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.done.append(data)

    def close(self) -> None:
        self.done.append(b"closed")

    def is_closing(self) -> bool:
        return b"closed" in self.done


def test_two_writes_are_one_and_nothing_waits_for_a_second_that_does_not_come() -> None:
    async def respond() -> list[bytes]:
        sent = _Sent()
        joined = JoinedWrites(cast(Any, sent))
        joined.write(b"start ")
        joined.write(b"body")
        assert sent.done == [b"start body"], "at once"
        joined.write(b"")
        joined.write(b"part")
        assert sent.done == [b"start body"]
        await asyncio.sleep(0)
        assert sent.done == [b"start body", b"part"]
        joined.write(b"last")
        joined.close()
        assert joined.is_closing()
        await asyncio.sleep(0)
        return sent.done

    assert asyncio.run(respond()) == [b"start body", b"part", b"last", b"closed"]
