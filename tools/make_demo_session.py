"""Write the demo session: a long, invented coding-agent session about "harbor", a berth-booking service.

Usage: python tools/make_demo_session.py [OUT]. Same text on every machine: only `Random.random` is drawn.
"""

from __future__ import annotations

import difflib
import gzip
import json
import random
import re
import sys
from pathlib import Path
from string import Template

OUT = Path(__file__).parents[1] / "src/compact/cli/demo/session.jsonl.gz"
SYSTEM = """You are a careful software engineer working in /srv/harbor, a service that books berths in a marina.
Read before you edit, test before you claim, and say why you decided what you decided. Keep answers short.
Tools: read_file(path), write_file(path, text), edit_file(path, old, new), grep(pattern, path), bash(command)."""

LOG_LINES, TABLE_ROWS = 140, 70
MODULES = """\
bookings Booking berth_id=C-14 vessel_id=ves_204 arrives_on=2025-06-21 leaves_on=2025-06-24 status=open net_minor=92000
berths Berth pier=C length_cm=1250 depth_cm=240 status=open shore_power=yes
vessels Vessel name=Sjöglimt length_cm=1120 draught_cm=185 owner_id=cus_5TQ2 mmsi=265501230
customers Customer email=ada@example.org name=Ada phone=+46700000000 language=sv season_until=2025-09-30
invoices Invoice booking_id=bk_8841 number=INV-20931 net_minor=147200 vat_minor=36800 due_on=2025-07-15 status=sent
payments Payment invoice_id=inv_20931 provider_ref=pay_71c0 amount_minor=184000 status=captured captured_on=2025-06-17
deposits Deposit booking_id=bk_8841 amount_minor=50000 status=held release_on=2025-06-27
refunds Refund payment_id=pay_71c0 amount_minor=92000 reason=cancelled status=pending
tariffs Tariff code=T-2026-A season=2026 starts_on=2026-04-01 nightly_minor=46000 currency=SEK
tides Reading station=outer-pier observed_on=2025-06-18 level_cm=12 source=gauge
waitlist Entry customer_id=cus_5TQ2 pier=C wanted_from=2025-07-01 priority=2 status=waiting
notifications Notification customer_id=cus_5TQ2 channel=sms template=arrival send_hour=9 status=queued
exports Export kind=nightly rows=48210 checksum=9f31c0 status=done finished_on=2025-06-19
reports Report kind=occupancy pier=C period=2025-06 value_permille=871
calendar Feed booking_id=bk_8841 token=k3yf language=sv expires_on=2025-12-31
search Document kind=vessel title=Sjöglimt locale=sv boost=3
webhooks Delivery event_id=evt_55d1 provider=payfleet status=received attempts=1
audit Record actor=marit action=update subject_id=bk_8841 detail=status
"""

HEAD = '''"""The $n: storing it, finding it, changing it."""

from __future__ import annotations

import datetime as dt
import logging
from dataclasses import dataclass, replace

from harbor import clock, errors, events
from harbor.db import Session

log = logging.getLogger("harbor.$m")


@dataclass(frozen=True, slots=True)
class $N:
    """One $n, a row of the table $m."""

    id: str
$columns
    created_at: dt.datetime


def get(session: Session, ${n}_id: str) -> $N:
    """Return one $n, or raise NotFound."""
    row = session.one("SELECT * FROM $m WHERE id = :id", id=${n}_id)
    if row is None:
        raise errors.NotFound("$n", ${n}_id)
    return $N(**row)


def create(session: Session, **columns: object) -> $N:
    """Store a new $n and announce it."""
    $n = $N(id=session.next_id("$m"), created_at=clock.now(), **columns)
    session.insert("$m", $n)
    events.publish("$n.created", id=$n.id)
    return $n
'''
FIELD = '''

def find_by_$f(session: Session, $f: $t, *, limit: int = 50) -> list[$N]:
    """Every $n with this $f, newest first."""
    query = "SELECT * FROM $m WHERE $f = :value ORDER BY created_at DESC LIMIT :limit"
    return [$N(**row) for row in session.all(query, value=$f, limit=limit)]


def change_$f(session: Session, ${n}_id: str, value: $t) -> $N:
    """Change the $f of one $n and announce it; an equal value changes nothing."""
    before = get(session, ${n}_id)
    if before.$f == value:
        return before
    after = replace(before, $f=value)
    session.update("$m", after)
    events.publish("$n.${f}_changed", id=${n}_id, before=before.$f, after=value)
    log.info("$n changed", extra={"id": ${n}_id, "field": "$f"})
    return after
'''
TEST_HEAD = '''"""The $n: finding it, changing it, and what the rest of harbor hears about it."""

from __future__ import annotations

import datetime as dt

import pytest

from harbor import $imports
from tests.factories import make


def test_creation_is_stamped(session):
    assert make("$n", session).created_at <= clock.now().astimezone(dt.UTC)
'''
TEST_FIELD = """

def test_find_by_${f}_returns_newest_first(session):
    older = make("$n", session, $f=$v)
    newer = make("$n", session, $f=$v)
    assert [found.id for found in $m.find_by_$f(session, $v)] == [newer.id, older.id]


def test_change_${f}_is_announced(session, published):
    $m.change_$f(session, make("$n", session).id, $v)
    assert published[-1].name == "$n.${f}_changed"


def test_change_${f}_of_missing_${n}_raises(session):
    with pytest.raises(errors.NotFound):
        $m.change_$f(session, "missing", $v)
"""

