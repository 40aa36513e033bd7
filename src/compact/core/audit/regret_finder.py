"""Find regrets: entries of a log that bring back what a plan had removed from the prompt.

An agent brings something back by the tool `recall`, by the same call, or by reading the same file again. It is no
regret if the content is still in the prompt, if the agent changed the file in between, or if the answer is another one:
then it needed the new content. Each removed message is counted once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from posixpath import dirname, normpath
from typing import TypeAlias

from compact.core.audit.records import StoredSession
from compact.core.facts.outcomes import failure_of
from compact.core.facts.tool_calls import CallSubject, arguments_of, call_subjects
from compact.core.messages.message import Message, ToolCall, list_start
from compact.core.plan.plan import ClearRecord, CompactionPlan, ExternalizationRecord, Record
from compact.core.plan.regret import Regret
from compact.core.search.recall_answer import is_recall, recalled_ids

# What two results have in common that tell the same: a tool with its arguments, or a file ("" for the tool).
Key: TypeAlias = tuple[str, str]

# Chosen: a call that is answered more briefly ("ok", "nothing to commit") is made again for what it does.
_MIN_CHARS = 200
# Chosen: readers put a line of their own above or below; one that changed in ten means that there is something new.
_SAME_SHARE = 0.9
# Chosen: through so many compactions something stays for having been missed; if it is missed once more, so many again.
_KEPT_COMPACTIONS = 4
# Chosen: the newest results of the same file that a new one is compared with.
_MAX_COMPARED = 8


@dataclass(frozen=True, slots=True)
class _Result:
    """A tool result, the call it answers and the message that makes it, and the place of the result in the history."""

    message: Message
    caller: Message
    call: ToolCall
    place: int

    @property
    def about(self) -> CallSubject:
        return call_subjects(self.caller)[self.call.id]

    @property
    def keys(self) -> tuple[Key, ...]:
        same_call = (self.call.name, self.caller.read_once(_read_digests)[self.call.id])
        path = self.about.only_reads
        return (same_call,) if path is None else (same_call, ("", path))


class RegretFinder:
    """Reads a history entry by entry under one plan; what it costs grows with what is new.

    `found` are the regrets so far, those of earlier plans first.
    """

    def __init__(self, plan: CompactionPlan) -> None:
        self.take_plan(plan)
        # What was read so far, each with the result that it is, if it is one.
        self._messages: list[Message] = []
        self._read: dict[str, _Result | None] = {}
        self._waiting: dict[str, list[tuple[Message, ToolCall]]] = {}
        self._results: dict[Key, list[_Result]] = {}
        self._by_id: dict[str, _Result] = {}  # those that change no file
        # Where each file, and each folder with it, was last changed by the agent; and where any was.
        self._changed: dict[str, int] = {}
        self._last_change = 0
        self._place = 0

    def take_plan(self, plan: CompactionPlan) -> None:
        """Go on under another plan: what was read until now was there when it was made."""
        self.found = list(plan.regrets.found)
        self._plan = plan
        self._counted = {regret.message_id for regret in self.found}
        self._artifacts = {record.artifact_id: record.span.first for record in plan.artifacts}

    def has_read(self, messages: Sequence[Message]) -> bool:
        """Return True if it was these messages, and no others, that were read."""
        return len(messages) == len(self._messages) and list_start(messages, len(messages)) == self._messages

    def _is_removed(self, message_id: str) -> bool:
        return message_id in self._read and self._plan.get_action(message_id)[1] is not None

    def add(self, message: Message, *, tokens: int = 0, is_new: bool = True) -> None:
        """Read the next entry; one that is not new was there when the plan was made, and is no regret."""
        self._place += 1
        for call in message.tool_calls:
            self._waiting.setdefault(call.id, []).append((message, call))
        calls = self._waiting.get(message.tool_call_id or "") if message.role == "tool" else None
        result = _Result(message, *calls.pop(), self._place) if calls else None
        self._messages.append(message)
        self._read[message.id] = result
        if result is not None:
            self._add_result(result, tokens, is_new=is_new)

    def _add_result(self, result: _Result, tokens: int, *, is_new: bool) -> None:
        changed = result.about.changed
        if changed:
            if not failure_of(result.message, result.call):
                self._note_change(changed)
            return
        keys = result.keys
        missed = self._missed_by(result, keys) if is_new else None
        if missed is not None:
            self._count(missed, result, tokens)
        self._by_id[result.message.id] = result
        for key in keys:
            self._results.setdefault(key, []).append(result)

    def missed_ids(self) -> Iterator[str]:
        """Yield the messages that brought back what was missed lately, newest first, as far as they are up to date."""
        seen = set[str]()
        for regret in reversed(self.found):
            if self._plan.version - regret.plan_version >= _KEPT_COMPACTIONS:
                break
            removed = self._read.get(regret.message_id) if self._is_removed(regret.message_id) else None
            result = self._by_id.get(regret.found_in)
            if result is None or self._is_removed(regret.found_in) or regret.found_in in seen:
                continue
            seen.add(regret.found_in)
            path = (removed or result).about.only_reads
            is_newest = self._results[result.keys[0]][-1] is result
            if is_newest and (path is None or self._changed.get(path, 0) < result.place):
                yield regret.found_in

    def _note_change(self, paths: tuple[str, ...]) -> None:
        self._last_change = self._place
        for path in map(normpath, paths):
            while path not in ("", ".", "/"):
                self._changed[path] = self._place
                path = dirname(path)

    def _count(self, message_id: str, result: _Result, tokens: int) -> None:
        removed, record = self._read.get(message_id), self._plan.get_action(message_id)[1]
        if record is None or message_id in self._counted:
            return
        self._counted.add(message_id)
        self.found.append(
            Regret(
                message_id=message_id,
                found_in=result.message.id,
                tool=removed.call.name if removed else "",
                action=record.action.value,
                strategy=record.strategy,
                how="recall" if is_recall(result.call.name) else "reread",
                plan_version=self._plan.version,
                tokens=tokens,
            )
        )

    def _missed_by(self, result: _Result, keys: tuple[Key, ...]) -> str | None:
        """Return the removed message that a result brings back, if it is one of those that count."""
        if is_recall(result.call.name):
            return self._missed_by_recall(result)
        text, earlier = result.message.text, self._newest(keys)
        if not earlier or len(text) < _MIN_CHARS or failure_of(result.message, result.call):
            return None
        lines = _lines(text)
        if self._is_shown(lines, earlier):
            return None
        for other in earlier:
            record = self._plan.get_action(other.message.id)[1]
            if record and not self._is_outdated(other) and _tells(_removed_text(other.message, record), lines):
                return other.message.id
        return None

    def _missed_by_recall(self, result: _Result) -> str | None:
        missed = next((i for i in self._recalled_ids(result) if self._is_removed(i)), None)
        removed = self._read[missed] if missed else None
        if removed and self._is_shown(_lines(removed.message.text), self._newest(removed.keys)):
            return None
        return missed

    def _newest(self, keys: tuple[Key, ...]) -> list[_Result]:
        """Return the newest results of these calls and files, newest first."""
        found = {result.place: result for key in keys for result in self._results.get(key, ())[-_MAX_COMPARED:]}
        return [found[place] for place in sorted(found, reverse=True)]

    def _is_shown(self, lines: frozenset[str], results: list[_Result]) -> bool:
        """Return True if one of these results is in the prompt as it came, and tells the same."""
        standing = (other for other in results if self._plan.get_action(other.message.id)[1] is None)
        return any(_tells(other.message.text, lines) for other in standing)

    def _is_outdated(self, result: _Result) -> bool:
        """Return True if the agent changed what a result tells about since; a command may tell about any file."""
        path = result.about.only_reads
        return (self._last_change if path is None else self._changed.get(path, 0)) > result.place

    def _recalled_ids(self, result: _Result) -> Iterator[str]:
        """Yield the messages that a call of `recall` was about: the one it names, else those found, best first."""
        query = arguments_of(result.call).get("query")
        named = query.strip() if isinstance(query, str) else ""
        yield self._artifacts.get(named, named)
        yield from recalled_ids(result.message.text)


def read_regrets(
    plan: CompactionPlan, log: Sequence[Message], view: Iterable[Message], tokens_of: Callable[[str], int]
) -> RegretFinder:
    """Return a finder that has read a line of the log under a plan; what the log got after the plan is new."""
    finder = RegretFinder(plan)
    if plan.records:
        known = {message.id for message in log[: plan.regrets.log_length]}
        for message in view:
            finder.add(message, tokens=tokens_of(message.id), is_new=message.id not in known)
    return finder


def regrets_of(stored: StoredSession) -> tuple[Regret, ...]:
    """Return all regrets of a session as a store has it, oldest first."""
    log, tokens = [entry.message for entry in stored.messages], {e.message.id: e.tokens for e in stored.messages}
    by_id = {message.id: message for message in log}
    view = (by_id[message_id] for message_id in stored.view_ids)
    return tuple(read_regrets(stored.plan, log, view, tokens.__getitem__).found)


def _read_digests(message: Message) -> Mapping[str, str]:
    """Return a digest of the arguments of each call, by the id of the call: they may be whole files."""
    return {call.id: _digest(call) for call in message.tool_calls}


def _digest(call: ToolCall) -> str:
    arguments = arguments_of(call)
    text = json.dumps(arguments, sort_keys=True) if arguments else call.arguments.strip()
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _removed_text(message: Message, record: Record) -> str:
    """Return what of a message is not in the prompt any more; a stub keeps some of it, a pointer has a preview."""
    text = message.text
    if isinstance(record, ClearRecord):
        return _without(text, record.kept)
    if isinstance(record, ExternalizationRecord) and record.attachments:
        return "" if record.kept is None else _without(text, record.kept)
    if isinstance(record, ExternalizationRecord) and record.preview:
        shown = _lines(record.preview)
        return "\n".join(line for line in text.splitlines() if line.strip() not in shown)
    return text


def _without(text: str, kept: Sequence[tuple[int, int]]) -> str:
    for start, end in reversed(kept):
        text = f"{text[:start]}\n{text[end:]}"
    return text


def _tells(text: str, lines: frozenset[str]) -> bool:
    """Return True if a text has nearly all of these lines."""
    return bool(lines) and len(lines & _lines(text)) >= _SAME_SHARE * len(lines)


def _lines(text: str) -> frozenset[str]:
    return frozenset(line.strip() for line in text.splitlines() if line.strip())
