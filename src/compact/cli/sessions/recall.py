"""`compact recall`: finds what left the prompt, in the log."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compact.cli import screen
from compact.cli.options import AsJson, ConfigFile, Session, Store
from compact.cli.store import open_store

if TYPE_CHECKING:
    from compact.recall.search import Recalled

Query = Annotated[str, typer.Argument(metavar="QUERY", help="The id of a message or an artifact, or a question.")]
MaxTokens = Annotated[int, typer.Option("--max-tokens", metavar="N", min=1, help="The most tokens to return.")]


def recall(
    session: Session,
    query: Query,
    max_tokens: MaxTokens = 2000,
    store: Store = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Find what left the prompt, and print it from the log.

    Prints what the agent gets from its recall tool, secrets included. The exit code is 1 if nothing is found.
    """
    with open_store(config, store) as opened:
        opened.session(session)
        result = opened.manager.recall(session, query, max_tokens=max_tokens)
    if as_json:
        screen.write_json({"query": query, "found": [_as_data(entry) for entry in result.found]})
    elif not result.found:
        screen.line(str(result))
    else:
        for index, entry in enumerate(result.found):
            _show(entry, is_first=index == 0)
    if not result.found:
        raise typer.Exit(1)


def _show(entry: Recalled, *, is_first: bool, relation: str = "") -> None:
    if not is_first:
        screen.line()
    cut = "" if entry.is_whole else ", cut to fit --max-tokens"
    screen.line(f"{entry.message_id}, {entry.role}, entry {entry.seq}{relation}{cut}", style="bold")
    for row in entry.content.splitlines():
        screen.line(row)
    for one in entry.attachments:
        screen.line(f"attachment {one.artifact_id}: {one.attachment}")
    for neighbour in entry.neighbours:
        _show(neighbour, is_first=False, relation=f", with {entry.message_id}")


def _as_data(entry: Recalled) -> dict[str, Any]:
    """Return an entry as data; of its attachments what they are, not their bytes."""
    bare = replace(entry, neighbours=(), attachments=())
    attachments = [{"artifact_id": one.artifact_id, **asdict(one.attachment)} for one in entry.attachments]
    neighbours = [_as_data(neighbour) for neighbour in entry.neighbours]
    return {**asdict(bare), "neighbours": neighbours, "attachments": attachments}
