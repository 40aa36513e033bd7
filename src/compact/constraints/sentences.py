"""The sentences of a message that a person typed: without code, logs, quotes and what a harness put around them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

# Chosen: what people type has shorter sentences; longer ones are cut, so that no text costs more than its length.
MAX_SENTENCE_CHARS = 600
_MIN_CHARS = 4
# Chosen: typed messages are shorter, and have no headings and hardly any lists.
_PASTED_CHARS = 6000
_PASTED_LIST_CHARS = 1500
_PASTED_BULLETS = 8
_PASTED_RUNS = 8
_PASTED_HEADINGS = 2
# Chosen: the first and last sentences around pasted text, and a first or last paragraph up to this size, are typed.
_TYPED_ENDS = 2
_MAX_FRAME_CHARS = 700
# Chosen. Of a text more than twice as long as `_END_CHARS` only the two ends are read; the others keep the search for
# tags and wrapped lines short.
_END_CHARS = 100_000
_MAX_TAG_NAMES = 40
_MAX_LINE_CHARS = 300
_MIN_WRAPPED_CHARS = 40

_FENCE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_TAG = re.compile(r"</?([A-Za-z][\w:-]*)(?:\s[^<>\n]{0,200})?>")
# Tags around what a harness or a tool says in a person's place; other tags hold what somebody pasted.
_TOOL_TAGS = re.compile(
    r"system|command-(?!args)|local-command|task-|tool|bash|stdout|stderr|output|result|usage|function|environment"
    r"|ide[-_]|file|document|context|status|summary|note$|cwd|shell|error|hook|reminder|svg|style|script|html|thinking|example",
    re.IGNORECASE,
)
# Tags around what the person says.
_PERSON_TAGS = re.compile(
    r"(?:.*(?:user|human|query|question|request|args|prompt).*|message|input|b|i|p|em|strong|br|li|ul|div|span)",
    re.IGNORECASE,
)
_NOT_PROSE = re.compile(
    r"""\s*(?:
      [>|$│┃├└┌⎿⏺✓✗✔✘] | // | /\* | <!-- | \+\+\+ | --- | @@ | [}\])]+[,;]?\s*$
    | [{\[]\s*["'{\[] | ["'][\w.-]+["']\s*: | [\w.-]+\s*=\s*\S+\s*$
    | \[?\d{4}-\d\d-\d\d[T ]\d\d: | \[?\d\d:\d\d:\d\d | \[?(?:INFO|DEBUG|WARN|WARNING|ERROR|TRACE)\b
    | at\s\S+\s?\( | File\s" | Traceback\s | (?:import|from)\s[\w.]+\s*(?:import\b|;|$) | [-+]\s{2,}\S
    )""",
    re.VERBOSE,
)
_SYMBOLS = re.compile(r"[{}();=<>\[\]$\\|&_/+*^~]")
_BULLET = re.compile(r"[ \t]*(?:#{1,6}|[-*•–+]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])[ \t]+")
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]", re.MULTILINE)
_STOP = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+(?=\s)|[。！？]++[”’」』）]*+")
_OPEN_END = re.compile(
    r"(?:,|\b(?:a|an|the|and|or|but|of|to|in|on|at|by|for|from|with|without|into|than|that|which|if|when|because|your|my"
    r"|our|their|its|is|are|be|not|never|always|only|run))$",
    re.IGNORECASE,
)
_BREAK = re.compile(r"[,;]\s|\s(?=(?:and|also|but|so|then|btw|please)\s)")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|mr|mrs|ms|dr|prof|st|no|nr|approx|incl|resp|ca|cf|fig|bzw|ggf|usw"
    r"|z\.\s?b|d\.\s?h|u\.\s?a|p\.\s?ex|sr|sra|\d)"
    r"|(?:^|\s)\w)\.$",
    re.IGNORECASE,
)
# Words that no name begins with, and most orders do: "take plan B. Do not delete it" are two sentences.
_OPENS_ORDER = re.compile(
    r"\s+(?:Do|Don['’]?t|Never|Always|Please|Only|Avoid|Bitte|Niemals|Nie|Immer|Ne|Jamais|Toujours|Nunca|Siempre)\b"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A range of the message, the paragraph it stands in, and whether it looks like pasted text.

    `bullet` says that it is in a point of a list or in a heading, `opens` that it is the first sentence there.
    """

    start: int
    end: int
    paragraph: int
    pasted: bool
    bullet: bool
    opens: bool = True


@dataclass(frozen=True, slots=True)
class _Run:
    """Lines that belong together: a paragraph of prose, or one bullet."""

    start: int
    end: int
    paragraph: int
    bullet: bool


def typed_sentences(text: str) -> tuple[Sentence, ...]:
    """Return the sentences a person may have typed, in order; pasted ones are marked as such.

    Of a very long text only the two ends are read: nobody sets a constraint in the middle of a megabyte.
    """
    if len(text) > 2 * _END_CHARS:
        tail = text.find("\n", len(text) - _END_CHARS) + 1 or len(text) - _END_CHARS
        behind = (replace(item, start=item.start + tail, end=item.end + tail) for item in _read(text[tail:], long=True))
        return _with_typed_ends([*_read(text[:_END_CHARS], long=True), *behind])
    return _with_typed_ends(_read(text, long=False))


def _read(text: str, *, long: bool) -> list[Sentence]:
    prose, quoted = _blank_tools(text)
    runs = tuple(_runs(prose))
    pasted = long or _is_pasted(prose, runs)
    starts = [start for start, _ in quoted]
    found: list[Sentence] = []
    for run in runs:
        block = bisect_right(starts, run.start) - 1
        is_quoted = block >= 0 and run.start < quoted[block][1]
        is_pasted = is_quoted or (pasted and not _is_frame(run, runs))
        spans = [span for span in _split(prose, run.start, run.end) if _is_prose(prose[span[0] : span[1]])]
        found += [
            Sentence(start, end, run.paragraph, is_pasted, run.bullet, start == run.start) for start, end in spans
        ]
    return found


def _with_typed_ends(found: list[Sentence]) -> tuple[Sentence, ...]:
    """Return the sentences with the first and last ones as typed: people write before and behind what they paste.

    A heading or a point of a list at an end is part of what was pasted; a sentence behind it in its line may be typed.
    """
    ends = {*range(_TYPED_ENDS), *range(len(found) - _TYPED_ENDS, len(found))}
    return tuple(
        replace(item, pasted=False) if place in ends and not (item.bullet and item.opens) else item
        for place, item in enumerate(found)
    )


def _blank_tools(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text at its length with code and what tools said blanked, and the ranges that tags mark as pasted."""
    if "```" in text or "~~~" in text:
        text = _FENCE.sub(_newlines, text)
    return _blank_tags(text) if "<" in text and ">" in text else (text, [])


def _newlines(match: re.Match[str]) -> str:
    return "\n" * (match.end() - match.start())


def _blank_tags(text: str) -> tuple[str, list[tuple[int, int]]]:
    pieces: list[str] = []
    quoted: list[tuple[int, int]] = []
    closes: dict[str, int] = {}
    position = 0
    for tag in _TAG.finditer(text):
        if tag.start() < position:
            continue
        end, opens = tag.end(), text[tag.start() + 1] != "/"
        block_end = _block_end(text, tag, closes) if opens else end
        is_person = _PERSON_TAGS.fullmatch(tag[1]) is not None
        is_tool = not is_person and _TOOL_TAGS.match(tag[1]) is not None
        if opens and block_end == end and not is_person and not is_tool:
            # A placeholder in a sentence, as in "name it cache/<hash>".
            continue
        if is_tool:
            end = block_end
        elif not is_person and block_end > end and (not quoted or quoted[-1][1] <= end):
            quoted.append((end, block_end))
        pieces += [text[position : tag.start()], "\n" * (end - tag.start())]
        position = end
    return "".join([*pieces, text[position:]]), quoted


def _block_end(text: str, tag: re.Match[str], closes: dict[str, int]) -> int:
    """Return where the block of a tag ends; the end of the tag itself if it is never closed."""
    name, end = tag[1], tag.end()
    # Looking again and again, or for every name there could be, would make a crafted text cost its square.
    if name not in closes:
        closes[name] = text.find(f"</{name}>", end) if len(closes) < _MAX_TAG_NAMES else -1
    if -1 < closes[name] < end:
        closes[name] = text.find(f"</{name}>", end)
    return closes[name] + len(name) + 3 if closes[name] >= 0 else end


def _runs(text: str) -> Iterator[_Run]:
    paragraph, start, end, bullet = 0, -1, -1, False
    position = 0
    for line in text.splitlines(keepends=True):
        line_start, position = position, position + len(line)
        body = line.rstrip()
        if not body or _NOT_PROSE.match(body):
            if start >= 0:
                yield _Run(start, end, paragraph, bullet)
            start = -1
            paragraph += 1
            continue
        marker = _BULLET.match(line)
        if start >= 0 and (marker or not _is_wrapped(text[max(start, end - _MAX_LINE_CHARS) : end], body)):
            yield _Run(start, end, paragraph, bullet)
            start = -1
        if start < 0:
            start = line_start + (marker.end() if marker else len(body) - len(body.lstrip()))
            bullet = marker is not None
        end = line_start + len(body)
    if start >= 0:
        yield _Run(start, end, paragraph, bullet)


def _is_prose(sentence: str) -> bool:
    """Return False for what has too many symbols to be prose, and for what is too short to say anything."""
    return len(sentence) >= _MIN_CHARS and len(_SYMBOLS.findall(sentence)) <= 2 + len(sentence) // 12


def _is_wrapped(so_far: str, line: str) -> bool:
    """Return True if a line continues the one before: that is long and open, and this begins as no sentence does.

    A line that ends with a comma or a word like "the" is open however long it is and however the next one begins.
    """
    last = so_far[so_far.rfind("\n") + 1 :]
    if _OPEN_END.search(last):
        return True
    begins = line.lstrip()[:1]
    return len(last) >= _MIN_WRAPPED_CHARS and last[-1] not in ".!?:;" and (begins.islower() or begins in "`(\"'“‘&")


def _is_pasted(text: str, runs: tuple[_Run, ...]) -> bool:
    if len(runs) < _PASTED_RUNS:
        return False
    chars = sum(run.end - run.start for run in runs)
    headings = len(_HEADING.findall(text))
    if chars > _PASTED_CHARS or headings >= _PASTED_HEADINGS:
        return True
    return chars > _PASTED_LIST_CHARS and sum(run.bullet for run in runs) >= _PASTED_BULLETS


def _is_frame(run: _Run, runs: tuple[_Run, ...]) -> bool:
    """Return True for a short first or last paragraph around pasted text: people type these themselves."""
    at_an_end = run.paragraph in (runs[0].paragraph, runs[-1].paragraph)
    return at_an_end and not run.bullet and run.end - run.start < _MAX_FRAME_CHARS


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    begin = start
    for stop in _STOP.finditer(text, start, end):
        if stop.end() >= end or not _ends_sentence(text, begin, stop):
            continue
        yield from _cut(text, begin, stop.end())
        begin = stop.end()
        while begin < end and text[begin].isspace():
            begin += 1
    if begin < end:
        yield from _cut(text, begin, end)


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a sentence; one that is too long in pieces, cut at a comma or before a conjunction."""
    while end - start > MAX_SENTENCE_CHARS:
        least, most = start + MAX_SENTENCE_CHARS // 2, start + MAX_SENTENCE_CHARS
        pauses = [pause.start() + 1 for pause in _BREAK.finditer(text, least, most)]
        cut = pauses[-1] if pauses else text.rfind(" ", least, most) + 1 or most
        yield start, cut
        start = cut
    yield start, end


def _ends_sentence(text: str, begin: int, stop: re.Match[str]) -> bool:
    mark = stop[0]
    if mark == "." and _ABBREVIATION.search(text, max(begin, stop.end() - 12), stop.end()):
        return _OPENS_ORDER.match(text, stop.end()) is not None
    following = text[stop.end() : stop.end() + 2].lstrip()
    # A quoted exclamation or three dots in the middle of a sentence.
    quoted = mark[-1] in "\"'”’»)]" or mark[0] == "…" or mark.startswith("...")
    return not (quoted and following[:1].islower())
