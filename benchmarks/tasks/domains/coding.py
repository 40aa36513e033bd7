"""An agent that works on a repository."""

from __future__ import annotations

from tasks.facts import Fact
from tasks.steps import Check, Planted, Say, Work
from tasks.writer import Writer

NAME = "coding"
SYSTEM = (
    "You are a coding agent. You read, edit and test the files of a repository with your tools. Keep answers short."
)
OPENING = (
    "Let's go through the billing service today: read what is there, keep the tests green, "
    "and I will tell you what to change.",
    "I want the ingest pipeline cleaned up. Read through the modules first; I will come back with concrete changes.",
)
ASIDES = (
    "Fine so far. Carry on with the next module.",
    "ok, keep reading. The naming in there is a mess, I know.",
    "Looks good. Have a look at the tests around it as well, please.",
    "Thanks. Go on, I am in a meeting until three.",
)
_NOUNS = [
    "invoice",
    "ledger",
    "payment",
    "customer",
    "refund",
    "export",
    "import",
    "schedule",
    "webhook",
    "mailer",
    "currency",
    "discount",
    "archive",
]
_VERBS = ["load", "store", "merge", "check", "split", "parse", "render", "collect", "apply", "filter"]


def _source_file(w: Writer) -> Work:
    noun, lines = w.one(_NOUNS), []
    for verb in w.some(_VERBS, 4):
        lines += [
            f"def {verb}_{noun}(rows, limit={w.any(10, 400)}):",
            f'    """{verb.capitalize()} the {noun} rows that are due."""',
            f"    kept = [row for row in rows if row.total > {w.any(1, 90)} and row.state != {w.any(1, 9)}]",
            f"    if len(kept) > limit: raise ValueError('too many {noun} rows')",
            f"    return sorted(kept, key=lambda row: row.{w.one(('date', 'total', 'owner'))})",
            "",
        ]
    path = f"src/{w.one(('billing', 'ingest', 'core'))}/{noun}_{w.one(_VERBS)}_{w.any(1, 99)}.py"
    return Work("read_file", {"path": path}, "\n".join(lines), w.one(("", f"Reading {path}.", "Next file.")))


def _test_run(w: Writer) -> Work:
    noun = w.one(_NOUNS)
    names = [
        f"tests/test_{noun}.py::test_{verb}_{w.one(('twice', 'empty', 'late', 'sorted'))} PASSED"
        for verb in w.some(_VERBS, 9)
    ]
    return Work(
        "run_tests",
        {"path": f"tests/test_{noun}.py"},
        "\n".join([*names, f"{len(names)} passed in {w.any(1, 9)}.{w.any(10, 99)}s"]),
    )


def _search(w: Writer) -> Work:
    noun = w.one(_NOUNS)
    hits = [
        f"src/billing/{w.one(_NOUNS)}.py:{w.any(3, 400)}:    {w.one(_VERBS)}_{noun}(rows, limit={w.any(10, 400)})"
        for _ in range(12)
    ]
    return Work("grep", {"pattern": noun}, "\n".join(hits))


FILLERS = (_source_file, _source_file, _test_run, _search)


def _port(w: Writer) -> Planted:
    """A number in one section of a file; other sections have the same key."""
    env, names = w.one(("staging", "nightly", "canary")), w.some(("primary", "replica", "cache", "queue", "search"), 4)
    ports = {name: str(w.number(5100, 9800)) for name in names}
    wanted = names[1]
    sections = "\n\n".join(
        f'[{name}]\nhost = "{name}.{env}.internal"\nport = {port}\npool = {w.any(4, 40)}'
        for name, port in ports.items()
    )
    path = f"config/{env}.toml"
    return Planted(
        told=(Work("read_file", {"path": path}, f"# {env} services\n\n{sections}", w.one((f"Checking {path}.", ""))),),
        check=Check(
            "file contents",
            f"Please write the health check for the {wanted} service of {env} now, with the port from its config file.",
            Fact(
                ports[wanted],
                r"\b\d{4}\b",
                patterns=(
                    rf"(?s)\[{wanted}\](?:(?!\n\[)[^§]){{0,140}}?port = (\d{{4}})",
                    rf"{wanted}\.{env}\.internal[^\n\[]{{0,30}}\s*port = (\d{{4}})",
                ),
            ),
            "write_file",
            {"path": f"checks/{wanted}.py", "content": "connect('127.0.0.1', {})"},
            "written",
            (f"port of the {wanted} service in the {env} config file", f"{path} {wanted} port", path),
        ),
    )


