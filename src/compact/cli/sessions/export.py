"""`compact export`: the full log of a session, as the caller sent it."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from compact.cli import screen
from compact.cli.options import ConfigFile, Session, Store
from compact.cli.store import open_store
from compact.cli.transcripts.files import TranscriptError, to_json

if TYPE_CHECKING:
    from compact.core.messages.message import Message
    from compact.redaction import Redactor

FileFormat = Literal["json", "jsonl"]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="PATH", help="Write to a file; gzipped if it ends in .gz.")
]
Format = Annotated[
    FileFormat | None,
    typer.Option("--format", help="json is a list, jsonl has a message per line; by default as PATH ends, or json."),
]
Raw = Annotated[bool, typer.Option("--raw", help="Print secrets and confidential content, too.")]


def export(
    session: Session,
    output: Output = None,
    raw: Raw = False,
    file_format: Format = None,
    store: Store = None,
    config: ConfigFile = None,
) -> None:
    """Print the full log of a session, without secrets.

    Prints every message of the session in order, also those that were compacted or edited since. Secrets are replaced
    by <REDACTED>, and what is confidential or restricted by a line that says so.
    """
    from compact.core.messages.sensitivity import withheld
    from compact.redaction import Redactor

    with open_store(config, store) as opened:
        opened.session(session)
        log = opened.manager.history(session)
        settings = opened.manager.config.redaction
        usual = opened.manager.config.strategies.externalize.default_sensitivity
    redactor = Redactor(settings.enabled and not raw, settings.patterns)
    if not redactor.is_enabled:
        why = "--raw" if raw else "redaction.enabled is false"
        screen.notice(f"secrets are not redacted ({why})", label="warning", style="yellow")
    with screen.spinner(f"reading {screen.quantity(len(log), 'message')}"):
        records = [_record(message if raw else withheld(message, usual), redactor) for message in log]
    chosen = file_format or ("jsonl" if output and ".jsonl" in output.suffixes[-2:] else "json")
    if output is None:
        screen.write(_text(records, chosen, sys.stdout.encoding))
    else:
        _write(output, _text(records, chosen, "utf-8"))
        screen.notice(f"{screen.quantity(len(records), 'message')} written to {output}")


def _record(message: Message, redactor: Redactor) -> dict[str, Any]:
    from compact.archive.json_lines import message_record
    from compact.core.messages.message import Message

    # A caller that works with our own class sent the inner message: ids that we gave are not its own.
    sent = message.original if isinstance(message.original, Message) else message
    return message_record(redactor.message(sent))


def _text(records: Sequence[object], file_format: FileFormat, encoding: str | None) -> str:
    if file_format == "json":
        return to_json(records, encoding=encoding)
    return "".join(screen.json_text(record, encoding=encoding) + "\n" for record in records)


def _write(path: Path, text: str) -> None:
    data = text.encode()
    try:
        # Like the store itself: only its owner may read it.
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            # No time stamp: the same log gives the same file.
            file.write(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    except OSError as error:
        raise TranscriptError(f"cannot write {path}: {error.strerror}", hint="check the path of --output") from None
