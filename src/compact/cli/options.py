"""Arguments and options that several commands share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from compact.cli import screen
from compact.core.errors import CompactError

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A transcript in JSON or JSONL, plain or gzipped, or a log of an agent, or a folder of them; - reads "
        "standard input.",
    ),
]
Index = Annotated[
    int, typer.Option("--index", metavar="N", min=0, help="Which transcript, if the file has several; the first is 0.")
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="Sets the window size and the token counter; gpt-4o unless set."),
]
RecordedModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Sets window, token counter and prices; by default the recorded model, or gpt-4o if none is recorded.",
    ),
]
Window = Annotated[
    int | None,
    typer.Option(
        "--window",
        metavar="TOKENS",
        help="The context window, if not the model's own. Above 256,000, a prompt is compacted at 200,000.",
    ),
]
TargetTokens = Annotated[
    int | None,
    typer.Option(
        "--target-tokens", metavar="N", min=1, help="The most tokens that the result may have; implies --now."
    ),
]
Now = Annotated[
    bool,
    typer.Option(
        "--now", help="Compact now, as manual_compact does; by default only at the trigger, as preflight does."
    ),
]
Focus = Annotated[
    str | None,
    typer.Option("--focus", metavar="TEXT", help="What to keep first, for example a topic or a file; implies --now."),
]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=0, help="The most rows to list.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="PATH", help="Settings in YAML or JSON; by default ./compact.yaml, if it exists."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Session = Annotated[str, typer.Argument(metavar="SESSION", help="The id of a session; `compact sessions` lists them.")]
Store = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="URL", help="sqlite:///PATH or postgresql://USER@HOST/NAME, if not the configured store."
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask for confirmation; needed where there is no terminal.")
]


def confirm(question: str, yes: bool) -> bool:
    """Ask at the terminal and return the answer; without a terminal, `--yes` must have been given."""
    if yes:
        return True
    if not (screen.is_terminal(sys.stdin) and screen.is_terminal(sys.stderr)):
        raise CompactError("cannot ask for confirmation: this is not a terminal", hint="add --yes to skip the question")
    return typer.confirm(screen.printable(question), err=True)