def _constant(w: Writer) -> Planted:
    """A constant in a file that the agent itself changes later: the newest value is in the arguments of a call."""
    name = w.one(("MAX_BATCH_ROWS", "RETRY_LIMIT_MS", "EXPORT_CHUNK_BYTES", "SESSION_TTL_SECONDS"))
    other, old, new = name + "_LEGACY", str(w.number(1100, 9000)), str(w.number(1100, 9000))
    path = f"src/core/limits_{w.any(1, 40)}.py"
    source = f"# limits\n{other} = {w.number(1100, 9000)}\n{name} = {old}\nDEFAULT_REGION = 'eu'\n"
    return Planted(
        told=(Work("read_file", {"path": path}, source),),
        changed=(
            Say(
                w.one((f"Please raise {name} to {new}.", f"Change of plan: {name} has to be {new} from now on.")),
                "Changing it.",
            ),
            Work("edit_file", {"path": path, "old": f"{name} = {old}", "new": f"{name} = {new}"}, "edited"),
        ),
        check=Check(
            "changed by the agent",
            f"Write the line for the changelog that says what {name} is now.",
            Fact(new, r"\b\d{4}\b", (rf"{name}\b(?!_)",)),
            "append_file",
            {"path": "CHANGELOG.md", "text": name + " is {}"},
            "appended",
            (f"what is {name} now", name),
        ),
    )


def _flag(w: Writer) -> Planted:
    """A name that the agent chose in its own words."""
    what = w.one(("new checkout", "async export", "ledger rewrite", "bulk refunds"))
    name = f"{what.replace(' ', '_')}_{w.one(('rollout', 'gate', 'switch'))}_{w.number(2, 98)}"
    other = f"{w.one(('legacy', 'beta'))}_{w.one(_NOUNS)}_{w.number(2, 98)}"
    said = w.one(
        (
            f"I have decided: the feature flag for the {what} is called `{name}`; `{other}` stays for the old path.",
            f"For the {what} I will use a feature flag named {name}. The flag {other} is untouched.",
        )
    )
    return Planted(
        told=(Say(f"How do you want to ship the {what}?", said),),
        check=Check(
            "decision of the agent",
            f"Turn the feature flag for the {what} on in the test settings.",
            Fact(name, r"\b[a-z]+(?:_[a-z]+)+_\d+\b", ("flag", what)),
            "edit_file",
            {"path": "settings/test.py", "old": "FLAGS = {", "new": "FLAGS = {'{}': True,"},
            "edited",
            (f"name of the feature flag for the {what}", f"feature flag {what}"),
        ),
    )


def _ticket(w: Writer) -> Planted:
    """An id that a person mentions in passing."""
    work, other = w.some(("retry", "rounding", "timezone", "pagination", "locking"), 2)
    ticket, old = w.code(3, 4, "-"), w.code(3, 4, "-")
    said = w.one(
        (
            f"Good. By the way, the ticket for the {work} work is {ticket}. The one for {other} is {old}.",
            f"before I forget: {other} is tracked as {old}\n{work} is tracked as {ticket}\nno hurry with either",
            f"Nice. ({ticket} is the {work} ticket, somebody asked.)",
        )
    )
    return Planted(
        told=(Say(said, w.one(("Noted.", "Thanks, I keep that in mind."))),),
        check=Check(
            "said in passing",
            f"Commit the {work} fix with its ticket in the message.",
            Fact(ticket, r"\b[A-Z]{3}-\d{4}\b", (work,)),
            "commit",
            {"message": f"Fix {work} ({{}})"},
            "committed",
            (f"ticket for the {work} work", f"{work} ticket", f"{work} tracked as"),
        ),
    )


