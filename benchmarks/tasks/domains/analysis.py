"""An agent that analyses data."""

from __future__ import annotations

from tasks.facts import Fact
from tasks.steps import Check, Planted, Say, Work
from tasks.writer import Writer, data, table

NAME = "analysis"
SYSTEM = "You are a data analyst with tools to run SQL and Python on a warehouse. You report figures as they are."
OPENING = (
    "We need the churn report by tonight. Look around in the warehouse first, then we decide on definitions.",
    "Please explore the sales tables with me; I will ask for the final figures at the end.",
)
ASIDES = (
    "Interesting. Keep exploring, the segments next.",
    "ok. what about the other tables?",
    "Good, I expected that. Go on.",
    "Hmm, fine. Let's look further before we conclude anything.",
)
_TABLES = ["orders", "visits", "signups", "returns", "invoices", "campaigns", "sessions", "stock"]
_REGIONS = ("north", "south", "east", "west", "islands", "capital")


def _query(w: Writer) -> Work:
    name, month = w.one(_TABLES), w.any(1, 12)
    rows = [(region, w.any(100, 9999), w.amount(), f"{w.any(1, 60)} %") for region in _REGIONS]
    return Work(
        "sql",
        {"query": f"SELECT region, count(*), avg(total), share FROM {name} WHERE month = {month} GROUP BY region"},
        table(("region", "rows", "mean", "share"), rows),
    )


def _describe(w: Writer) -> Work:
    name = w.one(_TABLES)
    rows = [
        (f"{column}_{w.any(1, 9)}", w.one(("int", "text", "date", "numeric")), f"{w.any(0, 30)} %", w.any(2, 9000))
        for column in ("id", "owner", "amount", "created", "channel", "status", "score")
    ]
    return Work(
        "describe",
        {"table": f"{name}_{w.any(2019, 2027)}"},
        table(("column", "type", "missing", "distinct"), rows),
        w.one(("", f"What is in {name}?")),
    )


def _python(w: Writer) -> Work:
    lines = [
        f"quantile {q:>3}: {w.amount()}  (n = {w.any(100, 9999)}, trimmed {w.any(1, 9)} rows)"
        for q in (5, 10, 25, 50, 75, 90, 95)
    ]
    return Work(
        "python",
        {"code": f"df = load('{w.one(_TABLES)}')\nprint(quantiles(df, by='{w.one(_REGIONS)}'))"},
        "\n".join(lines),
    )


FILLERS = (_query, _describe, _python)


def _row(w: Writer) -> Planted:
    """A figure in one row of a table."""
    segments = w.some(("students", "families", "pensioners", "freelancers", "schools", "clinics"), 5)
    counts = {segment: str(w.number(10_000, 99_000)) for segment in segments}
    wanted = w.one(segments[1:])
    return Planted(
        told=(
            Work(
                "sql",
                {"query": "SELECT segment, customers, since FROM segments"},
                table(("segment", "customers", "since"), [(s, c, w.date()) for s, c in counts.items()]),
            ),
        ),
        check=Check(
            "tool result",
            f"For the report: how many customers did the segments table have for {wanted}? Add that line.",
            Fact(counts[wanted], r"\b\d{5}\b", (wanted,)),
            "add_line",
            {"text": wanted + ": {} customers"},
            "added",
            (f"how many customers did the segments table have for {wanted}", f"segments customers {wanted}"),
        ),
    )


def _threshold(w: Writer) -> Planted:
    """A definition that is changed later by a person."""
    what = w.one(("churned", "dormant", "loyal", "at risk"))
    first, second = w.some(range(21, 190), 2)
    said = w.one(
        (
            f"Let us say a customer counts as {what} after {first} days.",
            f"Definition: {what} means {first} days without an order.",
        )
    )
    fixed = w.one(
        (
            f"The board wants it otherwise: {what} is now {second} days, please.",
            f"Sorry, new definition, {what} means {second} days instead.",
        )
    )
    return Planted(
        told=(Say(said, "Noted as our definition."),),
        changed=(Say(fixed, "Changed."),),
        check=Check(
            "corrected by a person",
            f"Now count the {what} customers, by the definition that holds.",
            Fact(str(second), r"\b\d+(?= days)", (rf"\b{what}\b",)),
            "sql",
            {"query": "SELECT count(*) FROM customers WHERE idle_days > {}"},
            "4112",
            (f"definition of {what} customers in days", f"{what} means days"),
        ),
    )


def _path(w: Writer) -> Planted:
    """Where the agent put something: in the arguments of its call."""
    what = w.one(("cleaned orders", "joined visits", "deduplicated signups"))
    path = f"/warehouse/tmp/{what.replace(' ', '_')}_{w.hash(6)}.parquet"
    return Planted(
        told=(
            Work(
                "python",
                {"code": f"# keep the {what} for later\nframe.to_parquet('{path}')"},
                "ok",
                w.one((f"I store the {what}.", "")),
            ),
        ),
        check=Check(
            "arguments of a call",
            f"Load the {what} again from the file that you stored them in.",
            Fact(
                path,
                r"/warehouse/tmp/[\w.]+\.parquet",
                patterns=(rf"(/warehouse/tmp/{what.replace(' ', '_')}_\w+\.parquet)",),
            ),
            "python",
            {"code": "frame = read_parquet('{}')"},
            "ok",
            (f"file in which the {what} are stored", f"{what} to_parquet"),
        ),
    )


