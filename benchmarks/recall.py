"""How often recall finds what an agent needs again, asked in the agent's own words.

    COMPACT_DATA=path/to/transcripts python benchmarks/recall.py [--check] [--json] [--semantic]
    COMPACT_DATA=path/to/transcripts python benchmarks/recall.py --speed [--entries 12000]

Questions are made from recorded sessions, without a model and without the product's own word lists. Two kinds:

- again: the agent calls a tool with arguments it had used before, at least ten messages earlier. What it wrote in that
  message before the call ("Let me look at the limits once more") is the question; the earlier call and its
  result are the answer. The arguments are not part of the question.
- fact: the agent writes a sentence with a name or a number that until then stood in one place only (a message, or a
  call and its result), at least ten messages earlier. The sentence without that name or number is the question; the
  place is the answer.

Each question is put to the log as it was before the agent wrote it. It counts as found if the answer is among the first
three results. A question is asked whole, and as three keywords: those of its words that the fewest messages hold.
At most 20 questions are taken of a session and kind, evenly. The figures are shares of all questions of a kind.

`all words` is the search that was there before: an entry must hold every word literally, the newest comes first.
`ranked` is what a store returns, `as shown` what an agent is shown: the first three results with their neighbours.
`semantic` is the same with `recall.semantic` on; it needs the extra of that name.

`--speed` writes so many messages of the transcripts into one session of each store, and prints how long questions take.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from preflight import milliseconds
from store import databases
from transcripts import Transcript, data_folder, read_transcripts, text_of

from compact.core.audit.artifacts import SecurityContext
from compact.core.audit.records import Commit, SessionHead, StoredMessage
from compact.core.messages.entries import read_entry
from compact.recall.packaged_model import load_packaged_model
from compact.recall.search import RecallSource, recall
from compact.recall.semantic import Embed, SemanticSearch
from compact.stores.database import Database
from compact.stores.memory import InMemoryCompactionStore
from compact.stores.sql import SqlCompactionStore

MIN_DISTANCE = 10  # messages: what is nearer is still in every prompt
MAX_PER_SESSION = 20
FIRST = 3
MIN_WORDS = 4  # fewer are no question
MAX_CHARS = 400  # more are a text
# Shares found in the first three: a little below what was measured.
FLOORS = {"fact, whole": 0.62, "fact, keywords": 0.53, "again, whole": 0.46, "again, keywords": 0.30}
# From words that few entries hold to words that most of them hold.
SPEED_QUESTIONS = (
    "which berth has the lighthouse?",
    "what was the refund limit?",
    "src/app/main.py",
    "let me read the file and run the tests again",
    "test file code error function",
)
SEARCHES = ("all words", "ranked", "as shown")

_WORD = re.compile(r"[A-Za-z0-9]+")
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?=\S)[^.!?\n]+)*")
_FACT = re.compile(r"[A-Za-z0-9][\w./:@-]*[A-Za-z0-9]")
_PLAIN = re.compile(r"[A-Za-z]+(?:[-/.:][a-z]+)?|\d{1,2}|[A-Z]?[a-z]+")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, how much of the log is there, and which messages answer it."""

    kind: str
    text: str
    at: int
    answers: frozenset[int]


