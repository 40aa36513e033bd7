"""Terms, stems and the ranking function: what a question finds, and in which order."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.messages.message import Message, ToolCall
from compact.core.search import ranking, search_terms
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
    "evening": "evening", "dyed": "dy", "eyed": "eye", "aged": "age", "pasted": "paste", "losses": "loss",
    "added": "add", "omitted": "omit", "try": "tri", "holly": "holli", "apology": "apolog", "pedagogy": "pedagogi",
    "joyful": "joy", "witness": "wit", "boxes": "box", "raise": "rais", "vying": "vie", "ring": "ring",
    # No words, but of the shortest kind that a rule is about.
    "ireed": "ire", "eaed": "ea", "eing": "e",
}  # fmt: skip


def index_of(*texts: str) -> MemoryIndex:
    index = MemoryIndex()
    for number, text in enumerate(texts, 1):
        index.add(number, entry_terms(Message(role="user", content=text)))
    return index


def found(query: str, *texts: str, limit: int = 10) -> list[int]:
    return rank(read_query(query), index_of(*texts), limit)


def texts_terms(text: str) -> list[str]:
    return entry_terms(Message(role="user", content=text)).words.split()


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


def test_where_the_beginning_of_an_entry_stops_nothing_is_cut_in_two_or_counted_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search_terms, "_HEAD_CHARS", 20)
    monkeypatch.setattr(search_terms, "_TAIL_CHARS", 10)
    whole = "a lighthouse at my harbour".ljust(29, "!") + "x"
    assert len(whole) == 30
    assert texts_terms(whole) == ["a", "lighthous", "at", "my", "harbour", "x"], "as much as is searched"
    assert texts_terms("one two three four five") == ["one", "two", "three", "four", "five"]
    assert "harbour" not in texts_terms(f"{whole}y"), "one more, and its middle is left out"


def test_an_entry_has_as_many_terms_as_a_database_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_terms, "_MAX_CHARS", 12)
    assert texts_terms("sea big fog") == ["sea", "big", "fog"]
    assert texts_terms("sea big fogs bell") == ["sea", "big", "fog"], "each takes a blank, too"
    assert texts_terms("sea big bell") == ["sea", "big"]
    assert texts_terms("sea sea sea bell") == ["sea", "sea", "sea"]
    assert texts_terms("sea sea sea sea bell") == [], "all of a term, or none"


def test_no_term_is_longer_than_any_word_and_a_name_keeps_its_end() -> None:
    long = ("x" * 150, "ж" * 150, "Ab" * 30 + "c" * 90, f"a/{'b' * 60}/{'c' * 60}.py", f"{'b' * 90}_{'c' * 90}")
    for piece in long:
        terms = line_terms([piece])[0]
        assert max(map(len, terms)) == 100, piece
    assert f"{'b' * 36}_{'c' * 60}_py" in line_terms([long[3]])[0]
    tail = "Word" * 25 + "Harbour"
    assert "harbour" not in line_terms([tail])[0], "nor are its parts behind that"


def test_a_path_is_found_by_its_parts_and_by_how_it_ends() -> None:
    terms = line_terms(["/home/me/src/app/main.py:42"])[0]
    assert {term for term in terms if "_" in term} == {
        "main_py", "app_main_py", "src_app_main_py", "home_me_src_app_main_py", "home_me_src_app_main_py_42",
    }  # fmt: skip
    assert line_terms(["src/app"]) == [{"src", "app", "src_app"}]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("берег", ["берег"]),
        ("漢", ["漢"]),
        ("東京都", ["東京", "京都"]),
        ("ERROR", ["error"]),
        ("a1s cafés", ["a1s", "cafés"]),
        ("aBcDeFgHiJkLmNoP", ["abcdefghijklmnop"]),
        ("aBcDeFgHiJkLmNo", ["abcdefghijklmno", "a", "bc", "de", "fg", "hi", "jk", "lm", "no"]),
        ("abCdeFgHijKlMnoPqRst", ["abcdefghijklmnopqrst", "ab", "cde", "fg", "hij", "kl", "mno", "pq", "rst"]),
    ],
)
def test_the_terms_of_a_word(text: str, terms: list[str]) -> None:
    """A random id is not cut into its parts: what is 16 characters long, and of parts of less than 2.5 on average."""
    assert sorted(texts_terms(text)) == sorted(terms)


def test_of_a_long_question_the_beginning_counts() -> None:
    words = [f"{a}{b}k" for a in "bdfglm" for b in "aeiou" for _ in "x"] + ["harbour", "berth", "crane", "ship"]
    assert len(read_query(" ".join(words)).terms) == 32
    assert read_query("the " * 50_000 + "harbour").terms == ("the",)


def test_a_query_has_words_and_names() -> None:
    assert read_query("parse_header of a refund").words == ("pars", "header", "refund")
    assert read_query("parse_header of a refund").names == {"parse_header"}


def test_a_term_that_most_entries_hold_neither_decides_nor_hides_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "MAX_HOLDERS", 5)
    texts = ["a file"] * 20 + ["file of the harbour"] + ["a file"] * 20
    assert found("harbour file", *texts)[0] == 21
    assert found("file", *texts, limit=3) == [41, 40, 39], "of entries that are all alike the newest"
    assert found("file", *texts, limit=1) == [41]
    assert found("file", *texts) == [41, 40, 39, 38, 37], "and no more of them are compared"
    assert found("file lighthouse", *texts, limit=3) == [41, 40, 39], "though nothing holds the other word"


def test_a_term_that_as_many_entries_hold_as_are_looked_up_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "MAX_HOLDERS", 5)
    texts = ["a crane"] * 4 + ["berth of a crane", "berth of a file"] + ["a file"] * 20
    assert set(found("berth crane", *texts)) == {1, 2, 3, 4, 5, 6}
    assert found("berth crane file", *texts)[:2] == [5, 6], "five hold the one word, and more the other"


def test_no_more_holders_of_a_term_are_asked_for_than_it_takes_to_see_that_they_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ranking, "MAX_HOLDERS", 5)
    given: list[int] = []

    class Watched(MemoryIndex):
        def holders(self, term: str, limit: int) -> Sequence[int]:
            found = super().holders(term, limit)
            given.append(len(found))
            return found

    index = Watched()
    for number in range(20):
        index.add(number, entry_terms(Message(role="user", content="a file")))
    assert rank(read_query("file"), index, 1) == [19]
    assert given == [6]


WORDS = ("harbour", "berth", "crane", "sea", "ship", "gull")


def as_the_formula_has_it(query: Sequence[str], texts: Sequence[Sequence[str]]) -> list[int]:
    """BM25 as textbooks have it, over plain words: which texts score three tenths of the best, the best first."""

    def score(text: Sequence[str]) -> float:
        return sum(
            math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            * (2.2 * often / (often + 1.2 * (0.25 + 0.75 * len(text) / 250)))
            for word in query
            if (holding := sum(word in other for other in texts)) and (often := min(text.count(word), MAX_FREQUENCY))
        )

    scores = sorted(((score(text), number) for number, text in enumerate(texts, 1)), reverse=True)
    return [number for value, number in scores if value and value >= 0.3 * scores[0][0]]


def a_session(seed: int) -> list[list[str]]:
    chance = random.Random(seed)
    sizes = [chance.choice((3, 9, 30, 90, 400)) for _ in range(12)]
    return [chance.choices((*WORDS, "rope"), weights=(1, 2, 4, 8, 16, 32, 200), k=size) for size in sizes]


@pytest.mark.parametrize("seed", range(25))
def test_the_order_is_that_of_the_formula(seed: int) -> None:
    texts = a_session(seed)
    expected = as_the_formula_has_it(WORDS, texts)
    assert found(" ".join(WORDS), *map(" ".join, texts), limit=100) == expected


def test_a_term_of_which_not_all_holders_are_known_counts_as_if_half_of_all_held_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    orders = set[tuple[int, ...]]()
    for seed in range(25):
        texts = [" ".join(text) for text in a_session(seed)]
        texts = [*(f"{text} bell" for text in texts[:9]), *texts[9:], *["bell"] * 15, *["rope"] * 21]
        exact = found("berth crane bell", *texts, limit=100)
        with monkeypatch.context() as patched:
            patched.setattr(ranking, "MAX_HOLDERS", 12)
            guessed = found("berth crane bell", *texts, limit=100)
        assert guessed == [place for place in exact if place in guessed]
        orders.add(tuple(guessed))
    assert len(orders) > 1


def test_rare_terms_choose_what_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "_MAX_COMPARED", 4)
    texts = ["harbour"] * 3 + ["berth", "berth harbour"] + ["sea"] * 30
    assert found("sea harbour berth", *texts)[:2] == [5, 4]
    assert not set(found("sea harbour berth", *texts)) & set(range(6, 36))
    assert set(found("crane berth", "crane", *["berth"] * 3, *["sea"] * 30)) == {1, 2, 3, 4}, "four may be compared"
    # The rarest, then one that would be too many: what comes behind that is not asked, even if it would fit.
    texts = ["crane sea", "crane sea", "berth sea", "berth", "berth", "sea"]
    assert set(found("crane berth sea", *texts)) == {1, 2}


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
    assert found("x") == found("", "x") == found("x", "x", limit=0) == found("x", "x", "x", limit=-1) == []
    assert EntryTerms("", 0).frequency("x") == 0


def test_the_stem_of_a_common_word_is_found_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that begin at once find each by itself: none has to wait for all of them. Other words are not kept."""
    found: list[str] = []
    stem_of = search_terms.stem
    monkeypatch.setattr(search_terms, "stem", lambda word: (found.append(word), stem_of(word))[1])
    monkeypatch.setattr(search_terms, "_COMMON_STEMS", {})
    assert {"again", "and", "marzipan"}.intersection(search_terms.COMMON_WORDS) == {"again"}
    for _ in range(2):
        entry_terms(Message("user", "again and again marzipan"))
    assert sorted(found) == ["again", "and", "marzipan", "marzipan"]
    assert {*search_terms._COMMON_STEMS} == {"again", "and"}  # pyright: ignore[reportPrivateUsage]
