"""An agent that runs services."""

from __future__ import annotations

from tasks.facts import Fact
from tasks.steps import Check, Planted, Say, Work
from tasks.writer import Writer

NAME = "operations"
SYSTEM = "You are the operations agent of a platform team. You have a shell, metrics and a pager. Act carefully."
OPENING = (
    "Latency is up since last night. Look through logs and pods with me until we know why.",
    "We migrate the cluster today. Check things as we go, I will tell you when to act.",
)
ASIDES = (
    "ok, nothing strange there. Next node.",
    "Thanks. Keep an eye on the queue while you go on.",
    "Right. Let's continue with the other services.",
    "Fine, that is the usual noise.",
)
_SERVICES = ["gateway", "basket", "search", "mailer", "ledger", "images", "session", "pricing", "router"]


def _pods(w: Writer) -> Work:
    rows = [
        f"{w.one(_SERVICES)}-{w.hash(6)}   {w.any(1, 2)}/2   Running   {w.any(0, 9)}   "
        f"{w.any(1, 90)}h   10.{w.any(0, 255)}.{w.any(0, 255)}.{w.any(2, 250)}"
        for _ in range(9)
    ]
    return Work(
        "kubectl",
        {"args": f"get pods -n {w.one(('shop', 'core', 'edge'))} -o wide"},
        "\n".join(["NAME   READY   STATUS   RESTARTS   AGE   IP", *rows]),
    )


def _logs(w: Writer) -> Work:
    service = w.one(_SERVICES)
    lines = [
        f"2027-03-{w.any(1, 28):02}T{w.any(0, 23):02}:{w.any(0, 59):02}:{w.any(0, 59):02}Z "
        f"{w.one(('INFO', 'INFO', 'WARN'))} {service} "
        f"{w.one(('request done', 'cache miss', 'slow query', 'retrying', 'pool resized'))} "
        f"in {w.any(3, 900)} ms trace={w.hash(8)}"
        for _ in range(12)
    ]
    return Work("logs", {"service": service, "tail": 12}, "\n".join(lines), w.one(("", f"Now the logs of {service}.")))


def _metrics(w: Writer) -> Work:
    lines = [
        f"{name}: p50 {w.any(3, 90)} ms, p99 {w.any(90, 900)} ms, {w.any(10, 900)} req/s, errors 0.{w.any(1, 99):02} %"
        for name in w.some(_SERVICES, 8)
    ]
    return Work("metrics", {"window": f"{w.any(5, 60)}m"}, "\n".join(lines))


FILLERS = (_pods, _logs, _metrics)


def _version(w: Writer) -> Planted:
    """Which release was good: one line of a history."""
    service = w.one(_SERVICES)
    versions = [f"{w.any(1, 9)}.{w.any(0, 40)}.{w.number(100, 990)}" for _ in range(5)]
    notes = w.some(
        ("first with the new pool", "hotfix for cookies", "last known good", "experimental", "rolled back once"), 5
    )
    wanted = versions[notes.index("last known good")]
    lines = "\n".join(f"{service} {version}  ({note})" for version, note in zip(versions, notes, strict=True))
    return Planted(
        told=(Work("releases", {"service": service}, lines, w.one(("", f"What was deployed of {service}?"))),),
        check=Check(
            "tool result",
            f"Roll {service} back to the release that is marked as last known good.",
            Fact(wanted, r"\b\d\.\d+\.\d{3}\b", (service, "last known good")),
            "deploy",
            {"service": service, "version": "{}"},
            "deployed",
            (f"release of {service} marked as last known good", f"releases {service} last known good"),
        ),
    )


def _address(w: Writer) -> Planted:
    """A line of a file, among hosts with similar names."""
    base = w.one(("db", "kafka", "redis", "vault"))
    hosts = {
        f"{base}-{zone}-{n}": f"10.{w.any(0, 255)}.{w.number(0, 255)}.{w.any(2, 250)}"
        for zone in ("a", "b")
        for n in (1, 2)
    }
    wanted = w.one(list(hosts))
    return Planted(
        told=(
            Work(
                "bash",
                {"command": "cat /etc/hosts.d/cluster"},
                "\n".join(f"{ip}\t{host}" for host, ip in hosts.items()),
            ),
        ),
        check=Check(
            "file contents",
            f"Drain {wanted} now; the tool wants its address from the hosts file.",
            Fact(
                hosts[wanted],
                r"\b10(?:\.\d{1,3}){3}\b",
                patterns=(
                    rf"\b(10(?:\.\d{{1,3}}){{3}})\s+{wanted}\b",
                    rf"\b{wanted}\b\s*(?:is|=|:|at)\s*(10(?:\.\d{{1,3}}){{3}})",
                ),
            ),
            "drain",
            {"host": wanted, "address": "{}"},
            "drained",
            (f"address of {wanted}", f"{wanted} hosts file", "cat /etc/hosts.d/cluster"),
        ),
    )


