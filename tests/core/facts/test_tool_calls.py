"""What a tool call is about can be told from its arguments, however a model or a framework writes them."""

from __future__ import annotations

import json

import pytest

from compact.core.facts.tool_calls import (
    READS,
    WRITES,
    argument_texts,
    arguments_of,
    command_of,
    files_changed,
    fits_name,
    is_typed,
    patched_files,
    path_of,
)
from compact.core.messages.message import Message, ToolCall
from numbered import call


@pytest.mark.parametrize("name", ["read_file", "Read", "grep_search", "LS", "view"])
def test_reading_tools_are_known_by_name_whatever_their_case(name: str) -> None:
    assert fits_name(name, READS)
    assert not fits_name(name, WRITES)


@pytest.mark.parametrize("arguments", ["", "not json", "[1, 2]", "7", "null", "{", '{"a": ' * 5000, "[" * 5000])
def test_arguments_that_are_no_object_are_none(arguments: str) -> None:
    made = ToolCall("c", "read", arguments)
    assert arguments_of(made) == {}
    assert path_of(made) is None
    assert command_of(made) is None
    assert files_changed(made) == ()


def test_an_object_deeper_than_anybody_looks_is_taken_for_text() -> None:
    """Walking it could exhaust the stack of whoever is asked."""

    def nested(depth: int) -> ToolCall:
        return ToolCall("c", "write", '{"path": "a.py", "x": ' + '{"a": ' * depth + "1" + "}" * depth + "}")

    assert path_of(nested(20)) == "a.py"
    assert arguments_of(nested(400)) == {}


def test_a_wide_object_is_not_a_deep_one() -> None:
    made = call("write", path="a.py", rows=[{"n": n} for n in range(300)])
    assert path_of(made) == "a.py"


def test_what_is_changed_in_a_copy_of_the_arguments_stays_there() -> None:
    made = call("read", path="a.py")
    arguments_of(made)["path"] = "b.py"
    assert path_of(made) == "a.py"


@pytest.mark.parametrize("name", ["path", "file_path", "filename", "target_file", "notebook_path"])
def test_a_file_is_found_under_any_of_its_usual_names(name: str) -> None:
    assert path_of(call("read", **{name: "src/a.py"})) == "src/a.py"


@pytest.mark.parametrize("path", [None, "", "  ", 7, {"a": 1}, ["a.py"]])
def test_what_is_no_text_is_no_path(path: object) -> None:
    assert path_of(call("read", path=path)) is None


def test_a_command_is_found_as_text_or_as_a_list() -> None:
    assert command_of(call("bash", command="ls -l")) == "ls -l"
    assert command_of(call("shell", command=["bash", "-lc", "make test"])) == "make test"
    assert command_of(call("run", cmd=["git", "status"])) == "git status"
    assert command_of(call("bash", command={"no": "text"})) is None


def test_what_an_editor_is_told_to_do_is_no_command() -> None:
    editor = "str_replace_based_edit_tool"
    assert command_of(call(editor, command="view", path="a.py")) is None
    assert command_of(call("bash", command="view a.py")) == "view a.py"


def test_an_editor_that_only_looks_changes_nothing() -> None:
    editor = "str_replace_based_edit_tool"
    assert files_changed(call(editor, command="view", path="a.py")) == ()
    assert files_changed(call(editor, command="str_replace", path="a.py", old_str="x", new_str="y")) == ("a.py",)


def test_reading_changes_nothing_and_writing_changes_the_file_it_names() -> None:
    assert files_changed(call("Read", file_path="a.py")) == ()
    assert files_changed(call("Write", file_path="a.py", content="x")) == ("a.py",)
    assert files_changed(call("MultiEdit", file_path="a.py", edits=[])) == ("a.py",)


def test_the_files_of_a_patch_are_in_its_text() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: b.md\n+z\n*** Update File: src/a.py\n"
    )
    assert files_changed(call("apply_patch", input=patch)) == ("src/a.py", "b.md")
    assert files_changed(ToolCall("c", "apply_patch", patch)) == ("src/a.py", "b.md")
    assert files_changed(call("write_stdin", chars="y\n")) == ()


def test_a_patch_tells_of_each_file_what_it_does_to_it() -> None:
    text = (
        "*** Begin Patch\n*** Update File: src/a.py \n@@\n-x\n*** Add File: b.md\n+*** Add File: c\n*** Delete File: d"
    )
    assert list(patched_files(text)) == [("src/a.py", "@@\n-x\n"), ("b.md", "+*** Add File: c\n"), ("d", "")]
    assert list(patched_files("no patch")) == []


def test_long_arguments_are_not_kept_in_memory() -> None:
    from compact.core.facts import tool_calls

    before = tool_calls._cached_parse.cache_info().currsize
    assert arguments_of(call("write", path="a.py", content="x" * 50_000))["path"] == "a.py"
    assert tool_calls._cached_parse.cache_info().currsize == before


@pytest.mark.parametrize(
    ("message", "typed"),
    [
        (Message("user", "do it"), True),
        (Message("user", ({"type": "text", "text": "do it"},)), True),
        (Message("user", "  \n"), False),
        (Message("user", None), False),
        (Message("user", ({"type": "image_url", "image_url": {"url": "data:"}},)), False),
        (Message("user", "do it", name="injected"), False),
        (Message("user", " <system-reminder>be careful</system-reminder>"), False),
        (Message("user", "<command-name>/clear</command-name>"), False),
        (Message("user", "<b>do it</b>"), True),
        (Message("assistant", "done"), False),
        (Message("developer", "be careful"), False),
    ],
)
def test_what_a_person_typed_is_told_from_what_a_harness_put_in(message: Message, typed: bool) -> None:
    assert is_typed(message) is typed


def test_numbers_and_names_in_arguments_come_back_as_they_were() -> None:
    arguments = {"a": 1, "b": [1.5, None, True], "ü": "漢字"}
    assert arguments_of(ToolCall("c", "x", json.dumps(arguments))) == arguments


def test_arguments_are_told_by_their_values_and_as_text_if_they_are_no_object() -> None:
    made = call("edit", path="a.py", edits=[{"old": "x = 1", "count": 3, "all": True, "note": None}])
    assert list(argument_texts(made)) == ["a.py", "x = 1", "3"]
    assert list(argument_texts(ToolCall("c", "bash", "not json"))) == ["not json"]
