"""The last resort before giving up: cut what is too large by head and tail, largest message first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from compact.core.messages import Message
from compact.core.plan import ClearRecord, SpanReference
from compact.core.stubs import render_cleared

SHORTEN = "shorten"
_SMALLEST_TOKENS = 48
_HEAD_SHARE = 2 / 3


def shorten_largest(
    candidates: Iterable[tuple[Message, int, int]], *, excess_tokens: int, count_message: Callable[[Message], int]
) -> list[ClearRecord]:
    """Records that cut messages until the excess is gone or nothing more can be cut.

    Candidates come as (message, tokens in full, tokens now): one that was cut before may be cut again.
    """
    records: list[ClearRecord] = []
    for message, tokens, now in sorted(candidates, key=lambda candidate: -candidate[2]):
        if excess_tokens <= 0:
            break
        record = _cut(message, tokens, max(_SMALLEST_TOKENS, now - excess_tokens), count_message)
        if record.tokens_after < now:
            records.append(record)
            excess_tokens -= now - record.tokens_after
    return records


def _cut(message: Message, tokens: int, allowed_tokens: int, count_message: Callable[[Message], int]) -> ClearRecord:
    """Cut one message down to the allowed tokens, or as near as it gets."""
    text_chars = len(message.text)
    argument_chars = max((len(call.arguments) for call in message.tool_calls), default=0)
    share = 0.95 * allowed_tokens / max(tokens, 1)
    record = _record(message, tokens, int(text_chars * share), int(argument_chars * share))
    for _ in range(12):
        after = count_message(render_cleared(message, record))
        record = replace(record, tokens_after=after)
        if after <= allowed_tokens or share < 1e-7:
            break
        share *= 0.75 * allowed_tokens / after
        record = _record(message, tokens, int(text_chars * share), int(argument_chars * share))
    return record


def _record(message: Message, tokens: int, text_chars: int, argument_chars: int) -> ClearRecord:
    length, head = len(message.text), int(text_chars * _HEAD_SHARE)
    tail = text_chars - head
    kept = tuple(piece for piece in ((0, head), (length - tail, length)) if piece[1] > piece[0])
    return ClearRecord(
        span=SpanReference((message.id,)),
        strategy=SHORTEN,
        reason="too large for the budget, cut by head and tail",
        tokens_before=tokens,
        tokens_after=tokens,
        kept=kept if length > text_chars else ((0, length),),
        argument_chars=max(argument_chars, 32) if message.tool_calls else None,
    )
