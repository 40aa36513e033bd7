"""The archive in S3, or in a store that speaks its protocol: encrypted if asked, and never overwritten.

S3 cannot append, and reading, changing and writing back loses lines when two processes do it at once. So events are
objects of their own, `{session}/events/{time}-{random}.jsonl`, with those of a moment together; the names sort by time.

Credentials come from boto3's own chain (environment, profile, role), never from arguments. A store that does not
answer is given up on within seconds and then not tried for a while, so that it cannot delay every turn.
"""

# boto3 has no types of its own.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from time import monotonic, time
from typing import Any
from uuid import uuid4

from compact.archive.json_lines import summary_document, to_line, transcript_lines
from compact.archive.names import folder_name, free_names, is_archived, summary_name, transcript_name
from compact.archive.retention import PRUNE_SECONDS, ArchivedFile, PruneTimer, Retention
from compact.core.audit.archive import ArchiveError
from compact.core.errors import ConfigError
from compact.core.messages.message import Message
from compact.extras import install_line

# Chosen: a store that works answers within a second; a turn must not wait longer than this.
_CONNECT_SECONDS, _READ_SECONDS, _ATTEMPTS = 2, 5, 2
_TAKEN = ("PreconditionFailed", "ConditionalRequestConflict", "412")
_DIGEST = "compact-sha256"
_LINES, _DOCUMENT = "application/x-ndjson", "application/json"

_CREDENTIALS = "check the credentials that boto3 finds: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, profile, or role"
_RIGHTS = "allow s3:PutObject on this key, and kms:GenerateDataKey on the KMS key if there is one"
_PRUNE_RIGHTS = (
    "allow s3:ListBucket and s3:DeleteObject, or leave storage.keep_days and storage.max_mb to a lifecycle rule"
)
_REGION = "set the region of the bucket"
_ADVICE = {
    "NoSuchBucket": ("the bucket does not exist", "create it, or correct the bucket's name"),
    "AccessDenied": ("access denied", _RIGHTS),
    "InvalidAccessKeyId": ("the access key is unknown", _CREDENTIALS),
    "SignatureDoesNotMatch": ("the secret key is wrong", _CREDENTIALS),
    "ExpiredToken": ("the credentials have expired", _CREDENTIALS),
    "PermanentRedirect": ("the bucket is in another region", _REGION),
    "AuthorizationHeaderMalformed": ("the request was signed for another region", _REGION),
    "NotImplemented": ("the store lacks a feature", "it must support If-None-Match, and SSE-KMS if a key is set"),
}


