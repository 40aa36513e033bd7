"""Two prompts side by side: each figure is that of the calls themselves."""

from __future__ import annotations

from typing import Any

from viewer.seeding import BUSY, UNDONE
from viewer.serving import Running, part


def prompt_of(api: Running, session: str, number: int) -> list[dict[str, Any]]:
    return api.get(f"/api/sessions/{part(session)}/calls/{number}", limit=1_000)["slots"]


def compared(api: Running, a: str, a_call: int | str, b: str, b_call: int | str, **query: Any) -> dict[str, Any]:
    return api.get("/api/compare", a=a, a_call=a_call, b=b, b_call=b_call, only="all", limit=1_000, **query)


def said(slot: dict[str, Any]) -> tuple[str, str, tuple[tuple[str, str], ...]]:
    return slot["role"], slot["text"], tuple((call["name"], call["arguments"]) for call in slot["tool_calls"])


def first_call_under(api: Running, session: str, version: int) -> int:
    plans = api.get(f"/api/sessions/{part(session)}")["plans"]
    return next(plan["first_call"] for plan in plans if plan["version"] == version)


def test_both_prompts_are_told_whole_and_in_their_order(api: Running) -> None:
    after = first_call_under(api, BUSY, 3)
    answer = compared(api, BUSY, after - 1, BUSY, after)
    for side, number in (("a", after - 1), ("b", after)):
        places = [row[side]["place"] for row in answer["rows"] if row[side]]
        assert places == [slot["place"] for slot in prompt_of(api, BUSY, number)]
        assert answer[side]["tokens"] == api.get(f"/api/sessions/{BUSY}/calls/{number}")["tokens"]


def test_what_is_the_same_is_found_and_counted(api: Running) -> None:
    after = first_call_under(api, BUSY, 3)
    left, right = prompt_of(api, BUSY, after - 1), prompt_of(api, BUSY, after)
    answer = compared(api, BUSY, after - 1, BUSY, after)
    changes = {row["change"] for row in answer["rows"]}
    assert {"same", "only_a", "only_b"} <= changes, "a compaction takes messages out and puts a summary in"
    for row in answer["rows"]:
        a, b = row["a"], row["b"]
        if row["change"] == "same":
            assert said(left[a["place"]]) == said(right[b["place"]])
        elif row["change"] == "changed":
            assert a["ids"] == b["ids"]
            assert said(left[a["place"]]) != said(right[b["place"]])
    same = [row for row in answer["rows"] if row["change"] == "same"]
    assert answer["same"] == {"messages": len(same), "tokens": sum(row["a"]["tokens"] for row in same)}
    assert answer["changed_total"] == len(answer["rows"]) - len(same)
    start = next(n for n, (a, b) in enumerate(zip(left, right, strict=False)) if said(a) != said(b))
    assert answer["same_start"]["messages"] == start


def test_a_prompt_is_the_same_as_itself(api: Running) -> None:
    answer = compared(api, BUSY, 30, BUSY, 30)
    assert {row["change"] for row in answer["rows"]} == {"same"}
    assert api.get("/api/compare", a=BUSY, a_call=30, b=BUSY, b_call=30)["rows"] == []


def test_without_a_number_it_is_the_newest_call_of_each_session(api: Running) -> None:
    answer = compared(api, BUSY, "", UNDONE, "")
    for side, session in (("a", BUSY), ("b", UNDONE)):
        page = api.get(f"/api/sessions/{part(session)}")
        assert answer[side]["call"] == page["calls_total"]
        assert answer[side]["session"]["cost"] == page["cost"]
        made = [plan for plan in page["plans"] if plan["restored_from"] is None]
        assert answer[side]["session"]["compactions"] == len(made)


def test_rows_come_a_page_at_a_time(api: Running) -> None:
    whole = compared(api, BUSY, 20, BUSY, 60)["rows"]
    pages = [api.get("/api/compare", a=BUSY, a_call=20, b=BUSY, b_call=60, only="all", offset=n, limit=7)["rows"]
             for n in range(0, len(whole), 7)]  # fmt: skip
    assert [row for page in pages for row in page] == whole


def test_what_cannot_be_compared_is_told(api: Running) -> None:
    for query, status in (("b=nobody", 404), ("b=checkout-service&b_call=99999", 404), ("b=x&b_call=x", 400)):
        answer = api.client.get(f"/api/compare?a={BUSY}&{query}")
        assert answer.status_code == status
        assert answer.json()["hint"]