# One block a turn. "#" ticket, modules, flags | title; ">" the person; "-" the decision; "=" the answer.
# Edits: "G fn code" puts code at the top of fn; "A code" adds a function; "S old => new"; "T name code" adds a test.
STORY = r'''
# HRB-400 bookings berths invoices payments | Survey
> Hi, I'm Marit, I run the backend of harbor. We have about a week until the summer release. Read around first and tell
> me how a booking becomes an invoice and then a payment. One rule before you start: never touch
> migrations/0007_berths.py. Production was migrated by hand and that file has to stay exactly as it is.
= A booking is a row with a berth, a vessel and two dates; an invoice points at it through booking_id, and a payment at
= the invoice through invoice_id. Modules talk through events (booking.created and so on), never by importing each
= other. Every change goes through a change_* function, so rules belong there. I will leave migrations/0007_berths.py
= alone.
# HRB-412 deposits refunds protected | Acceptance criteria
> These are the acceptance criteria for release 4.18.0 (HRB-412), due 2025-07-02:\n1. A berth is never booked twice for
> the same night.\n2. Deposits are released 3 days after departure, not before.\n3. A payment event handled twice
> changes nothing the second time.\n4. No amount is ever a float.\n5. Every rule above has a test that fails without it.
= Understood. I read deposits and refunds with these in hand: criterion 2 has no code at all yet, and nothing enforces 1
= or 3 today. I will take them one ticket at a time and point at the criterion each change serves.
# HRB-413 deposits payments | Reject float amounts
> Start with amounts. They are always in minor units (öre), never floats. Last week somebody stored 500.0 as a deposit
> for bk_8790 and accounting was not amused.
- I reject floats in change_amount_minor instead of converting them: a silent round() would hide the caller that is
- wrong.
T test_float_amount_is_refused with pytest.raises(errors.Invalid):
T \n    deposits.change_amount_minor(session, make("deposit", session).id, 500.0)
G change_amount_minor if not isinstance(value, int):\n    raise errors.Invalid("amount_minor must be an int", value)
= Done: deposits.change_amount_minor raises errors.Invalid for anything but an int (criterion 4). $tests tests pass.
# HRB-418 bookings berths | Refuse overlapping stays
> Now the ugly one. Berth C-14 was sold twice for the night of 2025-06-21: bookings bk_8841 and bk_8853. Find out how
> and make it impossible. The harbour master wants the berth id in the error.
- The check belongs beside the data: overlaps() asks the database, and a night counts as [arrives_on, leaves_on),
- because a boat may arrive on the day another one leaves. A check in the API alone would miss the phone bookings.
T test_same_night_twice_overlaps make("booking", session, berth_id="C-14", arrives_on=dt.date(2025, 6, 21))
T \nassert bookings.overlaps(session, "C-14", dt.date(2025, 6, 21), dt.date(2025, 6, 22))
A def overlaps(session: Session, berth_id: str, first: dt.date, last: dt.date) -> bool:
A \n    """Whether a live booking holds this berth on any night in [first, last)."""
A \n    stays = find_by_berth_id(session, berth_id, limit=1000)
A \n    return any(stay.arrives_on < last and first < stay.leaves_on for stay in stays if stay.status != "cancelled")
G change_berth_id if overlaps(session, value, before.arrives_on, before.leaves_on):
G \n    raise errors.Conflict("berth", value)
= Cause: nothing compared dates when a booking moved between berths; bk_8853 was moved from C-12 to C-14 by phone.
= Moving a booking onto a taken berth now raises errors.Conflict("berth", "C-14"). That is criterion 1. $tests tests
= pass.
# HRB-419 vessels search | Trim vessel names
> Good. From now on run the linter before you say you're done, CI went red on your last commit because of an import
> order. Small one next: vessel names come in with stray spaces, " Sjöglimt" is in there three times.
- I refuse untrimmed names at the door and leave the three old rows to a data fix, so that no read path has to guess.
T test_name_with_spaces_is_refused with pytest.raises(errors.Invalid):
T \n    vessels.change_name(session, make("vessel", session).id, " Sjöglimt")
G change_name if value != value.strip():\n    raise errors.Invalid("name has spaces around it", value)
= Done, and the linter is clean; I will run it before every "done" from here on. The three rows are ves_204, ves_377,
= ves_391.
# HRB-421 webhooks payments logs=2025-06-17 | Payment webhook timeouts
> Can you look at the webhook trouble of 2025-06-17, roughly 14:05 to 14:20 UTC? Payfleet says they got timeouts from us
> and sent everything again. Their case number is PF-66120. No code yet, I want to know what happened.
! TimeoutError: no connection free after 5.0 s (pool size 20)
= The pool of 20 connections ran dry: each webhook held one while it waited for the invoice lock, so Payfleet's retries
= queued behind their own first attempts. No event was lost, but 31 were handled twice (PF-66120). Two fixes follow from
= this: ignore a repeated event id, and a larger pool. I changed nothing.
# HRB-422 webhooks payments audit | Handle each payment event once
> Makes sense. Do the first: the same event id must not count twice. Keep the answer to Payfleet a 200 in that case,
> otherwise they retry for 72 hours.
- I use the stored delivery as the idempotency record rather than a cache: it survives a restart, and we already write
- it.
T test_second_delivery_is_known delivery = make("delivery", session, status="handled")
T \nassert webhooks.already_handled(session, delivery.event_id)
A def already_handled(session: Session, event_id: str) -> bool:
A \n    """Whether this event was handled already; then the answer is a plain 200."""
A \n    return any(one.status == "handled" for one in find_by_event_id(session, event_id, limit=10))
= A repeated event id is now recognised from the deliveries table and answered with 200 (criterion 3). Linter clean,
= $tests pass.
# HRB-423 payments webhooks logs=2025-06-18 config | Larger connection pool
> And the pool. Ops allows us at most 40 connections on the database harbor-db-2, the exporter needs 5 of them.
! TimeoutError: no connection free after 5.0 s (pool size 20)
- 35 for the service: 40 allowed minus 5 for the exporter. I leave the timeout at 5 s, since a longer wait only hides
- the queue.
S pool_size = 20 => pool_size = 35
= pool_size is 35 in config/harbor.toml (40 on harbor-db-2, less 5 for the exporter). Timeout unchanged at 5 s. Linter
= clean.
# HRB-425 invoices tariffs | VAT to the öre
> INV-20931 is off by one öre. VAT is 25 % on the net amount, rounded half up, per invoice and not per line. The
> auditor's example: net 147,203 gives VAT 36,801.
- Integer arithmetic only: (net * 25 + 50) // 100 rounds half up without ever making a float, in line with your rule on
- amounts.
T test_vat_rounds_half_up assert invoices.vat_for(147_203) == 36_801
A def vat_for(net_minor: int) -> int:\n    """VAT of 25 % in minor units, rounded half up."""
A \n    return (net_minor * 25 + 50) // 100
= vat_for(147_203) gives 36_801 as the auditor expects; it works per invoice, in integers. Linter clean, $tests tests
= pass.
# HRB-427 customers notifications audit | Lower-case e-mail addresses
> Customer cus_5TQ2 exists twice because of a capital letter in the e-mail. Please make that impossible. And by the way,
> never send real SMS from tests, last year that cost us 4,300 kronor.
- I refuse mixed case instead of folding it, so that the form shows the person what will be stored. No test here touches
- SMS.
T test_capital_in_email_is_refused with pytest.raises(errors.Invalid):
T \n    customers.change_email(session, make("customer", session).id, "Ada@example.org")
G change_email if value != value.lower():\n    raise errors.Invalid("email must be lower case", value)
= Done; customers.change_email refuses capitals. Noted: no real SMS from tests, the fake sender in tests/factories.py
= stays on.
# HRB-430 tides vessels berths | Clearance under the keel
> A 185 cm draught at a 210 cm berth touched ground on a low-water morning. We need a check: depth plus tide level minus
> draught must be at least 30 cm.
- A pure function with three integers in centimetres, so it can be used by the booking form and by the morning warning
- alike.
T test_touching_boat_is_not_clear assert not tides.is_clear(depth_cm=210, level_cm=-5, draught_cm=185)
A def is_clear(*, depth_cm: int, level_cm: int, draught_cm: int) -> bool:
A \n    """Whether the keel keeps its clearance."""
A \n    return depth_cm + level_cm - draught_cm >= 30
= tides.is_clear asks for at least 30 cm under the keel. The case you describe (210 - 5 - 185 = 20 cm) is refused now.
# HRB-431 waitlist customers | Season holders first
> The waiting list: season holders go first, then by date of entry. Priority 1 is season holder, 2 everybody else, there
> is no 3.
- I sort by (priority, created_at) in one place and refuse any other priority, so the order cannot depend on the caller.
T test_priority_three_is_refused with pytest.raises(errors.Invalid):
T \n    waitlist.change_priority(session, make("entry", session).id, 3)
G change_priority if value not in (1, 2):\n    raise errors.Invalid("priority is 1 (season holder) or 2", value)
A def in_order(entries: list[Entry]) -> list[Entry]:\n    """Season holders first, then whoever asked first."""
A \n    return sorted(entries, key=lambda entry: (entry.priority, entry.created_at))
= Done: in_order sorts season holders first, and a priority other than 1 or 2 is refused. Linter clean, $tests tests
= pass.
# HRB-433 exports reports logs=2025-06-19 | Slow nightly export
> Why did the nightly export take 52 minutes on 2025-06-19? It used to be 6. Only look, please, don't change anything
> yet.
! SlowQuery: SELECT * FROM bookings WHERE berth_id = :value took 64 ms (call 48210)
= One query per row: 48,210 single selects on bookings at 60 ms and more, since the export asks for each berth by
= itself. Before the June import there were 5,100 rows, hence 6 minutes. Reading in batches would remove it. Nothing
= changed so far.
# HRB-434 exports reports | Export in batches
> OK, do it in batches. 500 rows each, accounting's importer chokes above 512.
- Batches are cut by a small pure function; 500 stays below the importer's 512 and keeps one batch under 1 MB.
T test_batches_hold_500_rows assert [len(part) for part in exports.batches(list(range(1200)))] == [500, 500, 200]
A def batches(rows: list[object], size: int = 500) -> list[list[object]]:
A \n    """Cut rows into parts that the importer accepts."""
A \n    return [rows[start : start + size] for start in range(0, len(rows), size)]
= exports.batches cuts at 500 rows. On the copy of 2025-06-19 the export takes 4 min 10 s instead of 52. Linter clean.
# HRB-436 notifications customers | Quiet hours
> No text messages between 22:00 and 07:00 Stockholm time, a guest complained (ticket 90417). Mail may go out at any
> hour.
- The rule depends on the channel, so it lives in change_send_hour where both are known. Mail is left as it was, as you
- asked.
T test_sms_at_night_is_refused with pytest.raises(errors.Invalid):
T \n    notifications.change_send_hour(session, make("notification", session, channel="sms").id, 23)
G change_send_hour if before.channel == "sms" and not 7 <= value < 22:
G \n    raise errors.Invalid("quiet hours are 22 to 7", value)
= SMS are held to 07:00-22:00; mail is not affected (ticket 90417). The test uses the fake sender. Linter clean, $tests
= pass.
# HRB-437 refunds payments bookings | Refund policy
> Refund rules from the board, 2025-06-11: all of it up to 14 days before arrival, half up to 3 days before, nothing
> after. Half of an odd amount rounds in the guest's favour.
- (amount + 1) // 2 gives the guest the odd öre and stays an integer. Days are calendar days, as the board's text has no
- hours.
T test_half_favours_the_guest assert refunds.amount_for(92_001, days_before=5) == 46_001
A def amount_for(amount_minor: int, *, days_before: int) -> int:
A \n    """What the guest gets back, by the board's rules."""
A \n    if days_before >= 14:\n        return amount_minor
A \n    return (amount_minor + 1) // 2 if days_before >= 3 else 0
= refunds.amount_for follows the board's text of 2025-06-11: 14 days all, 3 days half, then nothing. $tests tests pass.
# HRB-430 tides berths vessels | Clearance is 40 cm
> Correction on the clearance: the harbour master called, it has to be 40 cm instead of 30. Forget the 30.
- One constant changes. I also looked for a second copy of the 30 and found none, so there is one place to change next
- time.
T test_35_cm_is_not_enough assert not tides.is_clear(depth_cm=220, level_cm=0, draught_cm=185)
S draught_cm >= 30 => draught_cm >= 40
= The clearance is 40 cm now; 30 is gone from the code and the tests. Linter clean, $tests tests pass.
# HRB-440 tariffs bookings | Season 2026
> Tariff T-2026-A starts on 2026-04-01, 460 kronor a night. Make sure nobody enters a start before the season's own
> year.
- 460 kronor is 46000 in nightly_minor. The guard compares with the season column, so it will hold for 2027 without a
- change.
T test_start_before_season_fails with pytest.raises(errors.Invalid):
T \n    tariffs.change_starts_on(session, make("tariff", session, season=2026).id, dt.date(2025, 4, 1))
G change_starts_on if value.year < before.season:\n    raise errors.Invalid("starts before its season", value)
= T-2026-A: 2026-04-01, nightly_minor 46000. A start before the season's year is refused. Linter clean, $tests tests
= pass.
# HRB-442 audit customers logs=2025-06-20 | No phone numbers in the audit trail
> The privacy officer found phone numbers in the audit trail of 2025-06-20. Don't log personal data, ever. Masking is
> fine, she wants the last two digits at most.
! PrivacyScan: audit.detail contains a phone number (rule PII-7, 14 rows)
- Masking happens when the record is written. Masking at display time would leave the numbers in the backups.
T test_phone_number_is_masked assert audit.masked("+46701234567") == "**********67"
A def masked(phone: str) -> str:\n    """A phone number of which only the last two digits remain."""
A \n    return "*" * (len(phone) - 2) + phone[-2:]
= audit.masked keeps two digits; 14 rows of 2025-06-20 (rule PII-7) still need a data fix by you, I don't write to
= production.
# HRB-445 deposits bookings | Release deposits after departure
> Back to the acceptance criteria: number 2, please. Departure day plus 3, and Sundays are not special.
- release_day takes the departure date and nothing else: no calendar of holidays, since you said Sundays are not
- special.
T test_deposit_waits_three_days assert deposits.release_day(dt.date(2025, 6, 24)) == dt.date(2025, 6, 27)
A def release_day(leaves_on: dt.date) -> dt.date:\n    """When the deposit goes back: 3 days after departure."""
A \n    return leaves_on + dt.timedelta(days=3)
= Criterion 2 is done: a departure on 2025-06-24 releases the deposit on 2025-06-27. Linter clean, $tests tests pass.
# HRB-447 calendar bookings search | Commas in calendar feeds
> Guests with a comma in the boat's name break our iCal feed, see feed token k3yf. RFC 5545 says how to escape.
- Backslash first, then comma and semicolon; the other way round the escapes themselves get escaped.
T test_comma_is_escaped assert calendar.escaped("Ada, Bo") == "Ada\\, Bo"
A def escaped(text: str) -> str:\n    """Text as RFC 5545 wants it in a property value."""
A \n    return text.replace("\\", "\\\\").replace(",", "\\,").replace(";", "\\;")
= Names are escaped in the feed now, feed k3yf parses again. Linter clean, $tests tests pass.
# HRB-449 reports berths bookings logs=2025-06-21 | Occupancy above 100 %
> Pier C shows 103.4 % occupancy for June. Can't be. I suspect the departure day is counted as a night. CI run 77120 has
> it too.
! AssertionError: occupancy 1034 permille on pier C (run 77120)
- You were right: the night of departure was counted. Nights are leaves_on minus arrives_on, the same half-open rule as
- overlaps().
T test_departure_is_no_night assert reports.nights(dt.date(2025, 6, 21), dt.date(2025, 6, 24)) == 3
A def nights(arrives_on: dt.date, leaves_on: dt.date) -> int:
A \n    """Nights of a stay; the day of departure is not one."""
A \n    return (leaves_on - arrives_on).days
= June on pier C is 871 permille instead of 1034. Same half-open rule as for bookings. Linter clean, $tests tests pass.
# HRB-451 bookings deposits webhooks invoices | Release check
> Last thing for today: go through the acceptance criteria once more, run everything, and tell me honestly what is still
> open before 4.18.0 goes out on 2025-07-02. Which of my rules did you have to keep in mind?
= Criteria 2 and 3 are met: deposits.release_day and webhooks.already_handled. Number 1 holds for moved bookings through
= bookings.overlaps, but create() still trusts its caller. Number 4 holds for deposits; the other *_minor columns have
= no guard yet. For 5, every rule has a test that failed first. Also open: the 14 audit rows (PII-7) and the vessel rows
= ves_204, ves_377 and ves_391. Your rules: migrations/0007_berths.py untouched, linter before "done", amounts in minor
= units, no real SMS from tests, no personal data in logs, clearance 40 cm (not 30). $tests tests pass.
'''

