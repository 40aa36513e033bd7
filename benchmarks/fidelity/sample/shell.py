"""An agent that has only a shell: explores a repository, reproduces an issue, fixes it, and shows what it did."""

from __future__ import annotations

from dataclasses import dataclass

from fidelity.sample.script import Script, Session

SYSTEM = "You fix issues. Answer with one bash command at a time."
_PARTS = 11


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the code that the issue leads to."""

    path: str
    line: int
    name: str
    code: str
    fixed: str
    error: str
    test: str
    helper: str


class ShellSession(Session):
    """One session of such an agent."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.root = f"/srv/{self.words.word()}"
        self.package = self.words.word()
        self.topics = self.words.words(_PARTS)
        self.issue_number = self.words.number(1000, 9000)
        self.option = f"--{self.words.word()}-{self.words.word()}"
        self.sites: list[Site] = []
        self.open: list[tuple[Site, str]] = []
        self.scripts: list[tuple[str, str]] = []

    def write(self) -> None:
        script = self.script
        script.system(SYSTEM)
        self._issue()
        tree = "\n".join(f"./{self.package}/{word}/{self.words.word()}.c" for word in self.words.words(14))
        self._bash(f"cd {self.root} && find . -name '*.c' | head -40", tree, "I look at the layout first.")
        for number, topic in enumerate(self.topics):
            self._explore(topic)
            if number >= 2:
                self._come_back()
            if number >= 4 and script.happens(0.6):
                self._come_back()
        self._finish()

    def _issue(self) -> None:
        words = self.words
        steps = "\n".join(
            f"{n + 1}. the {topic} stage prints {words.number()} rows where {words.number()} were expected"
            for n, topic in enumerate(self.topics)
        )
        self.script.user(
            f"Issue {self.issue_number}: {self.package} loses rows when {self.option} is given.\n\n"
            f"Reported by {words.person()} on {words.date()}, seen with the {words.word()} data set.\n"
            f"What happens:\n{steps}\n\n"
            f"Fix every stage. Do not change the public header {self.package}/api_{words.word()}.h.\n"
            f"No new dependencies, and keep the output of {self.option} as it is."
        )

    def _explore(self, topic: str) -> None:
        script, words = self.script, self.words
        site = self._site(topic)
        near = [f"{self.package}/{words.word()}.c:{words.number()}:  {words.word()}_{topic}(row);" for _ in range(7)]
        near.insert(script.random.randrange(len(near)), f"{site.path}:{site.line}:{site.code}")
        self._bash(
            f"cd {self.root} && grep -rn {topic} {self.package} | head -20",
            "\n".join(near),
            f"Next is the {topic} stage.",
        )
        self._bash(f"cd {self.root} && sed -n '{site.line - 20},{site.line + 20}p' {site.path}", self._source(site))
        self._reproduce(site, topic)
        if script.happens(0.6):
            self._fix(site, topic)
        else:
            self.open.append((site, topic))
        self.sites.append(site)

    def _reproduce(self, site: Site, topic: str) -> None:
        words = self.words
        file = f"/tmp/check_{topic}.sh"
        line = f"./{self.package} {self.option} --only {topic} < data/{words.word()}.txt | wc -l"
        noise = "\n".join(f"[{words.number()}] {words.word()} {words.word()} {words.number()} ok" for _ in range(12))
        self._bash(
            f"cat > {file} <<'END'\n{line}\nEND\nsh {file}",
            f"{noise}\n{site.error}\nexit status 3",
            f"The {topic} rows go missing in {site.name}, I think; a script shows it.",
        )
        self.scripts.append((file, line))

    def _fix(self, site: Site, topic: str) -> None:
        reason = self.script.one((f", hence {site.error!r}", ""))
        said = f"`{site.name}` stops one row early{reason}. The bound has to include the last {topic}."
        old, new = site.code.strip(), site.fixed.strip()
        self._bash(
            f"cd {self.root} && sed -i 's|{old}|{new}|' {site.path} && git diff --stat", f" {site.path} | 2 +-", said
        )
        if self.script.happens(0.5):
            done = "\n".join(f"ok {n} - {self.words.word()} {self.words.word()}" for n in range(1, 9))
            self._bash(f"cd {self.root} && make test T={site.test}", done)

    def _come_back(self) -> None:
        ways = (
            self._run_a_script_again,
            self._look_again,
            self._test_again,
            self._undo,
            self._sum_up,
            self._trace,
            self._fix_an_open_one,
        )
        self.script.one(ways)()

    def _run_a_script_again(self) -> None:
        file, line = self.script.again(self.scripts)
        self._bash(f"sh {file}", f"{self.words.number()}", "Does the earlier script still say the same?")
        self._bash(line, f"{self.words.number()}", "By hand as well.")

    def _look_again(self) -> None:
        site = self.script.again(self.sites)
        shown = "\n".join(f"  {self.words.word()}({self.words.word()}, {self.words.number()});" for _ in range(6))
        said = f"{site.name} had the same pattern; I compare."
        self._bash(f"cd {self.root} && grep -n -A6 {site.name} {site.path}", shown, said)

    def _test_again(self) -> None:
        site = self.script.again(self.sites)
        self._bash(f"cd {self.root} && make test T={site.test}", "ok 1", f"The test of {site.name} again.")

    def _undo(self) -> None:
        site = self.script.again(self.sites)
        text = f"cd {self.root} && cat > /tmp/old.c <<'END'\n{site.code}\nEND\ngit stash"
        self._bash(text, "Saved working directory", f"To be sure: without the change to {site.path} it was")

    def _fix_an_open_one(self) -> None:
        """A place that was looked at and left."""
        if self.open:
            self._fix(*self.open.pop(self.script.random.randrange(len(self.open))))

    def _trace(self) -> None:
        """A function that only a listing had."""
        site = self.script.again(self.sites)
        found = "\n".join(f"{self.package}/{self.words.word()}.c:{self.words.number()}" for _ in range(5))
        said = f"What calls {site.helper}, next to {site.name}?"
        self._bash(f"cd {self.root} && grep -rn '{site.helper}(' {self.package}", found, said)

    def _sum_up(self) -> None:
        chosen = self.script.several(self.sites, 3)
        lines = [f"- {site.path}:{site.line} {site.name}: {site.error}" for site in chosen]
        text = "\n".join([f"Issue {self.issue_number} so far:", *lines])
        self._bash(f"cat >> /tmp/notes.txt <<'END'\n{text}\nEND", "", "I note what is known.")

    def _finish(self) -> None:
        chosen = self.script.several(self.sites, 5)
        patch = "\n".join(f"--- {site.path}\n-{site.code}\n+{site.fixed}" for site in chosen)
        self._bash(f"cat > /tmp/final.patch <<'END'\n{patch}\nEND", "", "The patch, written out for review.")
        log = "\n".join(f"{site.name}: include the last row ({site.test})" for site in chosen)
        message = f"Keep all rows with {self.option}, issue {self.issue_number}\n\n{log}"
        self._bash(f"cd {self.root} && git commit -am '{message}'", "1 commit")
        self.script.agent(f"Issue {self.issue_number} is fixed in {len(self.sites)} stages.\n{log}")

    def _bash(self, command: str, result: str, said: str = "") -> None:
        self.script.call("bash", {"command": command}, result, said=said)

    def _site(self, topic: str) -> Site:
        words = self.words
        name, count, step = f"{words.word()}_{topic}_rows", words.word(), words.number()
        code = f"    for (i = 0; i < {count}_count - 1; i += {step})"
        return Site(
            path=f"{self.package}/{words.word()}/{topic}.c",
            line=words.number(),
            name=name,
            code=code,
            fixed=code.replace(" - 1", ""),
            error=f"{topic}: expected {words.number()} rows, got {words.number()}",
            test=f"t_{topic}_{words.word()}",
            helper=f"{words.word()}_{words.word()}",
        )

    def _source(self, site: Site) -> str:
        words = self.words
        lines = [
            f"    {words.word()}->{words.word()} = {words.word()}_{words.word()}(row, {words.number()});"
            for _ in range(22)
        ]
        lines[4] = f"    row->next = {site.helper}(row);"
        lines[9:9] = [f"static int {site.name}(struct {words.word()} *{words.word()})", "{", site.code]
        return "\n".join(lines)
