"""An agent that books trips."""

from __future__ import annotations

from tasks.facts import Fact
from tasks.steps import Check, Planted, Say, Work
from tasks.writer import Writer, data, table

NAME = "travel"
SYSTEM = (
    "You are the booking agent of a travel desk. You search flights, hotels and trains, and book what people decide on."
)
OPENING = (
    "We plan the autumn tour of the orchestra. Search first, I will decide as we go.",
    "Hello! A long list of trips for the sales team today, let us start searching.",
)
ASIDES = (
    "Hm, too expensive. Look for others please.",
    "okay, keep that in mind. What else is there?",
    "Nice. The next leg, please.",
    "Not bad. Go on with the hotels then.",
)
_CITIES = ["Lisbon", "Ghent", "Turin", "Malmo", "Krakow", "Graz", "Bergen", "Porto", "Aarhus", "Basel", "Split", "Riga"]


def _flights(w: Writer) -> Work:
    start, end = w.some(_CITIES, 2)
    rows = [
        (
            w.code(2, 4),
            f"{w.any(5, 22):02}:{w.any(10, 55)}",
            f"{w.any(1, 9)}h{w.any(10, 55)}",
            w.amount(),
            w.one(("direct", "1 stop")),
        )
        for _ in range(8)
    ]
    return Work(
        "search_flights",
        {"from": start, "to": end, "day": w.date()},
        table(("flight", "departs", "takes", "price", "stops"), rows),
        w.one(("", f"Searching {start} to {end}.")),
    )


def _hotels(w: Writer) -> Work:
    city = w.one(_CITIES)
    found = [
        {
            "hotel": f"{w.one(('Grand', 'Park', 'Harbour', 'Station', 'Old Town'))} {city} {w.any(1, 40)}",
            "rate": w.amount(),
            "stars": w.any(2, 5),
            "breakfast": w.one((True, False)),
        }
        for _ in range(5)
    ]
    return Work("search_hotels", {"city": city, "nights": w.any(1, 5)}, data(found))


def _trains(w: Writer) -> Work:
    start, end = w.some(_CITIES, 2)
    lines = [
        f"{w.any(5, 22):02}:{w.any(10, 55)} {start} -> {end}, {w.any(0, 3)} changes, "
        f"{w.amount()} EUR, train {w.any(100, 999)}, platform {w.any(1, 20)}"
        for _ in range(10)
    ]
    return Work("search_trains", {"from": start, "to": end}, "\n".join(lines))


FILLERS = (_flights, _hotels, _trains)


def _confirmation(w: Writer) -> Planted:
    """What a booking gave back, beside another booking."""
    name, city, code, other = w.person(), w.one(_CITIES), w.code(6, 0), w.code(6, 0)
    return Planted(
        told=(
            Work("book_hotel", {"guest": w.person(), "city": city}, f"booked, confirmation {other}"),
            Work(
                "book_hotel",
                {"guest": name, "city": city, "nights": w.any(1, 5)},
                w.one(
                    (
                        f"booked for {name}, confirmation {code}",
                        f'{{"guest": "{name}", "confirmation": "{code}", "state": "booked"}}',
                    )
                ),
                f"I book the hotel in {city} for {name}.",
            ),
        ),
        check=Check(
            "tool result",
            f"Cancel the hotel of {name}, please; the tool wants the confirmation.",
            Fact(
                code,
                r"\b[A-Z]{6}\b",
                (name, "confirmation"),
                (rf'"guest": "{name}",\s*"confirmation": "([A-Z]{{6}})"',),
            ),
            "cancel_hotel",
            {"confirmation": "{}"},
            "cancelled",
            (f"confirmation of the hotel of {name}", f"{name} hotel booked confirmation"),
        ),
    )


def _loyalty(w: Writer) -> Planted:
    """A number said in passing."""
    name, number, other = w.person(), w.code(2, 8), w.code(2, 8)
    said = w.one(
        (
            f"{name} collects miles, the card is {number}. My own is {other}, not needed here.",
            f"miles card of {name}: {number}",
            f"By the way, {name} has the frequent flyer card {number}.",
        )
    )
    return Planted(
        told=(Say(said, w.one(("Noted.", "Thanks, I have it."))),),
        check=Check(
            "said in passing",
            f"Book {name} on the morning flight and add the frequent flyer card.",
            Fact(number, r"\b[A-Z]{2}\d{8}\b", (name, "card")),
            "book_flight",
            {"guest": name, "card": "{}"},
            "booked",
            (f"frequent flyer card of {name}", f"{name} card miles"),
        ),
    )


def _choice(w: Writer) -> Planted:
    """A flight that the agent recommends, and the person replaces by another one."""
    (start, end), first, second = w.some(_CITIES, 2), w.code(2, 4), w.code(2, 4)
    said = w.one(
        (f"For {start} to {end} I suggest {first}, the only direct one.", f"My pick from {start} to {end} is {first}.")
    )
    fixed = w.one(
        (
            f"The conductor prefers {second} from {start} to {end}, so we take that one.",
            f"{start} to {end}: please {second} instead, it leaves later.",
        )
    )
    return Planted(
        told=(Say(f"Which flight would you take from {start} to {end}?", said),),
        changed=(Say(fixed, "Changed."),),
        check=Check(
            "corrected by a person",
            f"Book the flight from {start} to {end} that we decided on.",
            Fact(second, r"\b[A-Z]{2}\d{4}\b", (rf"{start} to {end}",)),
            "book_flight",
            {"flight": "{}"},
            "booked",
            (f"flight from {start} to {end} that we decided on", f"{start} {end} flight instead prefers"),
        ),
    )