def _excluded(w: Writer) -> Planted:
    """An id that a person mentions in passing."""
    why = w.one(("test account", "internal account", "duplicate account"))
    account, other = w.code(2, 5), w.code(2, 5)
    said = w.one(
        (
            f"Oh, and {account} is the {why}, leave that out at the end. {other} is a real one.",
            f"fyi the {why} in there is {account}",
            f"Somebody told me that the {why} has the id {account}.",
        )
    )
    return Planted(
        told=(Say(said, w.one(("Good to know.", "I will remember that."))),),
        check=Check(
            "said in passing",
            f"Now write the final query without the {why}.",
            Fact(account, r"\b[A-Z]{2}\d{5}\b", (why,)),
            "sql",
            {"query": "SELECT sum(total) FROM orders WHERE account <> '{}'"},
            "done",
            (f"id of the {why}", why),
        ),
    )


def _result(w: Writer) -> Planted:
    """What the agent concluded from a run, in its own words."""
    test, value, other = (
        w.one(("price test", "banner test", "newsletter test")),
        f"0.{w.number(1001, 9899)}",
        f"0.{w.number(1001, 9899)}",
    )
    said = w.one(
        (
            f"Result of the {test}: the p-value is {value}; the effect is small.",
            f"The {test} gives p = {value}, so nothing to celebrate.",
        )
    )
    return Planted(
        told=(
            Work(
                "python",
                {"code": f"run_ab('{test}')"},
                data({"test": test, "n": w.any(1000, 9000), "p": float(value), "p_adjusted": float(other)}),
            ),
            Say("And, is it significant?", said),
        ),
        check=Check(
            "decision of the agent",
            f"Write down the p-value that you reported for the {test}.",
            Fact(value, r"\b0\.\d{4}\b", (test, r"\bp\b|p-value")),
            "add_line",
            {"text": test + ": p = {}"},
            "added",
            (f"p-value of the {test}", f"{test} significant p"),
        ),
    )


def _column(w: Writer) -> Planted:
    """A name in a description of many."""
    table_name, column = (
        f"dim_{w.one(_TABLES)}_{w.any(1, 90)}",
        f"{w.one(('net', 'gross', 'adj'))}_{w.one(('rev', 'amt', 'val'))}_{w.number(10, 98)}",
    )
    rows = [
        (f"c_{w.any(1, 99)}_{word}", text)
        for word, text in (("k", "surrogate key"), ("d", "day of booking"), ("o", "owner of the row"))
    ]
    rows.insert(w.any(0, 3), (column, "revenue after discounts, in euro"))
    rows.append((f"{column}_raw", "as delivered, not for reports"))
    return Planted(
        told=(Work("describe", {"table": table_name, "comments": True}, table(("column", "comment"), rows)),),
        check=Check(
            "tool result",
            f"Sum the revenue after discounts of {table_name}, with the right column.",
            Fact(column, r"\b(?:net|gross|adj)_(?:rev|amt|val)_\d\d\b(?!_)", ("revenue after discounts",)),
            "sql",
            {"query": f"SELECT sum({{}}) FROM {table_name}"},
            "done",
            (f"column with the revenue after discounts of {table_name}", f"{table_name} describe"),
        ),
    )


FACTS = (_row, _threshold, _path, _excluded, _result, _column)


def _rounding(w: Writer) -> Planted:
    unit = f"{w.one(('kEUR', 'kUSD', 'kCHF'))}-{w.number(2, 9)}"
    said = w.one(
        (
            f"All amounts must be reported in the unit {unit}, never in plain currency.",
            f"Please always give amounts in the unit {unit}.",
        )
    )
    return Planted(
        told=(Say(said, "Understood."),),
        check=Check(
            "rule",
            "Write the total of the year into the report.",
            Fact(unit, r"\bk(?:EUR|USD|CHF)-\d", ("unit",)),
            "add_line",
            {"text": "Total: 812 {}"},
            "added",
        ),
    )


def _private(w: Writer) -> Planted:
    schema = f"sandbox_{w.one(('red', 'blue', 'green', 'grey'))}{w.number(10, 98)}"
    said = w.one(
        (
            f"Never write to the production schema; create tables only in {schema}.",
            f"Whatever you create goes into the schema {schema}, do not write anywhere else.",
        )
    )
    return Planted(
        told=(Say(said, "Got it."),),
        check=Check(
            "rule",
            "Create a table with the final figures.",
            Fact(schema, r"\bsandbox_[a-z]+\d\d\b", ("schema",), (r"only in (sandbox_\w+)",)),
            "sql",
            {"query": "CREATE TABLE {}.final AS SELECT 1"},
            "created",
        ),
    )


RULES = (_rounding, _private)
