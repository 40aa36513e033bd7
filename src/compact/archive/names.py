"""The names in an archive: one folder per session, the same on disk and in S3.

    {session}/transcript-pre-compact-001.jsonl   the history before the first compaction, a message per line
    {session}/transcript-pre-compact-002.jsonl   what came in between the first and the second, and so on
    {session}/summary-001.json                   the summary that came of it
    {session}/events.jsonl                       every event of the session (in S3: {session}/events/*.jsonl)

With a tenant, all of it is under `tenants/{tenant}/`.

What is archived is never overwritten. If a step is there already, equal content is left as it is, and other content
gets a number: `summary-001-2.json`, `summary-001-3.json`, …
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Iterator
from hashlib import sha256
from secrets import token_hex

EVENTS_NAME = "events.jsonl"

_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
# Chosen: 24 letters of base32, which nobody can find a second id for.
_HASH_BYTES = 15
# Upper case counts too: a file system that ignores case would take it for the same folder.
_MAPPED = re.compile(r".*--[a-z2-7]{24}", re.IGNORECASE)
_RESERVED_ON_WINDOWS = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
# Chosen: enough of an id to recognise it by, and more copies of a step than a person would look through.
_READABLE_CHARS = 40
# What we wrote and may remove again; anything else in the place is somebody else's.
_OURS = re.compile(
    r"[^/]+/(transcript-pre-compact-\d{3,}(-[0-9a-f]+)?\.jsonl|summary-\d{3,}(-[0-9a-f]+)?\.json|events\.jsonl"
    r"|events/\d{8}T[\d.]+Z-[0-9a-f]{32}\.jsonl)"
)
_MAX_NUMBER = 9


def transcript_name(step: int) -> str:
    """Return the name of the history before a compaction."""
    return f"transcript-pre-compact-{step:03d}.jsonl"


def summary_name(step: int) -> str:
    """Return the name of the summary that a compaction made."""
    return f"summary-{step:03d}.json"


def is_archived(path: str) -> bool:
    """Return True for the path of a file of ours, from the root of the archive on."""
    return _OURS.fullmatch(path) is not None


def folder_name(session_id: str) -> str:
    """Return a folder name that is safe everywhere and belongs to this session id alone.

    Ids that are safe as names stand for themselves. Any other becomes `{readable}--{hash}`, and so does an id that
    looks like one of those, so that nobody can choose an id that lands in another session's folder.
    """
    if _is_safe(session_id):
        return session_id
    readable = re.sub(r"[^A-Za-z0-9_]+", "-", session_id)[:_READABLE_CHARS].strip("-") or "session"
    digest = sha256(session_id.encode("utf-8", "surrogatepass")).digest()
    return f"{readable}--{b32encode(digest[:_HASH_BYTES]).decode('ascii').lower()}"


def tenant_place(tenant_id: str) -> str:
    """Return where under the root the sessions of a tenant are: apart, as two tenants may use one session id.

    What a former version wrote for a tenant, right under the root, stays there.
    """
    return f"tenants/{folder_name(tenant_id)}" if tenant_id else ""


def _is_safe(session_id: str) -> bool:
    if not _SAFE.fullmatch(session_id) or session_id.endswith("."):
        return False
    return not (_MAPPED.fullmatch(session_id) or _RESERVED_ON_WINDOWS.fullmatch(session_id))


def free_names(name: str) -> Iterator[str]:
    """Return the names to try in turn: the name itself, numbered ones, and at last random ones that no one else has.

    A step that was archived very often (a counter that starts anew with each process) must not take longer each time.
    """
    yield name
    stem, dot, ending = name.rpartition(".")
    for number in range(2, _MAX_NUMBER + 1):
        yield f"{stem}-{number}{dot}{ending}"
    while True:
        yield f"{stem}-{token_hex(8)}{dot}{ending}"
