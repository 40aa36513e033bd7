"""boto3's Bedrock runtime, wrapped: many turns against a strict server, whole and streamed."""

from __future__ import annotations

import asyncio
from typing import Any

import boto3
import pytest

import compact
from adapters import client_loops
from adapters.client_loops import LLAMA
from adapters.enforced_window import TURNS, enforced
from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent, TokenEstimateEvent
from compact.core.errors import ConfigError
from compact.testing import RecordingSink, ScriptedModel, fail, say

HELLO: Any = {"modelId": LLAMA, "messages": [{"role": "user", "content": [{"text": "Say where the wind is from."}]}]}


def client_of(url: str, service: str = "bedrock-runtime") -> Any:
    credentials = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
    return boto3.client(service, endpoint_url=url, **credentials)


def test_many_turns() -> None:
    """Every other one streamed: nothing is refused, it was compacted, and the count of each prompt was taken in."""
    with enforced(8_192, counted_as="gpt-4o", register_tokens=24_000) as run:
        own = client_of(run.model.anthropic_url)
        client = compact.wrap(own, run.manager, session_id="s")
        asyncio.run(client_loops.converse(client, run.register, range(1, TURNS + 1)))
        assert not run.model.rejections, run.model.rejections[:3]
        assert len(run.model.requests) == 2 * TURNS
        assert not run.sink.of(CompactionErrorEvent)
        assert run.sink.of(CompactionCompletedEvent), "everything fitted"
        calls = run.manager.model_calls("s")
        assert [call.tokens_reported for call in calls] == [request.prompt_tokens for request in run.model.requests]
        assert {event.model for event in run.sink.of(TokenEstimateEvent)} == {LLAMA}


def test_a_wrapped_client_is_one_of_its_kind() -> None:
    """Of the same class, with the same streams and errors; the client that was passed in is as it was."""
    sink = RecordingSink()
    config = CompactConfig(telemetry={"exporter": "none"})
    script = [say("The hold was full of salt.")] * 3 + [fail(429)]
    with ScriptedModel(*script) as server, CompactManager(config, on_event=sink) as manager:
        own = client_of(server.anthropic_url)
        before = dict(vars(own))
        client = compact.wrap(own, manager, session_id="s")
        assert isinstance(client, type(own))
        assert (client.meta, type(client).__name__) == (own.meta, "BedrockRuntime")
        assert client.converse(**HELLO)["output"]["message"]["content"] == [{"text": "The hold was full of salt."}]
        seen, plain = (list(one.converse_stream(**HELLO)["stream"]) for one in (client, own))
        assert seen == plain
        assert len(seen) > 5
        assert [call.tokens_reported for call in manager.model_calls("s")] == [
            request.prompt_tokens for request in server.requests[:2]
        ]
        assert vars(own) == before
        with pytest.raises(client.exceptions.ThrottlingException):
            client.converse(**HELLO)


def test_another_service_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"botocore\.client\.S3"):
        compact.wrap(client_of("http://127.0.0.1:1", "s3"))