OPENERS = ("I'll look at {m} first.", "Let me see what {m} does today.", "Starting with {m} and whoever uses it.")
TESTS_NEXT = ("Now its tests.", "The tests tell me what is promised.", "And what do the tests say?")
NEIGHBOURS = (
    "The neighbours, to see who depends on this.",
    "Related places before I decide.",
    "What shares data with it:",
)
RED = ("The new test should fail first.", "Does it fail for the right reason?", "Red before green:")
AFTER = ("Reading it once more as it stands now.", "A look at the result.", "Checking the file after the edit.")
GREEN = ("Now the tests of this module.", "That should be green now.", "Running the module's tests.")
FULL = ("The whole suite, in case something else leaned on it.", "Everything, to be sure.", "And the full run.")
WRAP = ("Changelog and diff.", "Writing it down, then the diff.", "The changelog line, and what changed in all.")
ROWS = ("Some rows from staging, to see real values.", "What does the data look like?", "The newest rows on staging:")
VESSELS = ("Sjöglimt", "Havsbris", "Måsen", "Albatross", "Vågspel", "Nordan", "Lilla My", "Saltkråkan")
PEOPLE = ("Ada", "Bo", "Cilla", "Dag", "Elsa", "Finn", "Gunnel", "Henrik", "Ines", "Jon")
LINT = "ruff check . && ruff format --check ."
MIGRATION = '''"""Berths get depth_cm. Applied by hand in production on 2025-05-28, do not edit."""

revision = "0007"
down_revision = "0006"
statements = ["ALTER TABLE berths ADD COLUMN depth_cm integer NOT NULL DEFAULT 200"]
'''
CONFIG = """[database]
host = "harbor-db-2.internal"
pool_size = 20
pool_timeout_seconds = 5.0

[payments]
provider = "payfleet"
retry_hours = 72
"""