def _passport(w: Writer) -> Planted:
    """A field of a profile; others have the same field."""
    names = [w.person() for _ in range(4)]
    expiry = {name: w.date() for name in names}
    people = [
        {"name": name, "passport_expires": day, "seat": w.one(("aisle", "window"))} for name, day in expiry.items()
    ]
    wanted = w.one(names[1:])
    return Planted(
        told=(
            Work(
                "get_profiles",
                {"group": f"section {w.any(1, 9)}"},
                data(people),
                w.one(("", "Let me see the profiles.")),
            ),
        ),
        check=Check(
            "tool result",
            f"Fill in the visa form of {wanted}: it asks when the passport expires.",
            Fact(
                expiry[wanted],
                r"\b2027-\d\d-\d\d\b",
                patterns=(rf'{wanted}"?,?\s*"?passport_expires"?: "?(2027-\d\d-\d\d)',),
            ),
            "visa_form",
            {"name": wanted, "passport_expires": "{}"},
            "saved",
            (f"when does the passport of {wanted} expire", f"{wanted} passport expires"),
        ),
    )


def _venue(w: Writer) -> Planted:
    """An address in a longer mail."""
    city, street = w.one(_CITIES), f"{w.one(('Canal', 'Mill', 'Castle', 'Abbey'))} Street {w.number(11, 290)}"
    mail = (
        f"From: {w.person()}\nSubject: dates in {city}\n\nDear all,\n"
        "we look forward to the evening. The dress code is dark.\n"
        f"The rehearsal in {city} is at {street}, second floor.\n"
        f"The hotel bar is at {w.one(('Canal', 'Mill', 'Castle'))} Lane {w.any(1, 90)}.\n"
        f"Parking costs {w.amount(5, 30)} a day.\nKind regards"
    )
    return Planted(
        told=(Work("read_mail", {"about": f"dates in {city}"}, mail, w.one(("", f"There is a mail about {city}."))),),
        check=Check(
            "tool result",
            f"Order the taxi to the rehearsal in {city}.",
            Fact(street, r"\b[A-Z]\w+ Street \d+", (rf"rehearsal in {city}",)),
            "order_taxi",
            {"to": "{}, " + city},
            "ordered",
            (f"where is the rehearsal in {city}", f"rehearsal {city} street"),
        ),
    )


def _hold(w: Writer) -> Planted:
    """A group name that the agent itself chose in its call."""
    city, group = w.one(_CITIES), f"GRP-{w.one(('OBOE', 'VIOLA', 'HORN', 'CELLO'))}-{w.number(11, 98)}"
    return Planted(
        told=(
            Work(
                "hold_rooms",
                {"city": city, "rooms": w.any(8, 40), "group_code": group},
                "held until noon",
                f"I hold rooms in {city}.",
            ),
        ),
        check=Check(
            "arguments of a call",
            f"Release the rooms that you hold in {city}; the desk wants the group code.",
            Fact(
                group,
                r"\bGRP-[A-Z]+-\d\d\b",
                patterns=(
                    rf"(?s)city\W+{city}(?:(?!hold_rooms).){{0,60}}?(GRP-[A-Z]+-\d\d)",
                    rf"(?s)hold(?:_rooms| rooms)[^\n]*{city}.{{0,60}}?(GRP-[A-Z]+-\d\d)",
                ),
            ),
            "release_rooms",
            {"group_code": "{}"},
            "released",
            (f"group code of the rooms held in {city}", f"hold_rooms {city} group code"),
        ),
    )


FACTS = (_confirmation, _loyalty, _choice, _passport, _venue, _hold)


def _cost_centre(w: Writer) -> Planted:
    centre = f"CC-{w.number(1100, 9800)}"
    said = w.one(
        (
            f"Every booking must go on cost centre {centre}, no exceptions.",
            f"Please always charge bookings to cost centre {centre}.",
        )
    )
    return Planted(
        told=(Say(said, "Understood."),),
        check=Check(
            "rule",
            "Book the 9:40 train to Basel for two.",
            Fact(centre, r"\bCC-\d{4}\b", ("cost centre",)),
            "book_train",
            {"to": "Basel", "cost_centre": "{}"},
            "booked",
        ),
    )


def _cap(w: Writer) -> Planted:
    cap = str(w.number(111, 289))
    said = w.one(
        (
            f"No hotel above {cap} a night, ever; that is the travel policy.",
            f"Never book a hotel that costs more than {cap} a night.",
        )
    )
    return Planted(
        told=(Say(said, "Got it."),),
        check=Check(
            "rule",
            "Find us a hotel in Riga, and set the price limit right away.",
            Fact(cap, r"\b\d{3}\b", ("hotel", "a night")),
            "search_hotels",
            {"city": "Riga", "max_rate": "{}"},
            "none left",
        ),
    )


RULES = (_cost_centre, _cap)
