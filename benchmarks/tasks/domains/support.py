"""An agent at a support desk."""

from __future__ import annotations

from tasks.facts import Fact
from tasks.steps import Check, Planted, Say, Work
from tasks.writer import Writer, data

NAME = "support"
SYSTEM = (
    "You assist the staff of a support desk. "
    "You look up customers, orders and articles, and act for them with your tools."
)
OPENING = (
    "Morning! We work through the backlog together: look things up as I name them, I decide, you act.",
    "Let us clear today's queue. I will hand you one case after the other, sometimes we come back to one.",
)
ASIDES = (
    "Thanks, that one can wait. Next in the queue, please.",
    "Okay. Customers are impatient today, let's keep going.",
    "Right, leave it as it is. Which one is next?",
    "good, moving on",
)
_GOODS = [
    "kettle",
    "lamp",
    "router",
    "speaker",
    "drill",
    "blender",
    "heater",
    "scanner",
    "monitor",
    "keyboard",
    "camera",
]
_MOODS = ("is annoyed", "asks politely", "wants a replacement", "sent photos", "called twice", "wants to cancel")


def _order(w: Writer) -> Work:
    order = w.code(2, 6)
    record = {
        "order": order,
        "customer": w.person(),
        "items": [{"article": w.one(_GOODS), "serial": w.code(2, 7, "-"), "price": w.amount()} for _ in range(3)],
        "shipped": w.date(),
        "paid": w.amount(100, 2000),
        "note": f"customer {w.one(_MOODS)}",
    }
    return Work("get_order", {"order": order}, data(record), w.one(("", f"Looking up {order}.")))


def _thread(w: Writer) -> Work:
    ticket, name = w.number(10_000, 99_000), w.person()
    lines = [
        f"[{w.date()}] {w.one((name, 'agent', name))}: The {w.one(_GOODS)} "
        f"{w.one(('stopped working', 'arrived broken', 'is too loud', 'was never delivered'))}; "
        f"{w.one(('please advise', 'see the photo', 'I was promised a call', 'the courier left a note'))}."
        for _ in range(9)
    ]
    return Work("read_ticket", {"ticket": ticket}, "\n".join([f"Ticket {ticket}, {name}", *lines]))


def _articles(w: Writer) -> Work:
    thing = w.one(_GOODS)
    hits = [
        f"KB-{w.number(1000, 9999)}  {w.one(('Resetting', 'Cleaning', 'Returning', 'Pairing', 'Updating'))} "
        f"the {w.one(_GOODS)} ({w.any(1, 9)} min read), viewed {w.any(20, 4000)} times"
        for _ in range(8)
    ]
    return Work("search_articles", {"words": f"{thing} problem"}, "\n".join(hits))


FILLERS = (_order, _thread, _articles, _order)


def _serial(w: Writer) -> Planted:
    """A field of one record in JSON, among records with the same fields."""
    name, things = w.person(), w.some(_GOODS, 3)
    serials = {thing: w.code(2, 7, "-") for thing in things}
    items = [{"article": thing, "serial": serial, "warranty_until": w.date()} for thing, serial in serials.items()]
    wanted = things[1]
    return Planted(
        told=(
            Work(
                "get_customer",
                {"name": name},
                data({"customer": name, "devices": items}),
                w.one(("", f"Let me see what {name} owns.")),
            ),
        ),
        check=Check(
            "tool result",
            f"Please open the warranty claim for the {wanted} of {name}, with its serial number.",
            Fact(
                serials[wanted],
                r"[A-Z]{2}-\d{7}",
                patterns=(
                    rf'(?s){name}(?:(?!customer).){{0,400}}?"?article"?: "?{wanted}"?'
                    r'[^{}]{0,20}?"?serial"?: "?([A-Z]{2}-\d{7})',
                ),
            ),
            "open_claim",
            {"customer": name, "article": wanted, "serial": "{}"},
            "claim opened",
            (f"serial number of the {wanted} of {name}", f"{name} {wanted} serial", f"{name} devices"),
        ),
    )


def _refund(w: Writer) -> Planted:
    """An amount that the agent computed and said, and that was corrected by a person."""
    name, first, second = w.person(), w.amount(), w.amount()
    said = w.one(
        (
            f"For {name} I come to a refund of {first}: the price less the used months.",
            f"The refund for {name} works out at {first}.",
        )
    )
    fixed = w.one(
        (
            f"I checked: the refund for {name} should be {second}, shipping was missing.",
            f"Correction, {name} gets a refund of {second}.",
        )
    )
    return Planted(
        told=(Say(f"What would {name} get back?", said),),
        changed=(Say(fixed, "Corrected."),),
        check=Check(
            "corrected by a person",
            f"Pay {name} the refund that we settled on.",
            Fact(second, r"\b\d+\.\d\d\b", (name, "refund")),
            "pay_refund",
            {"customer": name, "amount": "{}"},
            "paid",
            (f"refund for {name}", f"{name} refund amount agreed"),
        ),
    )