def module_files(line: str) -> dict[str, str]:
    """The source and the tests of one module, from its line in MODULES."""
    module, noun, *fields = line.split()
    names = {"m": module, "N": noun, "n": noun.lower(), "imports": ", ".join(sorted([module, "clock", "errors"]))}
    source, tests, columns = "", Template(TEST_HEAD).substitute(names), []
    for field in fields:
        name, sample = field.split("=")
        kind, value = "str", json.dumps(sample, ensure_ascii=False)
        if re.fullmatch(r"\d+", sample):
            kind, value = "int", sample
        elif re.fullmatch(r"\d+-\d+-\d+", sample):
            kind, value = "dt.date", "dt.date({}, {}, {})".format(*(int(part) for part in sample.split("-")))
        names |= {"f": name, "t": kind, "v": value}
        columns.append(f"    {name}: {kind}")
        source += Template(FIELD).substitute(names)
        tests += Template(TEST_FIELD).substitute(names)
    head = Template(HEAD).substitute(names, columns="\n".join(columns))
    return {f"harbor/{module}.py": head + source, f"tests/test_{module}.py": tests}


def first_files() -> dict[str, str]:
    """The repository as the agent finds it."""
    files = {"migrations/0007_berths.py": MIGRATION, "config/harbor.toml": CONFIG}
    files["CHANGELOG.md"] = "# Changelog\n\n## 4.18.0 (2025-07-02)\n\n- HRB-405: pier names\n"
    for line in MODULES.splitlines():
        files |= module_files(line)
    return files


