"""Runs a scripted agent through a task.

Before every message of the agent the policy makes a prompt, as before every call of a model. In routine work the agent
does what the task says. At a check it reads the prompt by the rule of the fact. If the prompt does not tell it, and if
there is a recall tool, it asks up to three times, each time with other words; the answer comes back as the result of
the call, through the policy. Without a value the step fails, and the task goes on.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

from compact.core.search.recall_answer import TOOL_NAME
from tasks.policies import Policy, TokenCounter
from tasks.prompts import Wire, passages_of
from tasks.steps import Check, Say, Task, Work

MAX_RECALLS = 3


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What became of one check: the value that the agent used, and how often it had to ask."""

    kind: str
    wanted: str
    used: str | None
    recalls: int

    @property
    def is_right(self) -> bool:
        """Whether it was the right one."""
        return self.used == self.wanted


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one task under one policy."""

    task: str
    domain: str
    checks: tuple[CheckOutcome, ...]
    compactions: int
    calls: int
    prompt_tokens: int
    largest_prompt: int
    seconds: float

    @property
    def is_success(self) -> bool:
        """Whether every check holds."""
        return all(check.is_right for check in self.checks)


@dataclass(slots=True)
class Run:
    """A task as it goes: its history, and what was sent."""

    task: Task
    policy: Policy
    history: list[Wire] = field(default_factory=list)
    checks: list[CheckOutcome] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    seconds: float = 0.0
    _count: TokenCounter = field(default_factory=TokenCounter)
    _calls: int = 0

    def finish(self) -> Outcome:
        """Go through all steps and return what became of them."""
        self.history.append({"role": "system", "content": self.task.system})
        for step in self.task.steps:
            match step:
                case Say(text, reply):
                    self.history.append({"role": "user", "content": text})
                    self.prompt()
                    self.history.append({"role": "assistant", "content": reply})
                case Work(tool, arguments, result, said):
                    self.prompt()
                    self.call(tool, arguments, result, said)
                case Check():
                    self.history.append({"role": "user", "content": step.ask})
                    self.checks.append(self.check(step))
        return Outcome(
            self.task.name, self.task.domain, tuple(self.checks), self.policy.compactions, len(self.sizes),
            sum(self.sizes), max(self.sizes), self.seconds,
        )  # fmt: skip

    def prompt(self) -> list[Wire]:
        """Return what the agent is shown now."""
        start = time.perf_counter()
        prompt = self.policy.prompt(self.history)
        self.seconds += time.perf_counter() - start
        self.sizes.append(self._count.all(prompt))
        return prompt

    def call(self, tool: str, arguments: Wire, result: str, said: str = "") -> None:
        """Write a call and its result into the history."""
        self._calls += 1
        name, function = f"call_{self._calls}", {"name": tool, "arguments": json.dumps(arguments)}
        calls = [{"id": name, "type": "function", "function": function}]
        self.history.append({"role": "assistant", "content": said or None, "tool_calls": calls})
        self.history.append({"role": "tool", "tool_call_id": name, "content": result})

    def check(self, check: Check) -> CheckOutcome:
        """Let the agent find the value and act on it."""
        value, recalls = check.fact.read(passages_of(self.prompt())), 0
        # First the request as it is: nobody chose its words for the search.
        queries = (check.ask, *check.queries)[:MAX_RECALLS] if check.queries else ()
        while value is None and recalls < len(queries):
            arguments = {"query": queries[recalls]}
            answer = self.policy.recall(json.dumps(arguments))
            if answer is None:
                break
            recalls += 1
            self.call(TOOL_NAME, arguments, answer)
            value = check.fact.read(passages_of(self.prompt()))
        if value is None:
            self.history.append({"role": "assistant", "content": "I do not know that any more."})
        else:
            self.call(
                check.tool, check.filled(value), check.done if value == check.fact.value else "error: not accepted"
            )
            self.prompt()
            self.history.append({"role": "assistant", "content": "Done."})
        return CheckOutcome(check.kind, check.fact.value, value, recalls)


def run_task(task: Task, policy: Policy) -> Outcome:
    """Run a task under a policy."""
    return Run(task, policy).finish()
