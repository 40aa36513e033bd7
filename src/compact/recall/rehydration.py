"""Rehydrate artifacts when the agent or the user names them: within limits, by permission, never twice in a row.

Nothing here changes the log: what is rehydrated is shown at the end of the prompt for a turn, as data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from compact.core.audit.artifacts import ArtifactStore, SecurityContext
from compact.core.errors import ConfigError
from compact.core.facts.tool_calls import argument_texts
from compact.core.messages.message import Message
from compact.core.messages.sensitivity import SENSITIVITIES
from compact.core.plan.turn import (
    REHYDRATED_PREFIX,
    MovedAttachment,
    Rehydration,
    RehydrationBlocked,
    RehydrationResult,
    RehydrationScope,
    RehydrationState,
    TurnContext,
    render_rehydrated,
)
from compact.core.plurals import quantity
from compact.core.search.recall_answer import attached_ids
from compact.core.summary.summary import rounded

TRUNCATED = "[TRUNCATED]"
_REFERENCE = re.compile(r"\bart-[0-9a-f]{16}\b")
_STUB = re.compile(rf"\[moved to artifact ({_REFERENCE.pattern})[^\]\n]*\]?")
# The ids of messages that we put into a prompt begin with these: artifacts named in them are not asked for.
_OUR_PREFIXES = (REHYDRATED_PREFIX, "compact-summary-")
# Chosen: a smaller part of an artifact is not worth the label around it.
_MIN_USEFUL_TOKENS = 200
# Chosen: a page of pasted ids must not become a page of questions to the store.
_MAX_LOOKUPS = 10
# Chosen: what an artifact is stands at its beginning, how it ended at its end.
_HEAD_SHARE = 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RehydrationConfig:
    """How much may be rehydrated in a turn, how soon again, and how sensitive it may be.

    What was rehydrated in turn 5 is rehydrated again in turn 5 + `cooldown_turns` at the earliest. Artifacts named in
    calls of `ignored_tools` are not rehydrated: these tools, like our own, return the content themselves. A compaction
    leaves `reserve_tokens` of the window free for what is rehydrated.
    """

    max_artifacts_per_turn: int = 3
    max_tokens_per_artifact: int = 4000
    max_total_tokens: int = 8000
    cooldown_turns: int = 2
    allowed_sensitivities: frozenset[str] = frozenset({"public", "internal"})
    ignored_tools: frozenset[str] = frozenset({"recall"})
    reserve_tokens: int = 0

    def __post_init__(self) -> None:
        for spec in fields(self):
            limit = getattr(self, spec.name)
            if isinstance(limit, int) and limit < 0:
                raise ConfigError(f"{spec.name} is negative", field=spec.name, hint="use 0 or more")
        unknown = ", ".join(sorted(set(self.allowed_sensitivities).difference(SENSITIVITIES)))
        if unknown:
            hint = f"use some of {', '.join(SENSITIVITIES)}"
            raise ConfigError(f"unknown sensitivities: {unknown}", field="allowed_sensitivities", hint=hint)


@dataclass(frozen=True, slots=True)
class RehydrationInterceptor:
    """Finds artifact ids in the newest messages, and rehydrates what they name; a failing store is a refusal."""

    store: ArtifactStore
    count_text: Callable[[str], int]
    config: RehydrationConfig = field(default_factory=RehydrationConfig)
    security: SecurityContext = field(default_factory=SecurityContext)
    # Counts what is no text; without it no attachment is shown.
    count_message: Callable[[Message], int] | None = None

    def intercept(
        self,
        messages: Sequence[Message],
        turn: TurnContext,
        state: RehydrationState,
        *,
        scope: RehydrationScope,
        budget_tokens: int | None = None,
    ) -> Rehydration:
        """Rehydrate what the newest messages name within a scope; `budget_tokens` is the room that the prompt has left.

        What was rehydrated earlier in this turn is neither shown again nor refused: it is still in the prompt.
        Attachments cannot be cut: the limits for text do not apply to them, only the room that there is.
        """
        state = state.in_turn(turn.turn_number, cooldown_turns=self.config.cooldown_turns)
        # The state has it even if the turn began anew, in another process for instance.
        earlier = (i for i, last in state.last_turns.items() if last == turn.turn_number)
        turn = replace(turn, rehydrated_ids=tuple(dict.fromkeys((*turn.rehydrated_ids, *earlier))))
        room = self.config.max_total_tokens if budget_tokens is None else budget_tokens
        results: list[RehydrationResult] = []
        blocked: list[RehydrationBlocked] = []
        lookups = 0
        for artifact_id in self._wanted(messages, turn, scope.attachments):
            attachment = scope.attachments.get(artifact_id)
            left = room if attachment else min(self.config.max_total_tokens - state.spent_tokens, room)
            refusal = self._refusal(artifact_id, turn, state, left, lookups, is_attachment=attachment is not None)
            lookups += not refusal
            outcome = refusal or self._fetch(artifact_id, left, scope)
            if isinstance(outcome, str):
                blocked.append(RehydrationBlocked(artifact_id, outcome, is_attachment=attachment is not None))
                continue
            if outcome.tokens > left:  # an attachment: it cannot be cut
                reason = f"it takes {outcome.tokens:,} tokens, and {left:,} are left"
                blocked.append(RehydrationBlocked(artifact_id, reason, is_attachment=True, tokens=outcome.tokens))
                continue
            results.append(outcome)
            room -= outcome.tokens
            spent = 0 if attachment else outcome.tokens
            turn, state = turn.with_rehydrated(artifact_id), state.with_rehydrated(artifact_id, spent)
        return Rehydration(tuple(results), tuple(blocked), turn, state)

    def rehydrate(
        self,
        messages: Sequence[Message],
        turn: TurnContext,
        state: RehydrationState,
        budget_tokens: int,
        scope: RehydrationScope,
    ) -> Rehydration:
        """Rehydrate for one call of a session: as `intercept`, with each refusal once a turn."""
        room = max(0, budget_tokens)
        found = self.intercept(messages, turn, state, scope=scope, budget_tokens=room)
        known = found.state.blocked_ids
        new = tuple(blocked for blocked in found.blocked if blocked.artifact_id not in known)
        state = replace(found.state, blocked_ids=known | {blocked.artifact_id for blocked in new})
        return replace(found, blocked=new, state=state)

    def _wanted(
        self, messages: Sequence[Message], turn: TurnContext, attachments: Mapping[str, MovedAttachment]
    ) -> list[str]:
        shown = {message.id for message in messages if message.id.startswith(REHYDRATED_PREFIX)}
        named = (
            *referenced_ids(messages, ignored_tools=self.config.ignored_tools),
            *(asked_attachments(messages, attachments) if attachments else ()),
        )
        named = tuple(dict.fromkeys(named))
        return [i for i in named if i not in turn.rehydrated_ids and REHYDRATED_PREFIX + i not in shown]

    def _refusal(
        self,
        artifact_id: str,
        turn: TurnContext,
        state: RehydrationState,
        left: int,
        lookups: int,
        *,
        is_attachment: bool,
    ) -> str:
        """Return why the store is not even asked for an artifact; an empty text if it is.

        An attachment may be asked about turn after turn, and room can be made for it.
        """
        count, last = len(set(turn.rehydrated_ids)), None if is_attachment else state.last_turns.get(artifact_id)
        if last is not None and turn.turn_number < last + self.config.cooldown_turns:
            return f"rehydrated in turn {last}, not again before turn {last + self.config.cooldown_turns}"
        if count >= self.config.max_artifacts_per_turn:
            return f"{quantity(count, 'artifact was', 'artifacts were')} rehydrated this turn already"
        if left <= 0 and not is_attachment:
            return "no tokens are left for it"
        return "too many artifacts were named at once" if lookups >= _MAX_LOOKUPS else ""

    def _fetch(self, artifact_id: str, left_tokens: int, scope: RehydrationScope) -> RehydrationResult | str:
        """Return the content, cut to what is allowed, or the reason why not."""
        attachment, security = scope.attachments.get(artifact_id), self.security.within(scope.session_id)
        if attachment and not attachment.is_stored:  # it was moved in this very call, and is stored behind it
            is_open = attachment.sensitivity in self.config.allowed_sensitivities
            return self._whole(artifact_id, attachment) if is_open else "not available"
        try:
            artifact = self.store.retrieve_artifact(artifact_id, security)
            # Stores check this themselves; one that forgets to must not cost a tenant or a session its secrets.
            is_readable = artifact is not None and security.may_read(artifact.metadata)
        except Exception as error:  # noqa: BLE001 - the turn goes on; the text of the error may hold credentials
            return f"the store failed: {type(error).__name__}"
        if artifact is None or not is_readable:
            return "not available"
        if artifact.metadata.sensitivity not in self.config.allowed_sensitivities:
            return f"{artifact.metadata.sensitivity} content is not rehydrated by itself"
        if attachment:
            return self._whole(artifact_id, attachment)
        if scope.text_of(artifact.metadata.message_id) != artifact.content:
            return "not available"
        limit = min(left_tokens, self.config.max_tokens_per_artifact)
        return self._fit(artifact_id, artifact.content, limit) or f"only {limit:,} tokens are left for it"

    def _whole(self, artifact_id: str, attachment: MovedAttachment) -> RehydrationResult | str:
        """Return an attachment as it came."""
        if self.count_message is None:
            return "attachments are not shown here"
        result = RehydrationResult(artifact_id, attachment.line, 0, part=attachment.part)
        return replace(result, tokens=self.count_message(render_rehydrated(result)))

    def _fit(self, artifact_id: str, content: str, limit_tokens: int) -> RehydrationResult | None:
        """Return the whole content, else as much of its head and tail as the tokens allow, else None."""
        whole = self._measured(artifact_id, content)
        if whole.tokens <= limit_tokens:
            return whole
        if limit_tokens < min(_MIN_USEFUL_TOKENS, self.config.max_tokens_per_artifact):
            return None
        total = self.count_text(content)
        frame = self._measured(artifact_id, _marker(total)).tokens
        chars = min(len(content) - 1, int(len(content) * (limit_tokens - frame) / max(total, 1)))
        while chars > 0:
            cut = self._measured(artifact_id, self._head_and_tail(content, chars, total))
            if cut.tokens <= limit_tokens:
                return replace(cut, is_truncated=True)
            chars = int(chars * min(0.95, 0.98 * limit_tokens / cut.tokens))
        return None

    def _head_and_tail(self, content: str, chars: int, total_tokens: int) -> str:
        head_chars = max(1, int(chars * _HEAD_SHARE))
        head, tail = content[:head_chars], content[len(content) - (chars - head_chars) :]
        missing = max(1, total_tokens - self.count_text(head) - self.count_text(tail))
        return f"{head}\n{_marker(missing)}\n{tail}"

    def _measured(self, artifact_id: str, content: str) -> RehydrationResult:
        result = RehydrationResult(artifact_id, content, 0)
        return replace(result, tokens=self.count_text(render_rehydrated(result).text))


def create_rehydration_interceptor(
    store: ArtifactStore,
    count_text: Callable[[str], int],
    config: RehydrationConfig | None = None,
    security: SecurityContext | None = None,
) -> RehydrationInterceptor:
    """Return an interceptor, with the defaults for what is not given."""
    return RehydrationInterceptor(store, count_text, config or RehydrationConfig(), security or SecurityContext())


def referenced_ids(messages: Sequence[Message], *, ignored_tools: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the artifacts named in the newest reply and the newest user message, each once, latest named first.

    Stubs, summaries and tool results name artifacts too, but only say where something is: they do not count, and
    neither does an id that was written before its stub was there.
    """
    places = _newest_places(messages)
    named: dict[str, None] = {}
    in_stubs: set[str] = set()
    for index in range(len(messages) - 1, min(places, default=len(messages)) - 1, -1):
        message = messages[index]
        if index in places:
            found = (i for text in _texts(message, ignored_tools) for i in _REFERENCE.findall(_STUB.sub("", text)))
            named.update(dict.fromkeys(i for i in found if i not in in_stubs))
        in_stubs.update(_STUB.findall(message.text))
    return tuple(named)