class Session:
    """The messages so far, and the repository they are about."""

    def __init__(self) -> None:
        self.chance = random.Random(20250616)
        self.files = first_files()
        self.committed = dict(self.files)
        self.messages: list[dict] = [{"role": "system", "content": SYSTEM}]

    def below(self, limit: int) -> int:
        return int(self.chance.random() * limit)

    def pick(self, options: tuple[str, ...]) -> str:
        return options[self.below(len(options))]

    def token(self, length: int, alphabet: str = "0123456789abcdef") -> str:
        return "".join(alphabet[self.below(len(alphabet))] for _ in range(length))

    def say(self, text: str, role: str = "assistant", **extra: object) -> None:
        self.messages.append({"role": role, "content": text, **extra})

    def call(self, text: str | None, *calls: tuple) -> None:
        """One assistant message with these calls, (name, arguments[, output]), and their results right after it."""
        ids = ["call_" + self.token(24, "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789") for _ in calls]
        tool_calls = []
        for call_id, (name, arguments, *_) in zip(ids, calls, strict=True):
            function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
            tool_calls.append({"id": call_id, "type": "function", "function": function})
        self.say(text, tool_calls=tool_calls)
        for call_id, (name, arguments, *output) in zip(ids, calls, strict=True):
            content = output[0] if output else getattr(self, name)(**arguments)
            self.messages.append({"role": "tool", "content": content, "tool_call_id": call_id})

    def read_file(self, path: str) -> str:
        return self.files[path]

    def write_file(self, path: str, text: str) -> str:
        self.files[path] = text
        return f"Wrote {path}, {len(text.splitlines())} lines."

    def edit_file(self, path: str, old: str, new: str) -> str:
        if (count := self.files[path].count(old)) != 1:
            return f"error: found {count} places with this text in {path}, expected 1; nothing changed"
        self.files[path] = self.files[path].replace(old, new)
        return f"Edited {path}: {len(new.splitlines()) - len(old.splitlines()):+d} lines."

    def grep(self, pattern: str, path: str) -> str:
        hits = []
        for name in sorted(name for name in self.files if name.startswith(path)):
            for number, line in enumerate(self.files[name].splitlines(), 1):
                if re.search(pattern, line):
                    hits.append(f"{name}:{number}:{line}")
        return "\n".join(hits) or "no matches"

    def tests(self, prefix: str = "tests/") -> list[str]:
        """Every test under this prefix, as pytest names it."""
        names = sorted(name for name in self.files if name.startswith(prefix))
        return [f"{name}::{test}" for name in names for test in re.findall(r"def (test_\w+)", self.files[name])]

    def diff(self) -> str:
        """What `git diff` prints."""
        parts = []
        for name in sorted(self.files):
            before, after = self.committed.get(name, ""), self.files[name]
            if before != after:
                parts.append(f"diff --git a/{name} b/{name}")
                lines = before.splitlines(), after.splitlines()
                origin = f"a/{name}" if before else "/dev/null"
                parts += difflib.unified_diff(*lines, origin, f"b/{name}", lineterm="")
        return "\n".join(parts)


