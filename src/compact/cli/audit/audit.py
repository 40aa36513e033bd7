"""`compact audit`: what did an agent's own compaction forget?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Limit, Model
from compact.cli.settings import load_config
from compact.cli.transcripts.agent_logs import show_unknown
from compact.cli.transcripts.files import TranscriptError, read_transcripts
from compact.transcripts.own_forms import as_agent_log

if TYPE_CHECKING:
    from compact.cli.audit.findings import LogAudit
    from compact.cli.transcripts.requests import FileTranscript
    from compact.transcripts import AgentLog

Log = Annotated[
    str,
    typer.Argument(metavar="LOG", help="A log of an agent, or a folder of them; - reads standard input."),
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="PATH", help="Write the report as one HTML page, to share.")
]
Raw = Annotated[bool, typer.Option("--raw", help="Show secrets, too.")]


def audit(
    log: Log,
    html: Html = None,
    limit: Limit = 10,
    model: Model = None,
    raw: Raw = False,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what an agent's own compactions forgot.

    For each compaction in the log: which constraints, decisions, paths, ids and numbers its summary dropped, which of
    them were used later, what was read or said again, and what Compact keeps in as many tokens. No model is called and
    nothing is written but --html. A sentence counts as kept if it is there in other words, too.
    """
    from compact.redaction import Redactor

    settings = load_config(config, model=model)
    logs = [_log_of(one, log) for one in read_transcripts(log)]
    redactor = Redactor(settings.redaction.enabled and not raw, settings.redaction.patterns)
    show_unknown(logs)
    audits: list[LogAudit] = []
    for one in (one for one in logs if one.compactions):
        with screen.spinner(f"auditing {screen.quantity(len(one.compactions), 'compaction')} of {one.source}"):
            from compact.cli.audit.findings import audit_log

            audits.append(audit_log(one, settings, redact=redactor.text))
    _show_unreadable(audits)
    found = [one for one in audits if one.compactions]
    if html is not None:
        _write_page(html, found)
    if as_json:
        screen.write_json([one.to_dict() for one in found])
    elif found:
        from compact.cli.audit.text import show

        show(found, limit)
    else:
        screen.line(f"nothing to audit: {_nothing(logs)}")


def _log_of(transcript: FileTranscript, source: str) -> AgentLog:
    return transcript.log or as_agent_log(transcript.messages, source=source)


def _nothing(logs: Sequence[AgentLog]) -> str:
    return f"{screen.quantity(len(logs), 'session')}, none with a compaction of its own that can be read"


def _show_unreadable(audits: Sequence[LogAudit]) -> None:
    """Say which compactions cannot be judged: their summaries are encrypted, or nothing was before them."""
    for one in audits:
        if one.unreadable:
            count = screen.quantity(one.unreadable, "compaction")
            text = f"{one.source}: {count} cannot be judged: no text of a summary in the log, or nothing before it"
            screen.notice(text, label="note", style="yellow")


def _write_page(path: Path, audits: Sequence[LogAudit]) -> None:
    from compact.cli.audit.page import render_page

    try:
        path.write_text(render_page(audits), encoding="utf-8")
    except OSError as error:
        raise TranscriptError(f"cannot write {path}: {error.strerror}", hint="check the path of --html") from None
    screen.notice(f"the page is {path}; read it before you share it: it quotes the session")
