"""Terms, stems and the ranking function: what a question finds, and in which order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.log.messages import Message, ToolCall
from compact.core.search import ranking
from compact.core.search.ranking import MemoryIndex, rank
from compact.core.search.search_terms import MAX_FREQUENCY, EntryTerms, entry_terms, is_name, line_terms, read_query
from compact.core.search.stemming import stem

# From the sample vocabulary that the description of the stemmer has, and its exceptions.
STEMS = {
    "consign": "consign", "consigned": "consign", "consigning": "consign", "consignment": "consign",
    "consist": "consist", "consistency": "consist", "consistently": "consist", "consolation": "consol",
    "conspicuously": "conspicu", "constancy": "constanc", "knack": "knack", "knavish": "knavish", "kneeling": "kneel",
    "knightly": "knight", "knots": "knot", "skis": "ski", "dying": "die", "news": "news", "only": "onli",
    "generously": "generous", "communism": "communism", "hopping": "hop", "hoped": "hope", "happy": "happi",
    "by": "by", "say": "say", "cries": "cri", "ties": "tie", "gas": "gas", "this": "this", "kiwis": "kiwi",
    "proceed": "proceed", "agreed": "agre", "luxuriated": "luxuri", "sized": "size", "falling": "fall",
    "rational": "ration", "relational": "relat", "hopefulness": "hope", "formality": "formal", "apologist": "apolog",
    "electricity": "electr", "adoption": "adopt", "controlling": "control", "ies": "ie", "yes": "yes",
    "evening": "evening",
}  # fmt: skip


def index_of(*texts: str) -> MemoryIndex:
    index = MemoryIndex()
    for number, text in enumerate(texts, 1):
        index.add(number, entry_terms(Message(role="user", content=text)))
    return index


def found(query: str, *texts: str, limit: int = 10) -> list[int]:
    return rank(read_query(query), index_of(*texts), limit)


@pytest.mark.parametrize(("word", "expected"), STEMS.items())
def test_stems(word: str, expected: str) -> None:
    assert stem(word) == expected


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", max_size=30))
def test_every_word_has_a_stem_that_is_not_longer_by_more_than_a_letter(word: str) -> None:
    assert len(stem(word)) <= len(word) + 1
    assert bool(stem(word)) == bool(word)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("what was the refund limit", "Refunds are limited to 50 euros"),
        ("refunds", "a refund"),
        ("refund", "we refunded it"),
        ("How did we decide on the database?", "decided: PostgreSQL is our database"),
        ("value error", "raise ValueError(name)"),
        ("ValueError", "ValueError: no name"),
        ("parse header", "def parse_header(raw):"),
        ("parseHTTPResponse", "call parseHTTPResponse() twice"),
        ("http response", "call parseHTTPResponse() twice"),
        ("which URLs do we use?", "the URL of the shop"),
        ("which URLs do we use?", "we keep the urls in a list"),
        ("the URL", "these URLs are old"),
        ("open PRs", "PR 17 waits"),
        ("prs", "two PRs wait"),
        ("GPUs", "a GPU is free"),
        ("APIs and GPUs", "only one API"),
        ("url", "call parseURLs() twice"),
        ("which IDs?", "user_ID is set"),
        ("main.py", "see /home/me/src/app/main.py:42"),
        ("app/main.py", "see /home/me/src/app/main.py:42"),
        ("src/main.py:42", "edit src/main.py"),
        ("東京", "明日東京へ行く"),
        ("БЕРЕГ", "на берег"),
        ("to be or not to be", "be that as it may"),
    ],
)
def test_a_question_finds(query: str, text: str) -> None:
    assert found(query, "something else entirely", text) == [2]


def test_words_of_questions_need_not_occur_and_do_not_count() -> None:
    assert read_query("what was the limit, and who did set it?").terms == ("limit", "set")
    assert read_query("what was it?").terms == read_query("WHAT was it").terms != ()
    assert found("where is the limit", "where is the cat, where is the dog", "a limit") == [2]


def test_names_come_first_however_often_their_parts_occur_elsewhere() -> None:
    texts = ("parse the header, parse headers, header parse " * 3, "short: parse_header", "parse_headers", "header")
    assert found("parse_header", *texts)[0] == 2
    assert found("how does parse_headers parse a header", *texts)[0] == 3
    many = ["error E4712 and error E4710, errors"] * 30
    assert found("error error E4711", *many, "E4711", *many)[0] == 31
    long = "a step of the work, " * 100 + "E4711"
    assert found("harbour, berth and lighthouse of E4711", "harbour berth lighthouse", long, *many) == [2, 1]


NAMES = ("E4711", "parse_header", "src/app", "main.py", "ValueError", "id-4711", "a:b", "m42", "parseURLs", "IDsOf")


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("word", ["refund", "Refund", "read-only", "4711", "ERROR", "URLs", "PRs"])
def test_plain_words_and_numbers_are_no_names(word: str) -> None:
    assert not is_name(word)


def test_what_a_call_says_and_its_id_are_searched() -> None:
    call = ToolCall("call_7Zx", "read_file", '{"path": "src/app.py", "note": "first\\nsecond"}')
    terms = entry_terms(Message(role="assistant", tool_calls=(call,)))
    for term in ("call_7zx", "read_file", "src_app_py", "second", "note"):
        assert terms.frequency(term) == 1, term
    assert terms.frequency("nsecond") == 0, "the arguments as they are meant, not as JSON"
    assert entry_terms(Message(role="tool", content="x", tool_call_id="call_7Zx")).frequency("call_7zx") == 1


def test_how_often_a_term_occurs_is_counted_up_to_a_limit() -> None:
    terms = entry_terms(Message(role="user", content="refund limit refunds x Limit refunded " + "many " * 50))
    assert [terms.frequency(term) for term in ("refund", "limit", "x", "mani", "fund", "refun")] == [
        3, 2, 1, MAX_FREQUENCY, 0, 0,
    ]  # fmt: skip
    assert terms.length == 56


def test_a_random_id_is_one_term_and_a_name_is_its_words_too() -> None:
    terms = entry_terms(
        Message(role="tool", content="done", tool_call_id="toolu_01X7BuSLWD2Zxe82VDtsWy8w")
    ).words.split()
    assert terms == ["done", "toolu", "01x7buslwd2zxe82vdtswy8w", "toolu_01x7buslwd2zxe82vdtswy8w"]
    assert found("toolu_01X7BuSLWD2Zxe82VDtsWy8w", "nothing", "it was toolu_01X7BuSLWD2Zxe82VDtsWy8w") == [2]
    assert {"instanc", "micro"} <= set(entry_terms(Message(role="user", content="MyEC2InstanceT3Micro")).words.split())


def test_a_long_entry_is_found_by_its_beginning_and_its_end() -> None:
    text = "alpha " + "x1 " * 200_000 + " omega"
    terms = entry_terms(Message(role="tool", content=text))
    assert terms.frequency("alpha") == terms.frequency("omega") == 1
    varied = entry_terms(Message(role="tool", content=" ".join(f"word{n}" for n in range(100_000))))
    assert len(varied.words) <= 250_002


def test_a_term_that_most_entries_hold_neither_decides_nor_hides_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "MAX_HOLDERS", 5)
    texts = ["a file"] * 20 + ["file of the harbour"] + ["a file"] * 20
    assert found("harbour file", *texts)[0] == 21
    assert found("file", *texts, limit=3) == [41, 40, 39], "of entries that are all alike the newest"


def test_rare_terms_choose_what_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "_MAX_COMPARED", 4)
    texts = ["harbour"] * 3 + ["berth", "berth harbour"] + ["sea"] * 30
    assert found("sea harbour berth", *texts)[:2] == [5, 4]
    assert not set(found("sea harbour berth", *texts)) & set(range(6, 36))


TEXTS = st.text(max_size=60) | st.text(alphabet="aAbBzZ0_./:-' \"\n漢é", max_size=40)


@given(st.lists(TEXTS, max_size=6), TEXTS)
def test_no_query_raises_and_what_is_found_holds_something_of_it(texts: list[str], query: str) -> None:
    sought = read_query(query)
    places = found(query, *texts)
    assert len(set(places)) == len(places)
    for place in places:
        assert set(sought.terms) & line_terms(texts[place - 1 : place])[0], (query, texts[place - 1])


@given(st.lists(TEXTS, max_size=6), TEXTS)
def test_who_says_the_same_is_found(texts: list[str], text: str) -> None:
    if read_query(text).terms:
        assert len(texts) + 1 in found(text, *texts, text, limit=100)


@given(TEXTS)
def test_terms_are_what_every_database_takes_as_they_are(text: str) -> None:
    words = entry_terms(Message(role="user", content=text)).words
    for term in words.split(" ")[1:-1]:
        assert term
        assert all(letter.isalnum() or letter == "_" or ord(letter) > 127 for letter in term)
        assert term in line_terms([text])[0]


def test_no_entries_no_limit_no_words() -> None:
    assert found("x") == found("", "x") == found("x", "x", limit=0) == []
    assert EntryTerms("", 0).frequency("x") == 0