def pytest_log(session: Session, tests: list[str], failed: str = "", details: str = "") -> str:
    """What `pytest -v` prints."""
    lines = ["=" * 30 + " test session starts " + "=" * 30, "platform linux -- Python 3.12.4, pytest-8.2.2"]
    lines += ["rootdir: /srv/harbor", "configfile: pyproject.toml", f"collected {len(tests)} items", ""]
    for number, test in enumerate(tests, 1):
        outcome = "FAILED" if test == failed else "PASSED"
        lines.append(f"{test} {outcome} [{number * 100 // len(tests):3d}%]")
    seconds = f"{len(tests) // 24 + 1}.{session.below(90) + 10}s"
    if not failed:
        return "\n".join([*lines, "", "=" * 28 + f" {len(tests)} passed in {seconds} " + "=" * 28])
    return "\n".join([*lines, "", details, "=" * 26 + f" 1 failed, {len(tests) - 1} passed in {seconds} " + "=" * 26])


def failure(session: Session, test: str, error: str) -> str:
    """The long form of one failed test: its source, the error, the locals, the captured log."""
    path, name = test.split("::")
    text = session.files[path]
    start = text.index(f"def {name}(")
    source = text[start:].rstrip().splitlines()
    number = text[:start].count("\n") + len(source)
    lines = ["=" * 36 + " FAILURES " + "=" * 36, "_" * 20 + f" {name} " + "_" * 20, ""]
    lines += [f"    {line}" for line in source[:-1]] + [">" + f"   {source[-1]}", f"E   {error}", ""]
    lines += [f"session    = <harbor.db.Session harbor_test_{session.token(6)} at 0x7f{session.token(10)}>", ""]
    lines += [f"{path}:{number}: {error.split(':')[0]}", "-" * 30 + " Captured log setup " + "-" * 30]
    for step in range(1, 8):
        lines.append(f"INFO     harbor.db:db.py:118 migration 000{step} applied in {session.below(40) + 3} ms")
    for _ in range(6):
        lines.append(f"DEBUG    harbor.db:db.py:64 query {session.token(8)} returned {session.below(9)} rows")
    return "\n".join([*lines, "-" * 30 + " short test summary info " + "-" * 30, f"FAILED {test} - {error}"])


def log_dump(session: Session, modules: list[str], day: str, error: str, count: int) -> str:
    """JSON log lines of a quarter of an hour on which something went wrong."""
    lines, late = [], error.startswith("Timeout")
    for number in range(count):
        millis = number * 900_000 // count + session.below(700)
        bad = session.below(7) == 0
        module = modules[session.below(len(modules))]
        record = {
            "ts": f"{day}T14:{5 + millis // 60_000:02d}:{millis // 1000 % 60:02d}.{millis % 1000:03d}Z",
            "level": ("ERROR" if late else "WARNING") if bad else "INFO",
            "logger": f"harbor.{module}",
            "request_id": f"req_{session.token(10)}",
            "path": f"/v1/{module}/{session.below(9000) + 1000}",
            "status": 503 if bad and late else 200,
            "duration_ms": 5000 + session.below(90) if bad and late else 12 + session.below(480),
        }
        lines.append(json.dumps(record | ({"error": error} if bad else {})))
    return "\n".join(lines)