def _commit(w: Writer) -> Planted:
    """A hash in the output of a command."""
    subjects = w.some(
        (
            "Round half even in totals",
            "Cache exchange rates",
            "Drop the nightly vacuum",
            "Validate IBANs early",
            "Move webhooks to a queue",
            "Log refunds twice",
            "Speed up the ledger import",
        ),
        6,
    )
    log = {subject: w.hash() for subject in subjects}
    wanted = w.one(subjects[1:5])
    text = "\n".join(f"{commit} {subject}" for subject, commit in log.items())
    return Planted(
        told=(Work("bash", {"command": "git log --oneline -6"}, text, w.one(("", "What changed lately?"))),),
        check=Check(
            "tool result",
            f'Revert the commit "{wanted}", it broke production.',
            Fact(log[wanted], r"\b(?=[0-9a-f]*\d)[0-9a-f]{7}\b", (wanted,)),
            "bash",
            {"command": "git revert --no-edit {}"},
            "reverted",
            (f"hash of the commit {wanted}", f"git log {wanted}"),
        ),
    )


def _failing(w: Writer) -> Planted:
    """The one test that failed among many that passed, long ago."""
    noun, verbs = w.one(_NOUNS), w.some(_VERBS, 8)
    failed = f"test_{verbs[3]}_{w.one(('half', 'double', 'stale', 'negative'))}_{noun}"
    path = f"tests/regression/test_{noun}_{w.any(1, 60)}.py"
    lines = [f"{path}::test_{verb}_{noun} PASSED" for verb in verbs if verb != verbs[3]]
    lines.insert(w.any(2, 5), f"{path}::{failed} FAILED")
    return Planted(
        told=(
            Work(
                "run_tests",
                {"path": path},
                "\n".join([*lines, f"E   AssertionError: {w.amount()} != {w.amount()}", "1 failed, 7 passed"]),
            ),
        ),
        check=Check(
            "tool result",
            f"Run the one regression test of the {noun} module again that failed this morning.",
            Fact(failed, r"\btest_\w+(?= FAILED)|(?<=::)test_\w+", (r"FAILED", rf"test_{noun}_\d|_{noun}\b")),
            "run_tests",
            {"path": path, "only": "{}"},
            "1 passed",
            (f"which {noun} regression test FAILED", f"{noun} FAILED AssertionError"),
        ),
    )


FACTS = (_port, _constant, _flag, _ticket, _commit, _failing)


def _header(w: Writer) -> Planted:
    team = f"team-{w.one(('ledger', 'atlas', 'harbor', 'quartz'))}-{w.number(2, 98)}"
    said = w.one(
        (
            f"One rule for all of this: every new file must begin with the line `# owner: {team}`.",
            f"Please always put `# owner: {team}` at the top of each file that you create.",
        )
    )
    return Planted(
        told=(Say(said, "Understood."),),
        check=Check(
            "rule",
            "Create the module src/core/clock.py with a function now().",
            Fact(team, r"team-[a-z]+-\d+", ("owner",)),
            "write_file",
            {"path": "src/core/clock.py", "content": "# owner: {}\ndef now(): ..."},
            "written",
        ),
    )


def _branch(w: Writer) -> Planted:
    prefix = f"{w.one(('fix', 'work', 'dev'))}-{w.one(_NOUNS)}{w.number(2, 98)}"
    said = w.one(
        (
            f"Never push to main. Use branches that begin with {prefix}/ for everything you push.",
            f"From now on, only push to branches under {prefix}/, never to main directly.",
        )
    )
    return Planted(
        told=(Say(said, "Got it."),),
        check=Check(
            "rule",
            "Push what you have.",
            Fact(prefix, r"\b(?:fix|work|dev)-[a-z]+\d+(?=/)", ("branches",)),
            "bash",
            {"command": "git push origin HEAD:{}/today"},
            "pushed",
        ),
    )


RULES = (_header, _branch)