def asked_attachments(messages: Sequence[Message], attachments: Mapping[str, MovedAttachment]) -> tuple[str, ...]:
    """Return the attachments that the question of this turn names, and those that answers of recall to it bring back.

    A tool may print such a line, too: it shows nothing but what this session's user has sent.
    """
    asked: dict[str, None] = {}
    for message in reversed(messages):
        if message.role == "tool":
            asked.update(dict.fromkeys(i for i in attached_ids(message.text) if i in attachments))
        elif message.role == "user" and not message.id.startswith(_OUR_PREFIXES):
            text = _STUB.sub("", message.text).casefold()  # a pointer says where something is, and asks for nothing
            asked.update((i, None) for i, one in attachments.items() if any(name in text for name in one.names))
            break
    return tuple(asked)


def _newest_places(messages: Sequence[Message]) -> set[int]:
    """Return where the newest user message and the newest reply are; a reply may be several messages."""
    newest_first = range(len(messages) - 1, -1, -1)
    question = next((i for i in newest_first if is_written_by(messages[i], "user")), -1)
    first = last = next((i for i in newest_first if is_written_by(messages[i], "assistant")), -1)
    while first > 0 and is_written_by(messages[first - 1], "assistant"):
        first -= 1
    return {question, *range(first, last + 1)} - {-1}


def is_written_by(message: Message, role: str) -> bool:
    """Return True if a message is of a role, and not one that we put into the prompt."""
    return message.role == role and not message.id.startswith(_OUR_PREFIXES)


def _texts(message: Message, ignored_tools: frozenset[str]) -> Iterator[str]:
    yield message.text
    for call in message.tool_calls:
        if call.name not in ignored_tools:
            yield from argument_texts(call, with_names=True)


def _marker(missing_tokens: int) -> str:
    return f"{TRUNCATED} {rounded(missing_tokens)} tokens are missing here; recall by id gives the rest"
