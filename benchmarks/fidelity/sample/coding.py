"""A coding agent: reads, edits and tests the files of a project, and comes back to what it met."""

from __future__ import annotations

from dataclasses import dataclass

from fidelity.sample.script import Script, Session

SYSTEM = "You are a coding agent. You have tools to read, search and edit files and to run tests."
_ROUNDS = 9
_FUNCTIONS = 5


@dataclass(slots=True)
class Function:
    """A function of a file: its name, the limit it checks, the lines of its body."""

    path: str
    name: str
    limit_name: str
    limit: int
    error: str
    lines: list[str]

    @property
    def check(self) -> str:
        """The line that holds the limit against something."""
        return next(line for line in self.lines if line.startswith("    if ") and self.limit_name in line)


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to a function, and the error that it came from."""

    function: Function
    reason: str
    error_line: str
    decision: str


class CodingSession(Session):
    """One session of such an agent."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.package = self.words.word()
        self.ticket = f"{self.words.code(3, 0)}-{self.words.number()}"
        self.mark = self.words.word()
        self.command = f"python -m pytest tests/{self.package} --{self.words.word()}-only"
        self.changes: list[Change] = []
        self.functions: list[Function] = []
        self.asked: list[str] = []

    def write(self) -> None:
        script = self.script
        script.system(SYSTEM)
        self._task()
        for number in range(_ROUNDS):
            self._work_on_a_file()
            if script.happens(0.5):
                self._interject()
            if number >= 2:
                self._come_back()
            if number >= 4 and script.happens(0.6):
                self._come_back()
        self._finish()

    def _task(self) -> None:
        words = self.words
        frozen, noun, other = f"{self.package}/{words.word()}/generated.py", words.word(), words.word()
        self.asked += [frozen, f"the {noun} queue", f"{words.word()}_{words.word()}"]
        self.script.user(
            f"The limits in {self.package} are too strict since the {noun} release; this is {self.ticket}.\n"
            f"Go through the package file by file and raise each limit that the {other} import runs into.\n"
            f"Do not edit {frozen}, it is written by the build.\n"
            f"Where a value has to be shared, call it {self.asked[2]} and keep it next to the check.\n"
            f"Run the tests as `{self.command}`, the whole suite takes an hour.\n"
            f"Every commit message must start with the word {self.mark}."
        )
        self.script.agent(f"I will start with the layout of {self.package}, then raise the limits one by one.")

    def _work_on_a_file(self) -> None:
        script, words = self.script, self.words
        path = f"{self.package}/{words.word()}/{words.word()}.py"
        functions = [self._function(path) for _ in range(_FUNCTIONS)]
        self.functions += functions
        text = "\n\n".join("\n".join(function.lines) for function in functions)
        opening = script.one(("Next file.", "Now the next one.", "This one is imported by the last.", ""))
        script.call("read_file", {"path": path}, f'"""The {words.word()} part."""\n\n{text}', said=opening)
        function = script.one(functions)
        noun = words.word()
        script.call(
            "search",
            {"pattern": function.limit_name},
            self._search_result(function, functions),
            said=f"`{function.name}` is where the {noun} comes in: it compares with {function.limit_name}.",
        )
        self._change(function, noun)

    def _change(self, function: Function, noun: str) -> None:
        script, words = self.script, self.words
        error_line = f"E   {function.error}: {noun} has {words.number()} entries, limit {function.limit}"
        script.call("run_tests", {"command": self.command}, self._test_result(function, error_line))
        raised = words.number(10_000, 98_000)
        decision = script.one(
            (
                f"I keep the limit in {function.limit_name} and raise it to {raised}, because {noun} rows are small.",
                f"Raising it to {raised} is enough; a setting for {noun} would have to be documented.",
                f"We must not drop {noun} rows, so {function.name} gets {raised} instead of {function.limit}.",
            )
        )
        new = function.check.replace(function.limit_name, f"max({function.limit_name}, {raised})")
        self._edit(function, function.check, new, said=f"The failure is real: {error_line[4:]}. {decision}")
        self.changes.append(Change(function, noun, error_line, decision))
        if script.happens(0.4):
            script.call("run_tests", {"command": self.command}, self._test_result(function, ""))

    def _edit(self, function: Function, old: str, new: str, *, said: str = "") -> None:
        function.lines[function.lines.index(old)] = new
        arguments = {"path": function.path, "old": old, "new": new}
        self.script.call("edit_file", arguments, f"edited {function.path}: 1 replacement", said=said)

    def _interject(self) -> None:
        script, words = self.script, self.words
        wish = words.word()
        lines = (
            f"One more thing: from now on, write the {wish} table in thousands, never in units.",
            f"Please leave the {wish} defaults alone, {words.person()} is working on them until {words.date()}.",
            f"That looks right. By the way, the {wish} customers have up to {words.number(10_000, 90_000)} entries.",
            f"Can you keep a list of what you raised? I have to tell {words.person()} about {wish} later.",
        )
        line = script.one(lines)
        script.user(line)
        self.asked.append(f"the {wish} question")
        script.agent(script.one(("Noted, I will keep to that.", "Yes. I go on with the next file.")))

    def _come_back(self) -> None:
        ways = (self._edit_again, self._write_a_test, self._search_again, self._report, self._fix_a_neighbour)
        self.script.one(ways)()

    def _edit_again(self) -> None:
        change = self.script.again(self.changes)
        function, value = change.function, self.words.number(10_000, 98_000)
        note = f"    # {change.reason}: raised for {self.ticket}"
        old = function.check
        said = f"Back to {function.name}: {value} fits the {change.reason} import better."
        self._edit(function, old, f"{note}\n{old}", said=said)
        function.lines[function.lines.index(f"{note}\n{old}")] = old

    def _write_a_test(self) -> None:
        script = self.script
        chosen = [*script.several(self.changes, 2), script.again(self.changes)]
        cases = "\n\n".join(
            f"def test_{change.function.name}_takes_more():\n"
            f"    # was: {change.error_line[4:]}\n"
            f"    with raises({change.function.error}):\n"
            f"        {change.function.name}(rows({change.function.limit}))"
            for change in {change.function.name: change for change in chosen}.values()
        )
        path = f"tests/{self.package}/test_{self.words.word()}.py"
        script.call("write_file", {"path": path, "content": cases}, f"wrote {path}", said="A test for these.")

    def _search_again(self) -> None:
        change = self.script.again(self.changes)
        said = f"Who else catches {change.function.error}? The {change.reason} case was the reason."
        found = "\n".join(f"{self.package}/{self.words.word()}.py:{n * 7}: pass" for n in range(1, 4))
        self.script.call("search", {"pattern": change.function.error}, found, said=said)

    def _fix_a_neighbour(self) -> None:
        """A function that was only read, in a file that was read before."""
        function = self.script.again(self.functions[:-_FUNCTIONS] or self.functions)
        old = self.script.one([line for line in function.lines[2:] if len(line) > 25])
        said = f"{function.name} in the same way; I saw it when I read the file."
        self._edit(function, old, old.replace("    ", "    # see below\n    ", 1), said=said)

    def _report(self) -> None:
        lines = [
            f"- {change.function.path}: {change.function.limit_name} ({change.reason})"
            for change in self.script.several(self.changes, 3)
        ]
        self.script.user(self.script.one(("Where are we?", "Short status please.", "What did you raise so far?")))
        self.script.agent("\n".join([f"For {self.ticket}, so far:", *lines, f"Open: {self.script.again(self.asked)}."]))

    def _finish(self) -> None:
        script = self.script
        done = script.several(self.changes, 5)
        entries = "\n".join(f"- {c.function.name} ({c.function.path}): {c.decision}" for c in done)
        script.call("write_file", {"path": "CHANGES.md", "content": entries}, "wrote CHANGES.md")
        message = f"{self.mark}: raise limits for {self.ticket}"
        script.call("run_tests", {"command": self.command}, "all passed", said="One last run before the commit.")
        script.call("commit", {"message": message}, "1 commit")
        script.agent(f"Done. I did not touch {self.asked[0]}; shared values are called {self.asked[2]}.\n{entries}")

    def _function(self, path: str) -> Function:
        words = self.words
        verb, noun, item, part, other = words.words(5)
        limit_name, limit, error = f"{noun}_{part}_max".upper(), words.number(), f"{noun.capitalize()}LimitError"
        name = f"{verb}_{noun}"
        lines = [
            f"{limit_name} = {limit}",
            f"def {name}({item}s, *, {other}=None):",
            f'    """Return the {noun} of all {item}s that have a {part}."""',
            f"    {part}s = [{item}.{part} for {item} in {item}s if {item}.{other} is not None]",
            f"    if len({part}s) > {limit_name}:",
            f'        raise {error}(f"{part} has {{len({part}s)}} entries, limit {{{limit_name}}}")',
            f"    for {part} in sorted({part}s, key=lambda one: one.{words.word()}):",
            f"        {other} = self._{words.word()}({part}, {words.number()})",
            f"        {noun}.append({part}.{words.word()}({other}))",
            f"    return {noun} or {words.word()}_{words.word()}({item}s)",
        ]
        return Function(path, name, limit_name, limit, error, lines)

    def _search_result(self, function: Function, functions: list[Function]) -> str:
        hits = [f"{function.path}:{self.words.number()}:{function.check}"]
        hits += [f"{one.path}:{self.words.number()}:    {one.name}(batch)" for one in functions if one is not function]
        hits += [f"docs/{self.words.word()}.md:{n + 3}: the {self.words.word()} of a batch" for n in range(4)]
        return "\n".join(hits)

    def _test_result(self, function: Function, error_line: str) -> str:
        words = self.words
        passed = [f"tests/{self.package}/test_{words.word()}.py::test_{words.word()} PASSED" for _ in range(9)]
        if not error_line:
            return "\n".join([*passed, "9 passed"])
        trace = [f"    {function.name}(batch)", f"{function.path}:{words.number()}: {function.error}", error_line]
        return "\n".join([*passed[:6], "FAILED", *trace, *passed[6:], "1 failed, 9 passed"])
