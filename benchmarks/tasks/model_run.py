"""Asks a real model small questions at the end of conversations, with and without compaction.

    python benchmarks/tasks model                                   the packaged model, 60 tasks, four policies
    python benchmarks/tasks model --base-url http://…/v1 --model m  any server with the Chat Completions API
    python benchmarks/tasks model --table                           what was measured until now

Each answer is a line of the results file; a run that is cut off continues where it was. The model is asked by plain
text: calls and results are shown as text, and it asks the recall tool by a line that begins with RECALL, because models
this small do not keep to a provider's form of calls.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from compact.core.search.recall_answer import TOOL_NAME
from tasks.intervals import difference, wilson
from tasks.loop import MAX_RECALLS, Run
from tasks.model_tasks import ModelTask, model_tasks
from tasks.policies import REFERENCE, REMINDED, WITH_RECALL, WITHOUT_RECALL, Compacted, Everything, Newest, Policy
from tasks.prompts import Wire, message_text
from tasks.steps import Task
from tasks.writer import Domain

# Chosen: small models read slowly without a GPU.
WINDOW_TOKENS, RESERVE_TOKENS = 1500, 250
# Chosen: a fifth of the prompt, for an entry or two.
REMINDER_TOKENS = 250
TASKS_PER_KIND = 20
_MAX_REPLY_TOKENS = 60
_ASKS = "RECALL:"
_HOW_TO_RECALL = (
    f"\nEarlier parts of this conversation may have been shortened. If what you need is not here, reply with one line: "
    f"{_ASKS} and what you look for. You are then shown the earlier messages about it."
)

Ask = Callable[[Sequence[Wire]], str]


def policies() -> dict[str, Callable[[], Policy]]:
    """Return the policies that a model is asked under."""
    return {
        REFERENCE: lambda: Everything(WINDOW_TOKENS),
        WITH_RECALL: lambda: Compacted(WINDOW_TOKENS, has_recall=True, reserve_tokens=RESERVE_TOKENS),
        WITHOUT_RECALL: lambda: Compacted(WINDOW_TOKENS, has_recall=False, reserve_tokens=RESERVE_TOKENS),
        REMINDED: lambda: Compacted(
            WINDOW_TOKENS, has_recall=False, reserve_tokens=RESERVE_TOKENS, reminder_tokens=REMINDER_TOKENS
        ),
        "newest messages that fit": lambda: Newest(WINDOW_TOKENS, reserve_tokens=RESERVE_TOKENS),
    }


def run_model_task(task: ModelTask, policy: Policy, ask: Ask, *, has_recall: bool) -> dict[str, Any]:
    """Let a model answer the question of a task; return what it said and whether it is right."""
    system = task.system + (_HOW_TO_RECALL if has_recall else "")
    run = Run(Task(task.name, task.kind, system, task.steps), policy)
    run.finish()
    run.history.append({"role": "user", "content": task.ask})
    recalls: list[str] = []
    while True:
        reply = ask(as_plain(run.prompt())).strip()
        if _ASKS not in reply or not has_recall or len(recalls) == MAX_RECALLS:
            break
        recalls.append(
            query := reply.partition(_ASKS)[2].strip().splitlines()[0]
            if reply.partition(_ASKS)[2].strip()
            else task.ask
        )
        run.call(TOOL_NAME, {"query": query}, policy.recall(json.dumps({"query": query})) or "")
    return {
        "reply": reply,
        "is_right": task.is_right(reply),
        "recalls": recalls,
        "prompt_tokens": run.sizes[-1],
        "compactions": policy.compactions,
    }


def as_plain(prompt: Sequence[Wire]) -> list[Wire]:
    """Return a prompt as plain texts of a system, a user and an assistant, which every chat template takes."""
    plain: list[Wire] = []
    for message in prompt:
        is_result = message["role"] == "tool"
        role = "user" if is_result else message["role"]
        text = ("[result]\n" if is_result else "") + message_text(message)
        if plain and plain[-1]["role"] == role:
            plain[-1] = {"role": role, "content": f"{plain[-1]['content']}\n\n{text}"}
        else:
            plain.append({"role": role, "content": text})
    return plain


def server_at(base_url: str, model: str) -> Ask:
    """Return a function that asks a server with the Chat Completions API; the most likely words, always the same."""

    def ask(messages: Sequence[Wire]) -> str:
        body = {"model": model, "messages": messages, "max_tokens": _MAX_REPLY_TOKENS, "temperature": 0, "seed": 42}
        request = Request(
            f"{base_url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urlopen(request, timeout=1200) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]

    return ask


@contextmanager
def packaged_model() -> Iterator[tuple[str, Ask]]:
    """Serve the small model that the tests use."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
    from real_model import start

    model = start()
    try:
        yield model.name, server_at(model.base_url, model.name)
    finally:
        model.stop()


