"""The archive in a real S3 server: signed, encrypted where asked, never overwritten, and never a hindrance."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from compact.archive import ArchiveError, S3Archive
from compact.archive import s3 as s3_module
from compact.core.errors import ConfigError
from compact.core.messages.message import Message
from compact.extras import install_line
from stalls import own_clock

KMS_KEY = "compact-archive-test-key"


def said(text: str) -> list[Message]:
    return [Message("user", text, original={"role": "user", "content": text})]


def open_archive(bucket: Any, **options: Any) -> S3Archive:
    return S3Archive(bucket.name, "team/prod", endpoint_url=bucket.server.url, **options)


def holds(folder: Path, text: str) -> bool:
    """True if any file under the folder has the text in its bytes."""
    return any(text.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_what_was_saved_can_be_read_with_the_right_credentials(bucket: Any) -> None:
    key = open_archive(bucket).save_transcript("s", said("hello"), 1)
    assert key == "team/prod/s/transcript-pre-compact-001.jsonl"
    assert json.loads(bucket.read(key)) == {"role": "user", "content": "hello"}
    assert bucket.client.head_object(Bucket=bucket.name, Key=key)["ContentType"] == "application/x-ndjson"


@pytest.mark.parametrize("prefix", ["", "/", "a", "/a/", "a/b"])
def test_the_prefix_may_be_written_in_any_way(bucket: Any, prefix: str) -> None:
    archive = S3Archive(bucket.name, prefix, endpoint_url=bucket.server.url)
    key = archive.save_summary("s", Message("user", "x"), 1)
    assert key == f"{prefix.strip('/')}/s/summary-001.json".lstrip("/")
    assert list(bucket.contents()) == [key]


@pytest.mark.parametrize(
    ("access", "secret", "reason"),
    [
        ("testkey", "wrong", "secret key is wrong"),
        ("nobody", "wrong", "access key is unknown"),
        ("readkey", "readsecret", "access denied"),
    ],
)
def test_wrong_credentials_are_refused_at_once(bucket: Any, access: str, secret: str, reason: str) -> None:
    bucket.log_in(access, secret)
    archive, start = open_archive(bucket), time.monotonic()
    with pytest.raises(ArchiveError, match=reason) as caught:
        archive.save_transcript("s", said("hello"), 1)
    assert time.monotonic() - start < 10
    assert caught.value.place == f"s3://{bucket.name}/team/prod/s/transcript-pre-compact-001.jsonl"
    assert caught.value.hint
    assert secret not in str(caught.value).replace(reason, "")
    assert bucket.contents() == {}


def test_no_credentials_is_an_error_that_says_so(s3_server: Any, log_in: Callable[[str, str], None]) -> None:
    archive = S3Archive("some-bucket", endpoint_url=s3_server.url)
    with pytest.raises(ArchiveError, match="no usable credentials"):
        archive.save_event("s", {"event": "x"})


def test_encrypted_objects_are_not_on_the_disk_in_clear(bucket: Any) -> None:
    plain, secret, event = (f"{word}-{uuid4().hex}" for word in ("plain", "secret", "event"))
    open_archive(bucket).save_transcript("clear", said(plain), 1)
    archive = open_archive(bucket, kms_key_id=KMS_KEY)
    key = archive.save_transcript("encrypted", said(secret), 1)
    archive.save_event("encrypted", {"event": event})
    assert json.loads(bucket.read(key))["content"] == secret
    head = bucket.client.head_object(Bucket=bucket.name, Key=key)
    assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", KMS_KEY)
    assert holds(bucket.server.data, plain), "the search does not find what is there: it proves nothing"
    assert not holds(bucket.server.data, secret)
    assert not holds(bucket.server.data, event)


def test_credentials_that_may_only_write_still_lose_nothing(bucket: Any) -> None:
    """They cannot look whether the content is equal, so it is kept twice."""
    bucket.log_in("writekey", "writesecret")
    archive = open_archive(bucket)
    keys = [archive.save_transcript("s", said("same"), 1) for _ in range(2)]
    assert [key.rsplit("/", 1)[1] for key in keys] == [
        "transcript-pre-compact-001.jsonl",
        "transcript-pre-compact-001-2.jsonl",
    ]
    assert set(bucket.contents()) == set(keys)


def test_writers_of_the_same_step_and_of_events_lose_nothing(bucket: Any) -> None:
    texts = [f"writer {number}" for number in range(12)]

    def write(text: str) -> str:
        archive = open_archive(bucket)
        archive.save_event("s", {"who": text})
        return archive.save_transcript("s", said(text), 1)

    with ThreadPoolExecutor(6) as pool:
        keys = list(pool.map(write, texts))
    stored = bucket.contents()
    assert [json.loads(stored[key])["content"] for key in keys] == texts
    events = [json.loads(data)["who"] for key, data in stored.items() if "/events/" in key]
    assert sorted(events) == sorted(texts)


def test_a_missing_bucket_is_named_with_what_to_do(bucket: Any) -> None:
    archive = S3Archive("no-such-bucket-here", endpoint_url=bucket.server.url)
    with pytest.raises(ArchiveError) as caught:
        archive.save_transcript("s", said("hello"), 1)
    assert str(caught.value) == (
        "cannot write to the archive at s3://no-such-bucket-here/s/transcript-pre-compact-001.jsonl: "
        "the bucket does not exist\nhint: create it, or correct the bucket's name"
    )


def test_an_impossible_bucket_name_is_an_archive_error(log_in: Callable[[str, str], None]) -> None:
    log_in("a", "b")
    with pytest.raises(ArchiveError, match="Invalid bucket name"):
        S3Archive("not a bucket!", endpoint_url="http://127.0.0.1:1").save_event("s", {})


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:
        yield server.getsockname()[1]


def test_a_dead_endpoint_is_an_error_within_seconds(log_in: Callable[[str, str], None]) -> None:
    log_in("a", "b")
    archive, start = S3Archive("some-bucket", endpoint_url="http://127.0.0.1:1"), time.monotonic()
    with pytest.raises(ArchiveError, match="out of reach"):
        archive.save_transcript("s", said("hello"), 1)
    assert time.monotonic() - start < 5


def test_a_silent_endpoint_is_given_up_on_and_then_left_alone(
    silent_port: int, log_in: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in("a", "b")
    monkeypatch.setattr(s3_module, "_READ_SECONDS", 0.5)
    archive = S3Archive("some-bucket", endpoint_url=f"http://127.0.0.1:{silent_port}", pause_seconds=1.0)
    start = time.monotonic()
    with pytest.raises(ArchiveError, match="out of reach"):
        archive.save_event("s", {"event": "x"})
    assert 0.9 < time.monotonic() - start < 8, "two attempts of half a second, and what botocore waits between them"
    start = own_clock()
    with pytest.raises(ArchiveError, match="failed a moment ago"):
        archive.save_transcript("s", said("x"), 1)
    assert own_clock() - start < 0.5, "an attempt waits for half a second and more"
    time.sleep(1.1)
    with pytest.raises(ArchiveError, match="out of reach"):
        archive.save_event("s", {"event": "x"})


def test_the_timeouts_are_short(log_in: Callable[[str, str], None]) -> None:
    config = S3Archive("some-bucket")._client.meta.config
    assert (config.connect_timeout, config.read_timeout) == (2, 5)
    assert config.retries["total_max_attempts"] == 2


def test_an_archive_works_again_once_the_pause_is_over(bucket: Any) -> None:
    archive = open_archive(bucket)
    archive._paused_until = time.monotonic() + 0.2
    with pytest.raises(ArchiveError, match="moment ago"):
        archive.save_transcript("s", said("x"), 1)
    time.sleep(0.3)
    assert archive.save_transcript("s", said("x"), 1) in bucket.contents()


def test_without_boto3_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigError, match=re.escape(install_line("s3"))):
        S3Archive("some-bucket")


def test_a_bad_endpoint_or_profile_is_a_config_error(
    log_in: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="Invalid endpoint"):
        S3Archive("some-bucket", endpoint_url="no url")
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(ConfigError, match="nobody"):
        S3Archive("some-bucket")


def test_importing_the_archive_does_not_import_boto3() -> None:
    code = "import sys, compact.archive; sys.exit(any(name.startswith('boto') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