def _incident(w: Writer) -> Planted:
    """An id said by a person, and another one later: the newest counts."""
    first, second = w.code(3, 5, "-"), w.code(3, 5, "-")
    what = w.one(("latency", "disk", "login", "payment"))
    return Planted(
        told=(
            Say(
                w.one(
                    (f"The {what} incident is {first}, for your notes.", f"I opened {first} for the {what} incident.")
                ),
                "Noted.",
            ),
        ),
        changed=(
            Say(
                w.one(
                    (
                        f"They merged it: the {what} incident is now {second}.",
                        f"Use {second} for the {what} incident from here, the other one was closed as a duplicate.",
                    )
                ),
                "All right.",
            ),
        ),
        check=Check(
            "corrected by a person",
            f"Post the status update on the {what} incident.",
            Fact(second, r"\b[A-Z]{3}-\d{5}\b", (rf"{what} incident",)),
            "post_update",
            {"incident": "{}", "text": "recovering"},
            "posted",
            (f"id of the {what} incident", f"{what} incident"),
        ),
    )


def _volume(w: Writer) -> Planted:
    """What a call created, in its result only."""
    service, volume, other = w.one(_SERVICES), f"vol-{w.hash(10)}", f"vol-{w.hash(10)}"
    return Planted(
        told=(
            Work("create_volume", {"for": w.one(_SERVICES) + "-old", "gib": 80}, f"created {other} (80 GiB) in zone a"),
            Work(
                "create_volume",
                {"for": f"{service}-backup", "gib": w.any(100, 900)},
                w.one((f"created {volume} for {service}-backup in zone b", f"ok: {service}-backup is {volume}")),
                f"A volume for the backup of {service}.",
            ),
        ),
        check=Check(
            "tool result",
            f"Attach the backup volume that you created for {service}.",
            Fact(volume, r"\bvol-[0-9a-f]{10}\b", (f"{service}-backup",)),
            "attach",
            {"service": service, "volume": "{}"},
            "attached",
            (f"backup volume created for {service}", f"{service}-backup create_volume"),
        ),
    )


def _limit(w: Writer) -> Planted:
    """A figure that the agent decided on, with its reason."""
    service, limit = w.one(_SERVICES), str(w.number(310, 990))
    said = w.one(
        (
            f"I would cap the connection pool of {service} at {limit}: above that the database queues.",
            f"My choice for the {service} connection pool is {limit}, a little under what the database takes.",
        )
    )
    return Planted(
        told=(Say(f"What should the pool of {service} be?", said),),
        check=Check(
            "decision of the agent",
            f"Apply the connection pool size that you chose for {service}.",
            Fact(limit, r"\b\d{3}\b", (service, "connection pool")),
            "set_config",
            {"service": service, "pool": "{}"},
            "applied",
            (f"connection pool size chosen for {service}", f"{service} connection pool"),
        ),
    )


def _command(w: Writer) -> Planted:
    """A flag in a runbook of several steps."""
    job, token = (
        w.one(("reindex", "compaction", "rebalance", "snapshot")),
        f"--{w.one(('guard', 'epoch', 'fence'))}={w.hash(6)}",
    )
    steps = [
        "1. Page the owner of the shard.",
        f"2. Stop the consumers, wait {w.any(2, 9)} minutes.",
        f"3. Start the {job} with `clusterctl {job} {token}`.",
        f"4. If it fails, `clusterctl undo --{w.one(('slow', 'fast'))}={w.hash(6)}`.",
        "5. Start the consumers.",
    ]
    return Planted(
        told=(Work("read_runbook", {"name": f"{job}-shard"}, "\n".join([f"# Runbook: {job} of a shard", *steps])),),
        check=Check(
            "file contents",
            f"Consumers are stopped. Start the {job} exactly as the runbook says.",
            Fact(token, r"--(?:guard|epoch|fence)=[0-9a-f]{6}", (rf"clusterctl {job}",)),
            "bash",
            {"command": f"clusterctl {job} {{}}"},
            "started",
            (f"how to start the {job} by the runbook", f"runbook {job} clusterctl"),
        ),
    )


FACTS = (_version, _address, _incident, _volume, _limit, _command)


def _night(w: Writer) -> Planted:
    hour = f"{w.any(20, 23)}:{w.number(11, 58)}"
    said = w.one(
        (
            f"Restarts only after {hour}, never during the day. That goes for every service.",
            f"Please never restart anything before {hour}; schedule it for that time.",
        )
    )
    return Planted(
        told=(Say(said, "Understood."),),
        check=Check(
            "rule",
            "The mailer leaks memory, restart it.",
            Fact(hour, r"\b2\d:\d\d\b", ("restart",)),
            "schedule_restart",
            {"service": "mailer", "at": "{}"},
            "scheduled",
        ),
    )


def _channel(w: Writer) -> Planted:
    channel = f"#{w.one(('ops', 'sre', 'infra'))}-{w.one(('quiet', 'night', 'core'))}-{w.number(2, 98)}"
    said = w.one(
        (
            f"Announce every deployment in {channel} first, always.",
            f"From now on you must announce deployments in {channel} before you do them.",
        )
    )
    return Planted(
        told=(Say(said, "Will do."),),
        check=Check(
            "rule",
            "Deploy search 4.2.",
            Fact(channel, r"#(?:ops|sre|infra)-[a-z]+-\d+", ("announce",)),
            "announce",
            {"channel": "{}", "text": "deploying search 4.2"},
            "posted",
        ),
    )


RULES = (_night, _channel)