def questions_of(transcript: Transcript) -> list[Question]:
    """Return the questions of a session, each kind evenly thinned out."""
    found: list[Question] = []
    for kind, made in (("again", again_questions), ("fact", fact_questions)):
        every = list(made(transcript.messages))
        step = max(1, -(-len(every) // MAX_PER_SESSION))
        found += [Question(kind, *question) for question in every[::step]]
    return sorted(found, key=lambda question: question.at)


def again_questions(messages: Sequence[dict[str, Any]]) -> Iterator[tuple[str, int, frozenset[int]]]:
    """Yield what an agent wrote before it made a call for the second time, and where the first one is."""
    made: dict[str, list[int]] = {}
    results = _results(messages)
    for at, message in enumerate(messages):
        calls = message.get("tool_calls") or []
        keys = [f"{call['function']['name']} {call['function']['arguments']}" for call in calls]
        text = text_of(message).strip()[-MAX_CHARS:]
        if len(keys) == 1 and len(_WORD.findall(text)) >= MIN_WORDS:
            earlier = made.get(keys[0], [])
            if earlier and all(at - place >= MIN_DISTANCE for place in earlier):
                yield text, at, frozenset(place for first in earlier for place in (first, *results.get(first, ())))
        for key in keys:
            made.setdefault(key, []).append(at)


def fact_questions(messages: Sequence[dict[str, Any]]) -> Iterator[tuple[str, int, frozenset[int]]]:
    """Yield sentences of an agent without the fact in them, and the one place where the fact stands."""
    places: dict[str, set[int]] = {}
    groups = _groups(messages)
    for at, message in enumerate(messages):
        if message["role"] == "assistant":
            yield from _facts_in(text_of(message), at, places, groups)
        if message["role"] != "system":
            for fact in _facts(_searchable(message)):
                places.setdefault(fact, set()).add(groups[at][0])


def _facts_in(
    text: str, at: int, places: dict[str, set[int]], groups: Sequence[tuple[int, ...]]
) -> Iterator[tuple[str, int, frozenset[int]]]:
    for sentence in _SENTENCE.findall(text):
        if len(sentence) > MAX_CHARS:
            continue
        for fact in sorted(_facts(sentence), key=lambda fact: (-len(fact), fact)):
            stands = places.get(fact, set())
            asked = " ".join(sentence.replace(fact, " ").split())
            if len(stands) == 1 and len(_WORD.findall(asked)) >= MIN_WORDS:
                place = next(iter(stands))
                if at - max(groups[place]) >= MIN_DISTANCE:
                    yield asked, at, frozenset(groups[place])
                    break


def _facts(text: str) -> set[str]:
    """Names and numbers: no plain word, nothing with fewer than three characters."""
    return {fact for fact in _FACT.findall(text) if len(fact) > 2 and not _PLAIN.fullmatch(fact)}


def _searchable(message: dict[str, Any]) -> str:
    calls = message.get("tool_calls") or ()
    return "\n".join([text_of(message), *(f"{c['function']['name']} {c['function']['arguments']}" for c in calls)])


def _results(messages: Sequence[dict[str, Any]]) -> dict[int, list[int]]:
    """Where the results of each call are, by the place of the message that makes it."""
    waiting: dict[str, int] = {}
    found: dict[int, list[int]] = {}
    for at, message in enumerate(messages):
        if message["role"] == "tool" and message.get("tool_call_id") in waiting:
            found.setdefault(waiting[message["tool_call_id"]], []).append(at)
        for call in message.get("tool_calls") or ():
            waiting[call["id"]] = at
    return found


def _groups(messages: Sequence[dict[str, Any]]) -> list[tuple[int, ...]]:
    """For each message the places of its group: a call and its results, or the message alone."""
    groups = [(at,) for at in range(len(messages))]
    for call, results in _results(messages).items():
        for at in (call, *results):
            groups[at] = (call, *results)
    return groups


# -- searches -------------------------------------------------------------------------------------------------------

Search = Callable[[str, int], list[int]]


def all_words(words: Sequence[str]) -> Search:
    """The search that was there before: every word literally, the newest first."""

    def search(query: str, at: int) -> list[int]:
        phrases = [f" {phrase} " for piece in query.split() if (phrase := _words(piece))]
        held = (place for place in range(at - 1, -1, -1) if phrases and all(p in words[place] for p in phrases))
        return [place for _, place in zip(range(FIRST), held, strict=False)]

    return search


class Log:
    """The log of a session as it was before a question, and the searches of today on it."""

    def __init__(self, messages: Sequence[dict[str, Any]], embed: Embed | None) -> None:
        self._messages, self._head, self._store = messages, SessionHead(), InMemoryCompactionStore()
        self._semantic = SemanticSearch(embed, is_open=lambda _: True) if embed else None

    def grow(self, length: int) -> None:
        """Append what was said until then."""
        places = range(self._head.last_seq, length)
        new = [StoredMessage(i + 1, replace(read_entry(self._messages[i], ""), id=f"m{i + 1}"), 0) for i in places]
        self._head = self._store.commit(Commit(session_id="s", expected=self._head, messages=tuple(new)))

    def ranked(self, query: str) -> list[int]:
        """Return the best three entries."""
        return [entry.seq - 1 for entry in self._store.search("s", query, FIRST)]

    def semantic(self, query: str) -> list[int]:
        """Return the same with the search by meaning."""
        search = self._semantic
        return self.recalled(query, lambda q: search.search("s", q, self._store, 24)) if search else []

    def recalled(self, query: str, similar: Callable[[str], list[StoredMessage]] | None = None) -> list[int]:
        """Return what an agent is shown as the first three results, neighbours included."""
        source = RecallSource(
            session_id="s",
            reader=self._store,
            artifacts=self._store.artifacts,
            security=SecurityContext(),
            similar=similar,
        )
        answer = recall(source, query, count_text=lambda text: len(text) // 4, max_tokens=2000)
        return [near.seq - 1 for entry in answer.found[:FIRST] for near in (entry, *entry.neighbours)]


def _words(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def keywords(question: Question, words: Sequence[str]) -> str:
    """The three words of a question that the fewest earlier messages hold, in their order."""
    asked = list(dict.fromkeys(_WORD.findall(question.text)))
    held = Counter({word: sum(f" {word.lower()} " in words[i] for i in range(question.at)) for word in asked})
    known = sorted((word for word in asked if held[word]), key=lambda word: (held[word], -len(word), word))[:3]
    return " ".join(word for word in asked if word in known)


# -- the run --------------------------------------------------------------------------------------------------------


def measure(transcripts: Sequence[Transcript], embed: Embed | None = None) -> tuple[dict[str, dict[str, float]], float]:
    """Return the shares found by kind of question and search, and the median time of a search in milliseconds."""
    hits: dict[str, Counter[str]] = {}
    times: list[float] = []
    for transcript in transcripts:
        words = [f" {_words(_searchable(message))} " for message in transcript.messages]
        log, literal = Log(transcript.messages, embed), all_words(words)
        for question in questions_of(transcript):
            log.grow(question.at)
            for form, query in (("whole", question.text), ("keywords", keywords(question, words))):
                start = time.perf_counter()
                found = {"ranked": log.ranked(query)}
                times.append(time.perf_counter() - start)
                found |= {"all words": literal(query, question.at), "as shown": log.recalled(query)}
                found |= {"semantic": log.semantic(query)} if embed else {}
                row = hits.setdefault(f"{question.kind}, {form}", Counter())
                row["questions"] += 1
                row.update({name: not question.answers.isdisjoint(places) for name, places in found.items()})
    searches = (*SEARCHES, "semantic") if embed else SEARCHES
    table = {
        name: {"questions": row["questions"], **{search: row[search] / row["questions"] for search in searches}}
        for name, row in sorted(hits.items(), reverse=True)
    }
    return table, sorted(times)[len(times) // 2] * 1000 if times else 0.0


def print_speed(transcripts: Sequence[Transcript], entries: int) -> None:
    """Print how long an entry takes to be written, and a question to be answered, in each store."""
    messages = [message for transcript in transcripts for message in transcript.messages if message["role"] != "system"]
    print(f"{entries:,} entries in one session, milliseconds\n")
    with databases(["memory", "sqlite", "postgresql"]) as urls:
        for name, url in urls.items():
            store = InMemoryCompactionStore() if name == "memory" else SqlCompactionStore(Database(url))
            start, head = time.perf_counter(), SessionHead()
            for at in range(0, entries, 500):
                places = range(at, min(at + 500, entries))
                new = [replace(read_entry(messages[i % len(messages)], ""), id=f"m{i + 1}") for i in places]
                stored = tuple(StoredMessage(i + 1, message, 0) for i, message in zip(places, new, strict=True))
                head = store.commit(Commit(session_id="s", expected=head, messages=stored))
            print(f"{name:12}{(time.perf_counter() - start) * 1000 / entries:>10.2f}  to write an entry")
            for question in SPEED_QUESTIONS:
                store.search("s", question, 8)
                print(f"{'':12}{milliseconds(partial(store.search, 's', question, 8)):>10.1f}  {question}")
            store.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if less is found than was")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    parser.add_argument("--semantic", action="store_true", help="measure the search by meaning, too")
    parser.add_argument("--speed", action="store_true", help="measure how long it takes instead")
    parser.add_argument("--entries", type=int, default=12_000, help="how long the session is for --speed")
    options = parser.parse_args()
    transcripts = read_transcripts(data_folder())
    if not transcripts:
        sys.exit(f"no transcripts in {data_folder()}")
    if options.speed:
        print_speed(transcripts, options.entries)
        return
    table, median = measure(transcripts, load_packaged_model() if options.semantic else None)
    if options.json:
        print(json.dumps(table))
    else:
        show(table, median)
    low = [name for name, floor in FLOORS.items() if table[name]["as shown"] < floor]
    if options.check and low:
        sys.exit(f"less is found than was: {', '.join(low)}")


def show(table: dict[str, dict[str, float]], median: float) -> None:
    """Print the shares, and how long a search took."""
    searches = [name for name in next(iter(table.values())) if name != "questions"]
    print(f"found in the first {FIRST} results, % of the questions\n")
    print(f"{'':18}{'questions':>10}" + "".join(f"{name:>12}" for name in searches))
    for name, row in table.items():
        print(f"{name:18}{row['questions']:>10,}" + "".join(f"{100 * row[search]:>12.1f}" for search in searches))
    print(f"\na search: {median:.1f} ms, the median")


if __name__ == "__main__":
    main()
