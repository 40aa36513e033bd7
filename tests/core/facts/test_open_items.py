"""What is still to be done is found in to-do lists, tasks and what the agent says, until it is settled."""

from __future__ import annotations

import json

from compact.core.facts.ledger import FactKind
from compact.core.facts.open_items import TodoList, open_item_facts
from compact.core.messages.message import Message, ToolCall
from numbered import call, exchange, numbered


def open_items(*messages: Message) -> list[str]:
    found = list(open_item_facts(TodoList.of(numbered(messages))))
    assert all(fact.kind is FactKind.OPEN_ITEM for fact in found)
    return [fact.text for fact in found]


def told(text: str) -> Message:
    return Message("assistant", text)


def listed(name: str, **arguments: object) -> Message:
    return Message("assistant", None, (call(name, **arguments),))


TODOS = [
    {"content": "write the parser", "status": "completed"},
    {"content": "test the parser", "status": "in_progress"},
    {"content": "ship it", "status": "pending"},
]


def test_the_newest_list_counts_and_its_status_is_told() -> None:
    first = listed("TodoWrite", todos=[{"content": "an old plan", "status": "pending"}])
    assert open_items(first, listed("TodoWrite", todos=TODOS)) == ["test the parser (in progress)", "ship it (pending)"]


def test_a_list_on_which_all_is_done_leaves_nothing_open() -> None:
    done = [{**entry, "status": "Completed"} for entry in TODOS]
    assert open_items(listed("TodoWrite", todos=TODOS), listed("TodoWrite", todos=done)) == []


def test_plans_with_steps_are_lists_too() -> None:
    plan = [{"step": "read the code", "status": "completed"}, {"step": "fix the bug", "status": "pending"}]
    assert open_items(listed("update_plan", plan=plan)) == ["fix the bug (pending)"]


def test_a_list_written_as_text_is_read() -> None:
    assert open_items(listed("TodoWrite", todos=json.dumps(TODOS)))[-1] == "ship it (pending)"
    assert open_items(listed("TodoWrite", todos="[not json")) == []


def test_things_that_somebody_ordered_are_not_to_do() -> None:
    assert open_items(listed("exchange_order", items=[{"title": "Water bottle"}, {"title": "Lamp"}])) == []
    lamps = [{"title": "Lamp", "status": "open"}]
    assert open_items(listed("exchange_order", goods=lamps)) == []
    assert open_items(listed("TodoWrite", goods=lamps)) == ["Lamp (open)"]


def test_every_item_is_known_with_the_newest_that_was_said_of_it() -> None:
    noted = told(f"- [ ] one\n- [ ] {'x' * 500}")
    todos = TodoList.of(numbered([noted, listed("TodoWrite", todos=TODOS), told("✅ ship it")]))
    assert [(item.text, item.status) for item in todos.items()] == [
        ("one", ""),
        ("x" * 400, ""),
        ("write the parser", "completed"),
        ("test the parser", "in_progress"),
        ("ship it", "done"),
    ]


def test_tasks_are_followed_by_their_number() -> None:
    made = exchange("TaskCreate", "Task #1 created successfully: fix login", subject="fix login", description="long")
    other = exchange("TaskCreate", "Task #2 created successfully: add tests", subject="add tests")
    assert open_items(*made, *other) == ["fix login (pending)", "add tests (pending)"]
    third = exchange("TaskCreate", "#3 it is", subject="ship it")
    assert open_items(*third, *exchange("TaskUpdate", "ok", taskId="3", status="completed")) == []
    started = exchange("TaskUpdate", "ok", taskId="2", status="in_progress")
    finished = exchange("TaskUpdate", "ok", taskId="1", status="completed")
    assert open_items(*made, *other, *started, *finished) == ["add tests (in progress)"]


def test_a_task_that_nobody_has_confirmed_yet_is_open() -> None:
    assert open_items(exchange("TaskCreate", "", subject="fix login")[0]) == ["fix login (pending)"]


def test_boxes_are_open_until_they_are_ticked() -> None:
    plan = told("Plan:\n- [ ] write the parser\n- [ ] Test it.\n* [x] read the code")
    assert open_items(plan) == ["write the parser", "Test it."]
    assert open_items(plan, told("- [X] write the parser\n✅ test it")) == []
    assert open_items(told("- [ ] one\n✅ two\n✔ three\n☑ four")) == ["one"]


def test_a_finished_entry_of_a_list_settles_what_was_said() -> None:
    assert open_items(told("- [ ] write the parser"), listed("TodoWrite", todos=TODOS))[0] == (
        "test the parser (in progress)"
    )


def test_lines_that_leave_something_open_are_found_where_the_agent_says_so() -> None:
    text = "Done with login.\nTODO: rotate the keys\nStill need to update docs/api.md\nRemaining:\nAll fine."
    assert open_items(told(text)) == ["TODO: rotate the keys", "Still need to update docs/api.md"]
    assert open_items(Message("user", text)) == []
    assert open_items(told("TODO: shorten the TODO list\nTODO: ship it")) == [
        "TODO: shorten the TODO list",
        "TODO: ship it",
    ]
    assert open_items(told("TODO: rotate the keys")) == ["TODO: rotate the keys"]
    every = "TODO, FIXME, Still need this, Remaining: that, Next steps: and Not yet done"
    assert open_items(told(every)) == [every]


def test_each_item_names_the_message_it_stands_in() -> None:
    messages = numbered([Message("user", "hi"), told("- [ ] one"), listed("TodoWrite", todos=TODOS)])
    assert [fact.source_ids for fact in open_item_facts(TodoList.of(messages))] == [("m1",), ("m2",), ("m2",)]


def test_odd_lists_do_no_harm() -> None:
    odd: list[object] = [None, 7, "plain", {"status": "pending"}, {"content": 7}, {"content": "real", "status": None}]
    assert open_items(listed("TodoWrite", todos=odd)) == ["real"]
    assert open_items(Message("assistant", None, (ToolCall("c", "TodoWrite", "not json"),))) == []
    assert open_items(listed("TaskUpdate", taskId="9", status="done"), listed("TaskCreate")) == []
