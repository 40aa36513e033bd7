"""The tools of `compact mcp`, each a question about one session; the answers are text that a model can read.

The store is opened for each question: the agent writes to it from another process, and may not have begun yet.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from compact import __version__
from compact.cli import screen
from compact.cli.sessions.show import status_as_it_ran, status_lines
from compact.cli.sessions.why import trace_lines
from compact.cli.store import OpenStore, open_store
from compact.core.audit.records import recorded_limits
from compact.core.audit.why import PhraseTrace
from compact.core.errors import CompactError
from compact.core.messages.sensitivity import closed_ids

# Chosen: what a model reads without effort; the command `compact why` has an option for more.
_MAX_SIGHTINGS = 10
_MAX_SESSIONS = 20

INSTRUCTIONS = (
    "Compact removes old parts of a long conversation from the prompt and keeps all of them in a log. These tools read "
    "that log. Use recall if a stub or a summary names something whose text you need."
)

Session = Annotated[
    str, Field(description="The id of a session, from the tool sessions. Leave it out for the newest session.")
]
Query = Annotated[
    str, Field(description="The id of an entry or artifact, such as m42 or art-…, or what you want to know.")
]
Phrase = Annotated[
    str, Field(description="Words as they stand in a message, in this order; upper and lower case are alike.")
]


def build_server(config: Path | None, store: str | None, session: str | None) -> MCPServer:
    """Return a server for a store; with a session, for that one alone."""
    server = MCPServer("compact", instructions=INSTRUCTIONS, version=__version__, log_level="ERROR")
    tools = _SessionTools(config, store, session)
    read_only = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    answering: list[Callable[..., str]] = [tools.recall, tools.why, tools.status, tools.sessions]
    for tool in answering:
        # The docstring of a tool is what the model reads about it.
        server.add_tool(_with_errors(tool), annotations=read_only, structured_output=False)
    return server


def _closed_ids(opened: OpenStore, session_id: str) -> frozenset[str]:
    """Return the entries that an agent may not read once they have left its prompt."""
    usual = opened.manager.config.strategies.externalize.default_sensitivity
    return closed_ids(opened.manager.history(session_id), usual)


def _readable(trace: PhraseTrace, hidden_ids: frozenset[str]) -> PhraseTrace:
    """Return a trace without the messages that an agent may not read: for it, they are not there."""
    seen = tuple(sighting for sighting in trace.sightings if sighting.message_id not in hidden_ids)
    hidden = len(trace.sightings) - len(seen)
    if hidden and not seen and not trace.is_in_prompt:
        return PhraseTrace(phrase=trace.phrase)
    return replace(trace, sightings=seen, sightings_total=trace.sightings_total - hidden)


def _with_errors(tool: Callable[..., str]) -> Callable[..., str]:
    """Return a tool whose known errors reach the model as what happened and what to do."""

    @wraps(tool)
    def answered(*args: Any, **kwargs: Any) -> str:
        try:
            return tool(*args, **kwargs)
        except CompactError as error:
            raise ToolError(f"{error.message}. {error.hint}" if error.hint else error.message) from error

    return answered


class _SessionTools:
    """The tools, for one store; with `only`, for one session of it."""

    def __init__(self, config: Path | None, store: str | None, only: str | None) -> None:
        self._config, self._store, self._only = config, store, only

    def recall(self, query: Query, session: Session = "") -> str:
        """Read earlier parts of this conversation that were cleared, summarised or moved out of your prompt.

        Give an id from a stub (such as m42 or art-…) for exactly that entry, or a question in plain words: names, paths
        and error codes are found exactly, other words in all their forms. The best match is first.
        """
        if not query.strip():
            raise CompactError("the query is empty", hint="give an id such as m42, or what you want to know")
        with self._opened() as opened:
            return str(opened.manager.recall(self._session(opened, session), query))

    def why(self, phrase: Phrase, session: Session = "") -> str:
        """Find out whether your prompt still contains some words of this conversation.

        The answer says how often, and which of your calls went out without them. For each message that has the words it
        says what was done with it, since when, and why.
        """
        if not phrase.strip():
            raise CompactError("the phrase is empty", hint="give some words of the message you look for")
        with self._opened() as opened:
            session_id = self._session(opened, session)
            trace = _readable(opened.manager.why(session_id, phrase), _closed_ids(opened, session_id))
        if not trace.is_known:
            return f"not found: no message and no prompt of session {session_id!r} contains {phrase!r}"
        left_out = trace.sightings_total - _MAX_SIGHTINGS
        more = ["", f"and {screen.quantity(left_out, 'more message')}"] if left_out > 0 else []
        return "\n".join([*trace_lines(trace, _MAX_SIGHTINGS), *more])

    def status(self, session: Session = "") -> str:
        """Show how full the context window is.

        The answer has the tokens of each part of the prompt, the limits at which it is compacted, and how many messages
        of the log are in it, cleared, summarised or moved out.
        """
        with self._opened() as opened:
            session_id = self._session(opened, session)
            status, calls = opened.manager.status(session_id), opened.manager.model_calls(session_id)
            limits = recorded_limits(opened.session(session_id), calls)
        return "\n".join(status_lines(status_as_it_ran(status, limits)))

    def sessions(self) -> str:
        """List the sessions that can be read, the newest first, with their sizes."""
        with self._opened() as opened:
            found = [info for info in opened.manager.sessions() if self._only in (None, info.session_id)]
        lines = [
            f"{info.session_id}: {screen.quantity(info.messages, 'message')}, "
            f"{screen.quantity(info.model_calls, 'model call')}, plan version {info.plan_version}, "
            f"last prompt {screen.quantity(info.last_tokens, 'token')}, last used {screen.local_time(info.updated_at)}"
            for info in found[:_MAX_SESSIONS]
        ]
        if len(found) > _MAX_SESSIONS:
            lines.append(f"and {screen.quantity(len(found) - _MAX_SESSIONS, 'older session')}")
        return "\n".join(lines) or "no sessions yet"

    @contextmanager
    def _opened(self) -> Generator[OpenStore]:
        with open_store(self._config, self._store, read_only=True) as opened:
            yield opened

    def _session(self, opened: OpenStore, named: str) -> str:
        """Return the session that is asked about."""
        wanted = named or self._only
        if self._only and wanted != self._only:
            hint = "leave the argument out"
            raise CompactError(f"this server reads the session {self._only!r} alone, not {named!r}", hint=hint)
        if wanted:
            return opened.session(wanted).session_id
        newest = next(iter(opened.manager.sessions()), None)
        if newest is None:
            raise CompactError("the store has no sessions yet", hint="call the tool again after the first model call")
        return newest.session_id
