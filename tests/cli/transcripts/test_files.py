"""Reading transcripts: the forms they come in, and what is said about files that are none."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from compact.cli.transcripts.files import TranscriptError, read_transcript, write_transcript
from compact.testing import assistant, user

MESSAGES = [user("one\u2028two"), assistant("three → four")]
ONE_PER_LINE = "".join(json.dumps(message, ensure_ascii=False) + "\n" for message in MESSAGES)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("list.json", json.dumps(MESSAGES)),
        ("indented.json", json.dumps(MESSAGES, indent=2)),
        ("object.json", json.dumps({"model": "x", "messages": MESSAGES}, indent=2)),
        ("lines.jsonl", ONE_PER_LINE),
        ("blank_lines.jsonl", "\n" + ONE_PER_LINE.replace("\n", "\n\n")),
        ("windows_line_ends.jsonl", ONE_PER_LINE.replace("\n", "\r\n")),
        ("lines_without_suffix", ONE_PER_LINE),
        ("record.jsonl", json.dumps({"id": 1, "messages": MESSAGES})),
        ("records.json", json.dumps([{"messages": MESSAGES}, {"messages": []}])),
        ("byte_order_mark.json", "\ufeff" + json.dumps(MESSAGES)),
    ],
)
def test_forms(tmp_path: Path, name: str, text: str):
    """Each form gives the same messages, packed or not."""
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    assert read_transcript(str(tmp_path / name)).messages == MESSAGES
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert read_transcript(str(packed)).messages == MESSAGES


def test_utf_16(tmp_path: Path):
    """What a Windows shell redirects into a file is read, too."""
    path = tmp_path / "wide.json"
    path.write_text(json.dumps(MESSAGES), encoding="utf-16")
    assert read_transcript(str(path)).messages == MESSAGES


def test_single_message(tmp_path: Path):
    """One line with one message is a transcript of one message."""
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(MESSAGES[0]))
    assert read_transcript(str(path)).messages == MESSAGES[:1]


def test_index_chooses(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Of several transcripts, the one with the number asked for; beyond the last, an error says how many there are."""
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps({"messages": [user(f"number {n}")]}) + "\n" for n in range(3)))
    assert read_transcript(str(path), 2).messages == [user("number 2")]
    assert capsys.readouterr().err == f"{path} holds 3 transcripts; this is 2, --index chooses another\n"
    with pytest.raises(TranscriptError, match=r"holds 3 transcripts: there is no transcript 3") as caught:
        read_transcript(str(path), 3)
    assert caught.value.hint == "use --index 0 to 2"


def test_a_chat_request_keeps_its_tools_and_all_else(tmp_path: Path):
    """It has no key of its own, as others have: it is known by its model, and comes back whole."""
    tools = [{"type": "function", "function": {"name": "read"}}]
    request = {"model": "gpt-4o", "tools": tools, "messages": MESSAGES, "stream": True}
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request))
    transcript = read_transcript(str(path))
    assert (transcript.model, transcript.options["tools"]) == ("gpt-4o", tools)
    assert transcript.with_messages(MESSAGES[:1]) == {**request, "messages": MESSAGES[:1]}


CALLED = [user("go on"), {"role": "assistant", "content": "Done."}]
REQUESTS = {
    "responses": {"model": "gpt-4o", "instructions": "Be brief.", "input": CALLED},
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "go on"}]}],
        "systemInstruction": {"parts": [{"text": "Be"}, {"text": "brief."}]},
        "tools": [{"functionDeclarations": []}],
    },
    "anthropic": {"max_tokens": 10, "system": [{"type": "text", "text": "Be brief."}], "messages": CALLED},
}


@pytest.mark.parametrize("dialect", REQUESTS)
def test_requests(tmp_path: Path, dialect: str):
    """A request gives its messages, and what goes beside them is kept and counted."""
    path = tmp_path / "request.json"
    path.write_text(json.dumps(REQUESTS[dialect]))
    transcript = read_transcript(str(path))
    assert transcript.options["dialect"] == dialect
    assert transcript.instructions.split() == ["Be", "brief."]
    assert len(transcript.tools) == (dialect == "gemini")
    assert transcript.with_messages(transcript.messages) == REQUESTS[dialect]
    assert list(transcript.with_messages([]).values()).count([]) == 1


def test_a_request_of_one_text(tmp_path: Path):
    """Responses take a text for a message of the user."""
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"model": "gpt-4o", "input": "hello"}))
    assert read_transcript(str(path)).messages == [user("hello")]


def test_standard_input(monkeypatch: pytest.MonkeyPatch):
    """A dash reads what is piped in."""
    pipe = SimpleNamespace(buffer=io.BytesIO(gzip.compress(ONE_PER_LINE.encode())), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", pipe)
    assert read_transcript("-").messages == MESSAGES


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.json", b"", "empty.json is empty"),
        ("blank.jsonl", b"\n \n", "blank.jsonl is empty"),
        ("none.json", b"[]", "holds no messages"),
        ("text.json", b'"hi"', "expected messages, got a text"),
        ("number.json", b"7", "expected messages, got a number"),
        ("null.json", b"null", "expected messages, got null"),
        ("object.json", b'{"a": 1}', "an object without `role` or `messages`"),
        ("no_list.json", b'{"messages": "x"}', "is a text, not a list"),
        ("broken.json", b'[{"role": "user"},\n {"role": ]', "broken.json, line 2, column 11: not valid JSON"),
        ("broken.jsonl", b'{"role": "user"}\n\n{"role": \n', "broken.jsonl, line 3, column 10: not valid JSON"),
        ("list_inside.jsonl", b'{"role": "user"}\n[1]\n', "list_inside.jsonl, line 2: expected an object, got a list"),
        ("mixed.jsonl", b'{"role": "user"}\n{"messages": []}\n', "mixed.jsonl, item 2: expected messages"),
        ("deep.json", b"[" * 100_000, "nested too deeply"),
        ("long_number.json", b"[" + b"1" * 5_000 + b"]", "JSON that cannot be read"),
        ("program.json", b"\x7fELF\x02\x01\x00\xff", "looks like a binary file"),
        ("zeros.json", b"\x00" * 100, "looks like a binary file"),
        ("damaged.gz", b"\x1f\x8b\x08\x00garbage", "is a damaged gzip file"),
        ("cut.gz", gzip.compress(ONE_PER_LINE.encode(), mtime=0)[:-12], "is a damaged gzip file"),
    ],
)
def test_what_is_no_transcript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, said: str):
    """The error names the file, the place in it, and what to do."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    with pytest.raises(TranscriptError) as caught:
        read_transcript(name)
    assert said in caught.value.message
    assert name in caught.value.message
    assert caught.value.hint


def test_what_is_no_file(tmp_path: Path):
    """A missing file, a directory and a name that cannot be one are told apart."""
    for source, said in (
        (tmp_path / "gone", "there is no file"),
        (tmp_path, "there is no log in the folder"),
        ("a\0b", "cannot read"),
    ):
        with pytest.raises(TranscriptError, match=said):
            read_transcript(str(source))


@pytest.mark.parametrize("name", ["out.json", "out.jsonl", "out.json.gz", "out.jsonl.gz"])
def test_written_is_read_back(tmp_path: Path, name: str):
    """The name decides the form; a lone surrogate does not stop it."""
    messages = [*MESSAGES, user("half a pair: \ud83d")]
    write_transcript(tmp_path / name, messages)
    assert read_transcript(str(tmp_path / name)).messages == messages
    data = (tmp_path / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    assert text.startswith("[") is (".jsonl" not in name)
