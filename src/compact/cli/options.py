"""The arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