def _contact(w: Writer) -> Planted:
    """How to reach somebody, said in passing."""
    name, phone, other = w.person(), f"+49 30 {w.number(100_000, 999_999)}", f"+49 30 {w.number(100_000, 999_999)}"
    said = w.one(
        (
            f"{name} just rang: from noon on the number is {phone}. Not urgent.",
            f"Note to self, {name} can be reached at {phone}. The shop itself has {other}.",
            f"ah and {name}'s new phone: {phone}",
        )
    )
    return Planted(
        told=(Say(said, w.one(("Noted.", "Thanks."))),),
        check=Check(
            "said in passing",
            f"Ask the call centre to ring {name} back on the number we have.",
            Fact(phone, r"\+49 30 \d{6}", (name.split()[0], name.split()[1])),
            "request_call",
            {"customer": name, "phone": "{}"},
            "requested",
            (f"phone number of {name}", f"{name} phone reached"),
        ),
    )


def _article(w: Writer) -> Planted:
    """One line of a list of search results."""
    thing, error = w.one(_GOODS), f"E{w.number(100, 990)}"
    titles = [
        f"{thing.capitalize()} shows {error} after an update",
        f"{thing.capitalize()} shows E{w.number(100, 990)} when cold",
        f"Descaling the {thing}",
        f"Pairing a second {thing}",
    ]
    ids = {title: f"KB-{w.number(1000, 9999)}" for title in titles}
    lines = "\n".join(f"{i + 1}. {title} [{ids[title]}]" for i, title in enumerate(w.some(titles, 4)))
    return Planted(
        told=(Work("search_articles", {"words": f"{thing} error"}, lines, f"Is there something on {error}?"),),
        check=Check(
            "tool result",
            f"Send the customer the article about the {thing} that shows {error}.",
            Fact(ids[titles[0]], r"KB-\d{4}", (error,)),
            "send_article",
            {"article": "{}"},
            "sent",
            (f"article about the {thing} that shows {error}", error),
        ),
    )


def _case(w: Writer) -> Planted:
    """An id that a call gave back after the agent had acted."""
    name, carrier, case, other = (
        w.person(),
        w.one(("DPX", "Norline", "Hermia", "Quickpost")),
        w.code(1, 8),
        w.code(1, 8),
    )
    return Planted(
        told=(
            Work(
                "open_carrier_case",
                {"customer": w.person(), "carrier": carrier},
                f"Case {other} opened with {carrier}.",
            ),
            Work(
                "open_carrier_case",
                {"customer": name, "carrier": carrier, "reason": "parcel lost"},
                w.one((f"Case {case} opened with {carrier}.", f'{{"status": "opened", "case": "{case}"}}')),
                f"I open a case for {name} with {carrier}.",
            ),
            Say(
                f"Did that work for {name}?",
                w.one(
                    (
                        f"Yes, {carrier} gave us case {case} for {name}.",
                        f"Yes: the carrier's case for {name} is {case}.",
                    )
                ),
            ),
        ),
        check=Check(
            "decision of the agent",
            f"Ask the carrier how the case of {name} stands.",
            Fact(case, r"\b[A-Z]\d{8}\b", (name, "case")),
            "ask_carrier",
            {"case": "{}"},
            "still searching",
            (f"carrier case of {name}", f"{name} case {carrier}"),
        ),
    )


def _promise(w: Writer) -> Planted:
    """A date that the agent wrote into the arguments of a call."""
    name, day = w.person(), w.date()
    return Planted(
        told=(
            Work(
                "send_mail",
                {
                    "to": name,
                    "text": w.one(
                        (
                            f"Dear {name}, we will call you by {day} at the latest.",
                            f"Hello {name}, our technician visits you on {day}.",
                        )
                    ),
                },
                "sent",
                f"I write to {name}.",
            ),
        ),
        check=Check(
            "arguments of a call",
            f"Put a reminder into the calendar for the day that we promised {name}.",
            Fact(day, r"\b2027-\d\d-\d\d\b", (name,)),
            "add_reminder",
            {"day": "{}", "about": name},
            "added",
            (f"day that we promised {name}", f"mail to {name} call visit"),
        ),
    )


FACTS = (_serial, _refund, _contact, _article, _case, _promise)


def _approval(w: Writer) -> Planted:
    boss = w.person()
    said = w.one(
        (
            f"Whenever you pay more than 400, you must name {boss} as the approver.",
            f"Always enter {boss} as approver for payments above 400, please.",
        )
    )
    return Planted(
        told=(Say(said, "Understood."),),
        check=Check(
            "rule",
            "Pay the 650 euro credit note of the furniture shop.",
            Fact(
                boss,
                r"\b[A-Z][a-z]+ [A-Z][a-z]+\b",
                ("approver",),
                (r"name ([A-Z]\w+ [A-Z]\w+) as the approver", r"enter ([A-Z]\w+ [A-Z]\w+) as approver"),
            ),
            "pay_credit_note",
            {"amount": "650.00", "approver": "{}"},
            "paid",
        ),
    )


def _closing(w: Writer) -> Planted:
    words = f"{w.one(('Calm', 'Kind', 'Warm', 'Best'))} regards, desk {w.number(11, 98)}"
    said = w.one(
        (f'Close every mail to a customer with "{words}".', f'All mails must end with "{words}", that is policy now.')
    )
    return Planted(
        told=(Say(said, "Will do."),),
        check=Check(
            "rule",
            "Write to the lamp customer that the parcel is on its way.",
            Fact(words, r"[A-Z][a-z]+ regards, desk \d\d", ("mail",)),
            "send_mail",
            {"to": "lamp customer", "text": "Your parcel is on its way. {}"},
            "sent",
        ),
    )


RULES = (_approval, _closing)