def measure(tasks: Sequence[ModelTask], model: str, ask: Ask, file: Path) -> None:
    """Ask everything that the file does not answer yet, and write each answer down at once."""
    known = {(row["model"], row["task"], row["policy"]) for row in read_rows(file)}
    open_ = [(task, policy) for task in tasks for policy in policies() if (model, task.name, policy) not in known]
    start = time.monotonic()
    for number, (task, policy) in enumerate(open_, 1):
        found = run_model_task(task, policies()[policy](), ask, has_recall=policy == WITH_RECALL)
        with file.open("a", encoding="utf-8") as lines:
            lines.write(
                json.dumps(
                    {
                        "model": model,
                        "task": task.name,
                        "kind": task.kind,
                        "policy": policy,
                        "wanted": task.value,
                        **found,
                    }
                )
                + "\n"
            )
        left = (time.monotonic() - start) / number * (len(open_) - number) / 60
        said = "right" if found["is_right"] else "wrong"
        print(
            f"[{number}/{len(open_)}] {task.name}, {policy}: {said}; {left:.0f} minutes left",
            file=sys.stderr,
            flush=True,
        )


def read_rows(file: Path) -> list[dict[str, Any]]:
    """Return the answers in a results file; none if there is no file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def table_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what was measured, by model and policy, over the tasks that were asked under every policy."""
    lines = [
        "| model | | tasks | success | 95 % | difference | 95 % | needle | rule | lookup | recalls | prompt, mean |",
        "|" + " --- |" * 12,
    ]
    for model in dict.fromkeys(row["model"] for row in rows):
        own = [row for row in rows if row["model"] == model]
        done = set.intersection(*({row["task"] for row in own if row["policy"] == policy} for policy in policies()))
        for policy in policies() if done else ():
            found = [row for row in own if row["policy"] == policy and row["task"] in done]
            reference = [row for row in own if row["policy"] == REFERENCE and row["task"] in done]
            lines.append(_line(model, policy, found, reference))
    return "\n".join(lines)


def _line(model: str, policy: str, found: Sequence[Mapping[str, Any]], reference: Sequence[Mapping[str, Any]]) -> str:
    hits, total = sum(row["is_right"] for row in found), len(found)
    low, high = wilson(hits, total)
    change, least, most = difference(hits, sum(row["is_right"] for row in reference), total)
    kinds = [
        f"{sum(row['is_right'] for row in found if row['kind'] == kind)} of {sum(row['kind'] == kind for row in found)}"
        for kind in ("needle", "rule", "lookup")
    ]
    cells = (
        model, policy, total, f"{100 * hits / total:.1f}", f"{100 * low:.1f} to {100 * high:.1f}",
        f"{100 * change:+.1f}",
        f"{100 * least:+.1f} to {100 * most:+.1f}", *kinds, sum(len(row["recalls"]) for row in found),
        round(sum(row["prompt_tokens"] for row in found) / total),
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def main(arguments: Sequence[str], domains: Sequence[Domain]) -> int:
    """Ask and print."""
    parser = argparse.ArgumentParser(
        prog="tasks model",
        description="Ask a small real model at the end of conversations, with and without compaction.",
    )
    parser.add_argument("--tasks", type=int, default=TASKS_PER_KIND, help="how many of each kind")
    parser.add_argument(
        "--base-url", help="a server with the Chat Completions API; by default the packaged model is served"
    )
    parser.add_argument("--model", default="model", help="the model's name there")
    parser.add_argument(
        "--results", type=Path, default=Path("tasks-model.jsonl"), help="where answers are kept; a run continues there"
    )
    parser.add_argument("--table", action="store_true", help="only print what the results file has")
    options = parser.parse_args(arguments)
    tasks = model_tasks(domains, options.tasks)
    if options.base_url and not options.table:
        measure(tasks, options.model, server_at(options.base_url, options.model), options.results)
    elif not options.table:
        with packaged_model() as (name, ask):
            measure(tasks, name, ask, options.results)
    print(table_of(read_rows(options.results)))
    return 0
