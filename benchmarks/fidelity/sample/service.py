"""A service agent: works through the bookings of customers, keeps to policies, and comes back to earlier cases."""

from __future__ import annotations

import json
from dataclasses import dataclass

from fidelity.sample.script import Script, Session

SYSTEM = "You help the staff of a travel desk. You have tools to look up customers, bookings and policies."
_CASES = 13


@dataclass(frozen=True, slots=True)
class Case:
    """What one customer wants, and what was found."""

    customer: str
    customer_id: str
    booking: str
    other_booking: str
    place: str
    date: str
    paid: str
    fee: str
    rule: str
    rule_text: str
    wish: str
    part_code: str


class ServiceSession(Session):
    """One session of such an agent."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self.desk = self.words.code(2, 3)
        self.manager = self.words.person()
        self.phrase = f"{self.words.word()} {self.words.word()}"
        self.cases: list[Case] = []

    def write(self) -> None:
        script = self.script
        script.system(SYSTEM)
        script.user(
            f"We work through the open cases of desk {self.desk} today, one customer after the other.\n"
            f"Refunds above 400 need a yes from {self.manager}; tell me before you pay one out.\n"
            f'Close every note to a customer with "{self.phrase}".\n'
            "Never change a date without asking me first."
        )
        script.agent(f"Understood. I am ready for the first case of {self.desk}.")
        for number in range(_CASES):
            self._new_case()
            if number >= 2:
                self._come_back()
            if number >= 5 and script.happens(0.7):
                self._come_back()
        self._finish()

    def _new_case(self) -> None:
        script, words = self.script, self.words
        kind, fee = words.word(), words.price()
        case = Case(
            customer=words.person(),
            customer_id=f"{words.word()}_{words.word()}_{words.number()}",
            booking=words.code(),
            other_booking=words.code(),
            place=words.word().capitalize(),
            date=words.date(),
            paid=words.price(),
            fee=fee,
            rule=f"{words.code(1, 2)}-{words.number()}",
            rule_text=f"A {kind} booking that is given back costs {fee} and is paid within {words.number()} hours.",
            wish=kind,
            part_code=words.code(2, 5),
        )
        wish = script.one(
            (
                f"The next one is {case.customer}: the {case.wish} trip cannot take place.",
                f"{case.customer} writes that the {case.wish} room was not as described.",
                f"Then {case.customer}, who wants the {case.wish} seats back that were booked twice.",
            )
        )
        script.user(wish)
        script.call("find_customer", {"name": case.customer}, self._customer(case))
        script.call("get_booking", {"booking": case.booking}, self._booking(case))
        script.call(
            "read_policy",
            {"topic": case.wish},
            self._policy(case),
            said=script.one((f"The booking to {case.place} was paid with {case.paid}.", "I look up the rule.", "")),
        )
        self.cases.append(case)
        self._decide(case)

    def _decide(self, case: Case) -> None:
        script = self.script
        script.agent(
            script.one(
                (
                    f"Rule {case.rule} holds for {case.booking}: a fee of {case.fee} is due, the rest goes back. "
                    f"Shall I do that for {case.customer}?",
                    f"There is a rule for {case.wish} bookings: a fee is due, the rest goes back. Shall I do that?",
                )
            )
        )
        if script.happens(0.5):
            script.user(script.one(("Yes, please.", "Yes, go on.", "All right, do it.")))
            arguments = {"booking": case.booking, "fee": case.fee, "reason": f"{case.wish}, rule {case.rule}"}
            script.call(
                "cancel_booking", arguments, json.dumps({"status": "cancelled", "receipt": self.words.code(4, 6)})
            )
            script.agent(script.one((f"{case.booking} is cancelled.", "That is done.")))
        else:
            held = f"Wait with that one; {case.customer.split()[0]} will call before {self.words.date()}."
            script.user(
                script.one((held, f"Not yet, I ask about {self.words.word()} first.", "Leave it open for now."))
            )
            script.agent(script.one((f"{case.booking} stays open.", "It stays open.")))

    def _come_back(self) -> None:
        ways = (self._pay_out, self._write_a_note, self._explain, self._second_booking, self._status, self._claim)
        self.script.one(ways)()

    def _pay_out(self) -> None:
        case = self.script.again(self.cases)
        self._refer(case, "now wants the money")
        arguments = {"customer": case.customer_id, "booking": case.booking, "amount": case.paid}
        self.script.call("pay_out", arguments, json.dumps({"status": "ok", "receipt": self.words.code(4, 6)}))
        self.script.agent(f"Paid out. It is above the limit, so {self.manager} has to agree.")

    def _write_a_note(self) -> None:
        case = self.script.again(self.cases)
        self._refer(case, "needs that in writing")
        text = (
            f"Dear {case.customer}, your booking {case.booking} to {case.place} on {case.date} is being handled.\n"
            f"{case.rule_text}\n{self.phrase}"
        )
        self.script.call("send_note", {"customer": case.customer_id, "text": text}, "sent")

    def _explain(self) -> None:
        case = self.script.again(self.cases)
        self._refer(case, "asks why there is a fee")
        self.script.agent(f"Because of {case.rule}:\n{case.rule_text}\nOf {case.paid}, {case.fee} stays here.")

    def _second_booking(self) -> None:
        case = self.script.again(self.cases)
        self._refer(case, "had a second booking, have a look")
        result = json.dumps({"booking": case.other_booking, "rooms": self.words.words(3), "seats": self.words.number()})
        self.script.call("get_booking", {"booking": case.other_booking}, result)
        self.script.agent("That one is untouched.")

    def _claim(self) -> None:
        """A code that only a result had."""
        case = self.script.again(self.cases)
        self._refer(case, "was charged for a part that was missing")
        arguments = {"booking": case.booking, "part": case.part_code}
        self.script.call("open_claim", arguments, json.dumps({"status": "open", "claim": self.words.code(2, 6)}))
        self.script.agent(f"I opened a claim for {case.part_code} on {case.date}.")

    def _status(self) -> None:
        self.script.user("Which ones have we had? Just the short list.")
        chosen = self.script.several(self.cases, 4)
        self.script.agent("\n".join(f"- {case.booking}, {case.customer} ({case.wish})" for case in chosen))

    def _refer(self, case: Case, what: str) -> None:
        """The user names a case in passing, without its ids."""
        place = self.cases.index(case) + 1
        way = self.script.one((f"Case number {place}", "The one from before", f"{case.customer.split()[0]}"))
        self.script.user(f"{way} {what}.")

    def _finish(self) -> None:
        script = self.script
        chosen = script.several(self.cases, 6)
        lines = [f"{c.booking} {c.customer_id}: {c.wish}, {c.rule}, fee {c.fee}" for c in chosen]
        script.user("That was the last one. Please write the report of the day.")
        text = "\n".join([f"Desk {self.desk}, for {self.manager}", *lines, self.phrase])
        script.call("write_report", {"text": text}, "saved")
        script.agent(f"The report for {self.desk} is saved.")

    def _customer(self, case: Case) -> str:
        words = self.words
        trips = [
            {"booking": words.code(), "to": words.word().capitalize(), "on": words.date(), "paid": words.price()}
            for _ in range(5)
        ]
        trips[1]["booking"], trips[3]["booking"] = case.booking, case.other_booking
        data = {"name": case.customer, "id": case.customer_id, "email": f"{words.word()}@{words.word()}.example"}
        return json.dumps({**data, "street": f"{words.word().capitalize()} {words.number()}", "trips": trips}, indent=1)

    def _booking(self, case: Case) -> str:
        words = self.words
        parts = [
            {"part": words.word(), "code": words.code(2, 5), "price": words.price(), "from": words.word()}
            for _ in range(5)
        ]
        parts[2]["code"] = case.part_code
        data = {"booking": case.booking, "to": case.place, "on": case.date, "paid": case.paid, "kind": case.wish}
        return json.dumps({**data, "parts": parts, "agency": words.word()}, indent=1)

    def _policy(self, case: Case) -> str:
        words = self.words
        rules = [
            f"{words.code(1, 2)}-{words.number()}\nFor a {words.word()} booking the {words.word()} office keeps "
            f"{words.price()}, and {words.price()} if it was made through {words.word()}."
            for _ in range(5)
        ]
        rules.insert(self.script.random.randrange(len(rules)), f"{case.rule}\n{case.rule_text}")
        return "\n\n".join(rules)
