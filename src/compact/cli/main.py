"""The `compact` command: puts the commands together, and turns every failure into two plain lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from compact import __version__
from compact.cli import (
    config,
    demo,
    diff,
    doctor,
    export,
    inspect,
    plan,
    proxy,
    prune,
    recall,
    report,
    run,
    screen,
    sessions,
    show,
    undo,
    view,
    why,
    worker,
)
from compact.core.errors import CompactError

OK, UNEXPECTED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130
_DEBUG = "--debug"
# The class of all usage errors; typer does not name it in its own namespace.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="compact",
    help="Keeps an agent's history inside its context window. Try `compact demo` first.",
    add_completion=False,
    # Plain help: the same on a terminal and in a pipe, and nothing to import.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("plan")(plan.plan)
app.command("inspect")(inspect.inspect)
app.command("sessions")(sessions.sessions)
app.command("show")(show.show)
app.command("view")(view.view)
app.command("diff")(diff.diff)
app.command("why")(why.why)
app.command("report")(report.report)
app.command("recall")(recall.recall)
app.command("undo")(undo.undo)
app.command("export")(export.export)
app.command("prune")(prune.prune)
app.add_typer(config.app, name="config")
app.command("proxy")(proxy.proxy)
app.command("worker")(worker.worker)
app.command("doctor")(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        screen.line(f"compact {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[
        bool, typer.Option(_DEBUG, help="Show the whole trace of an error; works after a command, too.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        screen.write(context.get_help() + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = _DEBUG in given
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show an arrow shows a question mark instead of ending the command.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        code = app([word for word in given if word != _DEBUG], prog_name="compact", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except BrokenPipeError:
        _stop_writing()
        return UNEXPECTED
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:
        if debug:
            raise
        return _explain(error)


def _explain(error: Exception) -> int:
    """Two lines and an exit code."""
    match error:
        case CompactError():
            return _complain(error.message, error.hint or "run it again with --debug to see where this comes from")
        case _UsageError():
            # Its own words for a wrong choice begin in the middle of a sentence.
            message = getattr(error, "format_message", error.__str__)().replace("Value error, ", "")
            return _complain(message, f"see {getattr(getattr(error, 'ctx', None), 'command_path', 'compact')} --help")
        case _:
            hint = "this should not happen: run it again with --debug, and please report what it prints"
            _complain(f"{type(error).__name__}: {error}", hint)
            return UNEXPECTED


def _complain(message: str, hint: str) -> int:
    screen.remark(message, label="error", style="bold red")
    screen.remark(hint, label="hint", style="cyan")
    return WRONG_INPUT


def _stop_writing() -> None:
    """Whoever read our output has gone: what is still in the buffer goes nowhere, and nobody hears of it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
