"""What makes two summaries interchangeable: the same words, told by the same model in the same way."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from compact.core.messages import Message
from compact.core.summary import SummaryCacheKey, SummaryRequest


def compute_content_hash(messages: Iterable[Message], *more: str) -> str:
    """A fingerprint of messages as a summariser sees them, ids included: a summary names its sources."""
    digest = hashlib.sha256()
    for message in messages:
        calls = [[call.id, call.name, call.arguments] for call in message.tool_calls]
        digest.update(_bytes([message.id, message.role, message.name, message.tool_call_id, message.text, calls]))
    digest.update(_bytes(more))
    return digest.hexdigest()


def create_summary_cache_key(
    request: SummaryRequest, *, model: str, prompt_version: str, tenant_id: str = ""
) -> SummaryCacheKey:
    """The key under which the summary of a request is remembered; tenants never share one."""
    before = json.dumps(request.previous.to_dict()) if request.previous else ""
    return SummaryCacheKey(
        content_hash=compute_content_hash(request.span or request.messages, before, request.note, tenant_id),
        policy_version=f"{request.strategy} in {request.max_tokens}",
        model=model,
        prompt_version=prompt_version,
    )


def _bytes(value: Sequence[object]) -> bytes:
    # ASCII: lone surrogates are escaped.
    return json.dumps(value, separators=(",", ":")).encode()