def cell(session: Session, field: str) -> str:
    """A plausible value for one field of MODULES, near its sample."""
    name, sample = field.split("=")
    if name in ("name", "title"):
        return session.pick(PEOPLE if sample == "Ada" else VESSELS)
    if name == "email":
        return f"{session.pick(PEOPLE).lower()}{session.below(90) + 10}@example.org"
    if name == "status":
        return session.pick((sample, sample, sample, "closed"))
    if re.fullmatch(r"\d+-\d+-\d+", sample):
        return f"{sample[:8]}{session.below(13) + (16 if name == 'leaves_on' else 1):02d}"
    if name.endswith("_minor"):
        return str((session.below(380) + 20) * 500)
    if re.search(r"\b20\d\d", sample):
        return sample
    return re.sub(r"\d{2}\b", lambda _: f"{session.below(90) + 10}", sample)


def table(session: Session, module: str, count: int) -> str:
    """What `psql` prints for the newest rows of one table."""
    fields = next(line for line in MODULES.splitlines() if line.startswith(f"{module} ")).split()[2:]
    prefix = "bk" if module == "bookings" else module[:3]
    rows = [["id", *(field.split("=")[0] for field in fields)]]
    for number in range(count):
        row_id = f"{prefix}_{9400 - number * 3 - session.below(3)}"
        rows.append([row_id, *(cell(session, field) for field in fields)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [" | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-+-".join("-" * width for width in widths), *lines[1:], f"({count} rows)"])


def parse_story() -> list[dict]:
    """The turns of STORY: ticket, modules, flags, title, and the joined text of every marker."""
    turns: list[dict] = []
    for line in STORY.strip().splitlines():
        mark, rest = line[0], line[2:]
        if mark == "#":
            words, title = rest.split(" | ")
            ticket, *names = words.split()
            flags = dict([*name.split("="), ""][:2] for name in names if name in ("config", "protected") or "=" in name)
            modules = [name for name in names if name.split("=")[0] not in flags]
            turns.append({"ticket": ticket, "title": title, "modules": modules, "flags": flags})
        else:
            turns[-1][mark] = f"{turns[-1][mark]} {rest}" if mark in turns[-1] else rest
    for turn in turns:
        for mark in ">-=TGAS":
            if mark in turn:
                turn[mark] = turn[mark].replace(" \\n", "\n").replace("\\n", "\n")
    return turns


def indented(code: str) -> str:
    return "".join(f"    {line}\n" for line in code.splitlines())


def appended(session: Session, path: str, code: str) -> dict[str, str]:
    """The edit that puts a function at the end of a file."""
    lines = session.files[path].splitlines(keepends=True)
    count = next(n for n in range(2, len(lines)) if session.files[path].count("".join(lines[-n:])) == 1)
    old = "".join(lines[-count:])
    return {"path": path, "old": old, "new": f"{old}\n\n{code}\n"}


def guarded(session: Session, path: str, name: str, code: str) -> dict[str, str]:
    """The edit that puts a check at the top of a function, after the lines the check needs."""
    text = session.files[path]
    lines = text[text.index(f"def {name}(") :].splitlines(keepends=True)
    old = "".join(lines[: 3 if "before." in code else 2])
    return {"path": path, "old": old, "new": old + indented(code)}


def source_edits(session: Session, turn: dict) -> list[dict[str, str]]:
    """The edits of this turn outside the tests."""
    path, edits = f"harbor/{turn['modules'][0]}.py", []
    if "A" in turn:
        edits.append(appended(session, path, turn["A"]))
    if "G" in turn:
        name, code = turn["G"].split(" ", 1)
        edits.append(guarded(session, path, name, code))
    if "S" in turn:
        old, new = turn["S"].split(" => ")
        edits.append({"path": "config/harbor.toml" if "config" in turn["flags"] else path, "old": old, "new": new})
    return edits


def explore(session: Session, turn: dict) -> None:
    """Read what the turn is about."""
    module, *others = turn["modules"]
    pattern = {"G": turn.get("G", "").split(" ")[0], "S": turn.get("S", "").split(" => ")[0]}
    word = pattern["G"] or pattern["S"] or f"{module}\\.|import {module}"
    read = ("read_file", {"path": f"harbor/{module}.py"})
    session.call(session.pick(OPENERS).format(m=f"harbor/{module}.py"), ("grep", {"pattern": word, "path": ""}), read)
    session.call(session.pick(TESTS_NEXT), ("read_file", {"path": f"tests/test_{module}.py"}))
    session.call(session.pick(NEIGHBOURS), *(("read_file", {"path": f"harbor/{other}.py"}) for other in others))
    session.call(None, ("read_file", {"path": f"tests/test_{others[0]}.py"}))
    query = f'psql harbor_staging -c "SELECT * FROM {module} ORDER BY id DESC LIMIT {TABLE_ROWS}"'
    session.call(session.pick(ROWS), ("bash", {"command": query}, table(session, module, TABLE_ROWS)))
    if day := turn["flags"].get("logs"):
        command = f"harborctl logs --since {day}T14:05Z --until {day}T14:20Z --json"
        dump = log_dump(session, turn["modules"], day, turn["!"], LOG_LINES)
        session.call(f"The logs of {day}.", ("bash", {"command": command}, dump))
        count = f"{dump.count(turn['!'])} {turn['!']}"
        session.call(None, ("bash", {"command": f"{command} | jq -r '.error // empty' | sort | uniq -c"}, count))


def red(session: Session, turn: dict) -> None:
    """Write the test and see it fail."""
    module = turn["modules"][0]
    name, code = turn["T"].split(" ", 1)
    arguments = "session" if "session" in code else ""
    path = f"tests/test_{module}.py"
    body = f"def {name}({arguments}):\n{indented(code)}".rstrip()
    session.call(turn["-"], ("edit_file", appended(session, path, body)))
    error = "AssertionError: assert not True"
    if raised := re.search(r"raises\((errors\.\w+)", code):
        error = f"Failed: DID NOT RAISE <class 'harbor.{raised[1]}'>"
    elif "A" in turn:
        missing = re.search(r"def (\w+)", turn["A"])
        error = f"AttributeError: module 'harbor.{module}' has no attribute '{missing and missing[1]}'"
    test = f"{path}::{name}"
    output = pytest_log(session, session.tests(path), test, failure(session, test, error))
    session.call(session.pick(RED), ("bash", {"command": f"pytest -v --showlocals {path}"}, output))


def green(session: Session, turn: dict, number: int) -> None:
    """Make the change and see the tests pass."""
    module = turn["modules"][0]
    text = None if "T" in turn else turn["-"]
    for index, edit in enumerate(source_edits(session, turn)):
        typo = edit["old"].replace("log.info", "logger.info").replace(" and announce it", "")
        if number % 6 == 3 and index == 0 and typo != edit["old"]:
            session.call(text, ("edit_file", edit | {"old": typo}))
            text = "My copy of that passage was off. Reading the file again before I retry."
            session.call(text, ("read_file", {"path": edit["path"]}))
            text = None
        session.call(text, ("edit_file", edit))
        text = None
        session.call(session.pick(AFTER), ("read_file", {"path": edit["path"]}))
    path = f"tests/test_{module}.py"
    output = pytest_log(session, session.tests(path))
    session.call(session.pick(GREEN), ("bash", {"command": f"pytest -v {path}"}, output))


def wrap_up(session: Session, turn: dict, number: int) -> None:
    """Run everything, lint, note, and commit."""
    if "$tests" in turn["="] or "T" not in turn:
        session.call(session.pick(FULL), ("bash", {"command": "pytest -v"}, pytest_log(session, session.tests())))
    if number >= 4:
        clean = f"All checks passed!\n{sum(name.endswith('.py') for name in session.files)} files already formatted"
        session.call("The linter, as you asked.", ("bash", {"command": LINT}, clean))
    heading = "## 4.18.0 (2025-07-02)\n\n"
    line = {"path": "CHANGELOG.md", "old": heading, "new": f"{heading}- {turn['ticket']}: {turn['title'].lower()}\n"}
    calls: list[tuple] = [("edit_file", line)]
    if number % 3 == 0:
        note = f"# {turn['title']} ({turn['ticket']})\n\n{turn['-']}\n"
        calls.append(("write_file", {"path": f"docs/decisions/{turn['ticket'].lower()}.md", "text": note}))
    session.call(session.pick(WRAP), *calls)
    diff = session.diff()
    session.call(None, ("bash", {"command": "git add -A && git diff --cached"}, diff))
    if number % 4 == 0:
        session.say("That is the whole change. Shall I commit it?")
        session.say(session.pick(("Yes, commit it.", "Looks good, go ahead.", "Fine by me, commit.")), "user")
    message = f"{turn['ticket']}: {turn['title']}"
    added, changed = diff.count("\n+") - diff.count("\n+++"), diff.count("diff --git")
    output = f"[main {session.token(7)}] {message}\n {changed} files changed, {added} insertions(+)"
    session.call(None, ("bash", {"command": f'git commit -m "{message}"'}, output))
    session.committed = dict(session.files)


def play(session: Session, turn: dict, number: int) -> None:
    """One turn of the story, from the request to the answer."""
    mark = {"meta": {"protected": True, "label": "acceptance criteria"}} if "protected" in turn["flags"] else {}
    session.say(turn[">"], "user", **mark)
    explore(session, turn)
    if "T" in turn:
        red(session, turn)
    if "-" in turn:
        green(session, turn, number)
        wrap_up(session, turn, number)
    elif "logs" not in turn["flags"]:
        paths = ("migrations/0007_berths.py", "config/harbor.toml", "CHANGELOG.md")
        session.call("Configuration and history.", *(("read_file", {"path": path}) for path in paths))
        session.call(session.pick(FULL), ("bash", {"command": "pytest -v"}, pytest_log(session, session.tests())))
    session.say(turn["="].replace("$tests", str(len(session.tests()))))


def generate() -> list[dict]:
    """Every message of the session, in Chat Completions form."""
    session = Session()
    for number, turn in enumerate(parse_story()):
        play(session, turn, number)
    return session.messages


def serialise(messages: list[dict]) -> bytes:
    """One message a line, as UTF-8 JSON."""
    return "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in messages).encode()


def main() -> None:
    """Write the file and say how large it is."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    messages = generate()
    text = serialise(messages)
    out.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{out}: {len(messages)} messages, {len(text.decode())} characters, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
