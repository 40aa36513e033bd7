"""The arguments and options that several commands share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from compact.cli import screen
from compact.core.errors import CompactError

File = Annotated[
    str,
    typer.Argument(metavar="FILE", help="A transcript in JSON or JSONL, packed with gzip or not; - is standard input."),
]
Index = Annotated[
    int, typer.Option("--index", metavar="N", min=0, help="Which transcript, if the file holds several; from 0.")
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Decides window and token counter; gpt-4o unless set.")
]
Window = Annotated[
    int | None, typer.Option("--window", metavar="TOKENS", help="The context window, if not the model's own.")
]
TargetTokens = Annotated[
    int | None, typer.Option("--target-tokens", metavar="N", min=1, help="The most that the result may take.")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="PATH", help="Settings in YAML or JSON; ./compact.yaml is used if it is there."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print data instead of text.")]
Session = Annotated[str, typer.Argument(metavar="SESSION", help="The id of a session; `compact sessions` lists them.")]
Store = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="URL", help="sqlite:///PATH or postgresql://USER@HOST/NAME, if not the configured store."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; needed where nobody can answer.")]


def confirmed(question: str, yes: bool) -> bool:
    """Ask whoever sits at the terminal; where nobody does, `--yes` must have been given."""
    if yes:
        return True
    if not (screen.is_live(sys.stdin) and screen.is_live(sys.stderr)):
        raise CompactError("nobody is here to confirm this: not a terminal", hint="add --yes to do it without asking")
    return typer.confirm(screen.printable(question), err=True)