class S3Archive:
    """Writes a folder per session under `s3://{bucket}/{prefix}/`, with SSE-KMS if a key is given."""

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        *,
        kms_key_id: str | None = None,
        region: str | None = None,
        endpoint_url: str | None = None,
        pause_seconds: float = 30.0,
        retention: Retention | None = None,
        prune_seconds: float = PRUNE_SECONDS,
        clock: Callable[[], float] = time,
    ) -> None:
        self.bucket = bucket
        self.prefix = prefix.strip("/")
        self.pause_seconds = pause_seconds
        self._paused_until = 0.0
        self._encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": kms_key_id} if kms_key_id else {}
        self.retention = retention or Retention()
        self._timer, self._clock = PruneTimer(prune_seconds), clock
        self._client = _connect(region, endpoint_url)

    def save_transcript(self, session_id: str, transcript: Sequence[Message], step: int) -> str:
        """Write a part of the history, a message per line, and return the key."""
        return self._save(session_id, transcript_name(step), transcript_lines(transcript), _LINES)

    def save_summary(self, session_id: str, summary: Message, step: int) -> str:
        """Write the summary and return the key."""
        return self._save(session_id, summary_name(step), summary_document(summary), _DOCUMENT)

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        """Write the event as an object of its own."""
        self.save_events(session_id, [event])

    def save_events(self, session_id: str, events: Sequence[Mapping[str, Any]]) -> None:
        """Write events that happened one after the other as one object."""
        name = f"events/{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}-{uuid4().hex}.jsonl"
        self._put(self._key(session_id, name), b"".join(map(to_line, events)), _LINES)

    def prune(self) -> int:
        """Remove objects that are too old or too many, once in a while."""
        if not self.retention.is_limited or not self._timer.is_due():
            return 0
        try:
            surplus = self.retention.surplus(self._files(), now=self._clock())
            for file in surplus:
                self._client.delete_object(Bucket=self.bucket, Key=file.place)
        except Exception as error:  # boto3 raises many kinds; all of them are explained and raised again
            reason, hint = _explain(error)
            hint = _PRUNE_RIGHTS if _code(error) == "AccessDenied" else hint
            raise ArchiveError(reason, place=f"s3://{self.bucket}/{self.prefix}", hint=hint) from error
        return len(surplus)

    def _files(self) -> Iterator[ArchivedFile]:
        """Yield the objects that are ours."""
        root = f"{self.prefix}/" if self.prefix else ""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=root)
        for entry in (entry for page in pages for entry in page.get("Contents", ())):
            if is_archived(entry["Key"].removeprefix(root)):
                yield ArchivedFile(entry["Key"], entry["Size"], entry["LastModified"].timestamp())

    def _key(self, session_id: str, name: str) -> str:
        return "/".join(part for part in (self.prefix, folder_name(session_id), name) if part)

    def _save(self, session_id: str, name: str, data: bytes, content_type: str) -> str:
        keys = (self._key(session_id, free) for free in free_names(name))
        return next(key for key in keys if self._put(key, data, content_type) or self._holds(key, data))

    def _put(self, key: str, data: bytes, content_type: str) -> bool:
        """Write an object; return False if the key is taken."""
        place = f"s3://{self.bucket}/{key}"
        if (left := self._paused_until - monotonic()) > 0:
            reason = f"the store failed a moment ago and is not tried again for {left:.0f} s"
            raise ArchiveError(reason, place=place, hint="see the earlier error for the cause")
        try:
            self._client.put_object(
                Bucket=self.bucket,
                Key=key,
                Body=data,
                ContentType=content_type,
                IfNoneMatch="*",
                Metadata={_DIGEST: sha256(data).hexdigest()},
                **self._encryption,
            )
        except Exception as error:  # boto3 raises many kinds; all of them are explained and raised again
            if _code(error) in _TAKEN:
                return False
            if _is_down(error):
                self._paused_until = monotonic() + self.pause_seconds
            reason, hint = _explain(error)
            raise ArchiveError(reason, place=place, hint=hint) from error
        return True

    def _holds(self, key: str, data: bytes) -> bool:
        """Return True if the object is known to have this content: a repeated request, or an equal transcript."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            found = self._client.head_object(Bucket=self.bucket, Key=key)
        except (BotoCoreError, ClientError):
            # Not worth a report: credentials that may only write are a good choice for an archive.
            return False
        return found.get("Metadata", {}).get(_DIGEST) == sha256(data).hexdigest()


def _connect(region: str | None, endpoint_url: str | None) -> Any:
    try:
        import boto3
        from botocore.config import Config
    except ImportError as error:
        message = "the S3 archive needs boto3, which is not installed"
        raise ConfigError(message, hint=install_line("s3")) from error
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
        # A store of one's own rarely has a host name per bucket.
        s3={"addressing_style": "path"} if endpoint_url else None,
    )
    try:
        # A session of our own: boto3's default one is not safe to build clients from in several threads.
        session: Any = boto3.Session()
        return session.client("s3", region_name=region, endpoint_url=endpoint_url, config=config)
    except Exception as error:  # boto3 raises many kinds; all of them are explained and raised again
        message = f"cannot set up the S3 archive: {error}"
        raise ConfigError(message, hint="check region, endpoint_url and AWS_PROFILE") from error


def _answer(error: Exception) -> dict[str, Any]:
    return getattr(error, "response", None) or {}  # timeouts have the attribute too, and nothing in it


def _code(error: Exception) -> str:
    return str(_answer(error).get("Error", {}).get("Code", ""))


def _is_down(error: Exception) -> bool:
    from botocore.exceptions import ConnectionError, HTTPClientError

    status = _answer(error).get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status in (500, 502, 503, 504) or isinstance(error, ConnectionError | HTTPClientError)


def _explain(error: Exception) -> tuple[str, str]:
    """Return what went wrong and what to do, in our words where we know it."""
    from botocore.exceptions import CredentialRetrievalError, NoCredentialsError, PartialCredentialsError

    code = _code(error)
    if code in _ADVICE:
        return _ADVICE[code]
    if code.startswith("KMS"):
        return f"the KMS key was refused ({code})", "check kms_key_id, and that the key is enabled and in this region"
    if isinstance(error, NoCredentialsError | PartialCredentialsError | CredentialRetrievalError):
        return "no usable credentials were found", _CREDENTIALS
    if _is_down(error):
        return f"the store is down or out of reach ({error})", "check the endpoint and the network"
    return str(error), ""
