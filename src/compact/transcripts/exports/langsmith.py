"""LangSmith: runs as the SDK, the command `langsmith` and the export of a project write them.

A trace is many runs; each call of the model has the whole prompt. The call with the most messages, and the last of
those, is taken as the session, with its answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from compact.core.json_data import is_list, is_mapping
from compact.transcripts.builder import LogBuilder
from compact.transcripts.forms.chat_messages import add_chat_message
from compact.transcripts.logs import AgentLog
from compact.transcripts.parts import Fields, list_of, mapping_of, text_field

NAME = "LangSmith"


def recognises(head: Sequence[object]) -> bool:
    """Return True for runs: `run_type` with `inputs`."""
    return any(_is_run(one) for value in head for one in _runs(value))


def _is_run(value: object) -> bool:
    return is_mapping(value) and "run_type" in value and "inputs" in value


def _runs(value: object) -> Sequence[Any]:
    if is_list(value):
        return value
    fields = mapping_of(value)
    return list_of(fields.get("runs")) if "runs" in fields else [value]


def read(items: Iterable[tuple[str, Any]]) -> list[AgentLog]:
    """Return a session for each trace that called a model with messages."""
    log = LogBuilder(NAME)
    best: dict[str, tuple[int, str, Fields, str]] = {}
    for place, value in items:
        for run in _flat(_runs(value)):
            if not _is_run(run):
                log.note_unknown("object without `run_type`", place)
                continue
            trace = text_field(run, "trace_id", "id")
            rank = (len(_asked(run)), text_field(run, "start_time"), run, place)
            if rank[0] and (trace not in best or rank[:2] >= best[trace][:2]):
                best[trace] = rank
    sessions = [_session(trace, run, place) for trace, (_, _, run, place) in best.items()]
    unknown = log.build().unknown
    return [replace(sessions[0], unknown=(*sessions[0].unknown, *unknown)), *sessions[1:]] if sessions else []


def _flat(runs: Iterable[Any]) -> Iterable[Fields]:
    """Return runs with those inside them."""
    for run in runs:
        fields = mapping_of(run)
        yield fields
        yield from _flat(list_of(fields.get("child_runs")))


def _asked(run: Fields) -> Sequence[Any]:
    """Return the messages of a prompt; LangChain has them in a list of lists."""
    if run.get("run_type") not in ("llm", "chat_model"):
        return ()
    inputs = mapping_of(run.get("inputs"))
    messages = list_of(inputs.get("messages", inputs.get("input")))
    return list_of(messages[0]) if messages and is_list(messages[0]) else messages


def _answers(run: Fields) -> Sequence[Any]:
    outputs = mapping_of(run.get("outputs"))
    generations = list_of(outputs.get("generations"))
    if generations:
        first = list_of(generations[0]) or generations
        return [
            mapping_of(first[0]).get("message") or {"role": "assistant", "content": mapping_of(first[0]).get("text")}
        ]
    choices = list_of(outputs.get("choices"))
    if choices:
        return [mapping_of(choices[0]).get("message")]
    for key in ("message", "output"):
        if is_mapping(outputs.get(key)):
            return [outputs[key]]
    return list_of(outputs.get("messages")) or ([outputs] if "role" in outputs else ())


def _session(trace: str, run: Fields, place: str) -> AgentLog:
    extra = mapping_of(run.get("extra"))
    metadata = mapping_of(extra.get("metadata"))
    log = LogBuilder(NAME, session_id=text_field(metadata, "thread_id", "session_id") or trace)
    log.model = text_field(metadata, "ls_model_name") or text_field(mapping_of(extra.get("invocation_params")), "model")
    for message in (*_asked(run), *_answers(run)):
        add_chat_message(log, mapping_of(message), place=place)
    return log.build()
