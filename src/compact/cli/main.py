"""The `compact` command: registers every command and turns errors into two lines, `error:` and `hint:`."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from compact import __version__
from compact.cli import config, doctor, screen
from compact.cli.ascii_text import ERROR_HANDLER
from compact.cli.audit import audit
from compact.cli.command_help import PlainCommand
from compact.cli.demo import demo
from compact.cli.servers import mcp, proxy, view, worker
from compact.cli.sessions import diff, export, prune, recall, report, sessions, show, undo, why
from compact.cli.simulation import simulate
from compact.cli.transcripts import inspect, logs, plan, run
from compact.core.errors import CompactError

OK, UNEXPECTED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130
_DEBUG = "--debug"
# What the manager's methods, the MCP tools and other programs call a thing, and what it is here.
_CALLED_ELSEWHERE = {
    "compact": "run",
    "history": "export",
    "list": "sessions",
    "plans": "show",
    "restore": "undo",
    "search": "recall",
    "status": "show",
}
# The class of all usage errors; typer does not name it in its own namespace.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

app = typer.Typer(
    name="compact",
    help="Keep an agent's prompts inside its context window. Try `compact demo` first.",
    add_completion=False,
    # Plain help: the same on a terminal and in a pipe, and nothing to import.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_command = partial(app.command, cls=PlainCommand)
_command("demo")(demo.demo)
_command("run")(run.run)
_command("plan")(plan.plan)
_command("inspect")(inspect.inspect)
_command("import")(logs.import_logs)
_command("audit")(audit.audit)
_command("simulate")(simulate.simulate)
_command("sessions")(sessions.sessions)
_command("show")(show.show)
_command("view")(view.view)
_command("diff")(diff.diff)
_command("why")(why.why)
_command("report")(report.report)
_command("recall")(recall.recall)
_command("undo")(undo.undo)
_command("export")(export.export)
_command("prune")(prune.prune)
app.add_typer(config.app, name="config")
_command("proxy")(proxy.proxy)
_command("mcp")(mcp.mcp)
_command("worker")(worker.worker)
_command("doctor")(doctor.doctor)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        screen.line(f"compact {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def show_help(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option(_DEBUG, help="Print the full traceback of an error; may also follow a command.")
    ] = False,
) -> None:
    """Print the help if no command is given."""
    if context.invoked_subcommand is None:
        screen.write(context.get_help() + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = _DEBUG in words
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show an arrow shows ASCII for it instead of ending the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=ERROR_HANDLER)
    try:
        code = app([word for word in words if word != _DEBUG], prog_name="compact", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except BrokenPipeError:
        _discard_output()
        return UNEXPECTED
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:  # the boundary to the person at the terminal: every error is printed as two lines
        if debug:
            raise
        return _print_error(error)


def _print_error(error: Exception) -> int:
    """Print an error with a hint and return the exit code for it."""
    match error:
        case CompactError():
            _print_error_lines(error.message, error.hint or "run it again with --debug to see where this comes from")
            return WRONG_INPUT
        case _UsageError():
            # Its own words for a wrong choice begin in the middle of a sentence.
            message = getattr(error, "format_message", error.__str__)().replace("Value error, ", "").removesuffix(".")
            command = getattr(getattr(error, "ctx", None), "command_path", "compact")
            unknown = re.match(r"No such command '(\w+)'", message)
            if unknown and unknown[1] in _CALLED_ELSEWHERE:
                _print_error_lines(unknown[0], f"use compact {_CALLED_ELSEWHERE[unknown[1]]}")
            else:
                _print_error_lines(message, f"see {command} --help")
            return WRONG_INPUT
        case _:
            hint = "this is a bug in compact: run it again with --debug, and please report what it prints"
            _print_error_lines(f"{type(error).__name__}: {error}", hint)
            return UNEXPECTED


def _print_error_lines(message: str, hint: str) -> None:
    screen.notice(message, label="error", style="bold red")
    screen.notice(hint, label="hint", style="cyan")


def _discard_output() -> None:
    """Send what is still buffered nowhere: the reader of our output has closed the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
