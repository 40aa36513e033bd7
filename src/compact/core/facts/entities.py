"""Find the specific strings of a text: what cannot be guessed, only remembered.

Paths, addresses, identifiers, ids, numbers, dates, flags, names of errors and quoted phrases. Linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache


class EntityKind(Enum):
    """What a specific string is."""

    URL = "url"
    PATH = "path"
    ERROR = "error"
    FLAG = "flag"
    DATE = "date"
    NUMBER = "number"
    IDENTIFIER = "identifier"
    ID = "id"
    QUOTED = "quoted"


@dataclass(frozen=True, slots=True)
class Entity:
    """A specific string as it stands in a text, and where."""

    kind: EntityKind
    text: str
    start: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


# A token is a run without blanks, brackets or quotes; what it is, its shape tells. Backslashes part tokens too: in
# arguments and JSON they stand before an escaped line end far more often than in a path, but for one with a drive.
# Most of a text is plain words, which are no specific strings: each run of them is passed over at once.
_BREAKS = r"\s\"'`()\[\]{}<>,;|*!?“”‘’«»…→—、。，；！？（）【】\\"
_TOKEN = re.compile(
    r"(?:[A-Za-z][a-z]*+[ \n]++)++|</[\w:.-]+|\\+(?:u[0-9a-fA-F]{4}|[nrtbf])?"
    r"|((?<!\w)[A-Za-z]:(?:\\{1,2}[\w.$~@+-]+)+"
    rf"|[^{_BREAKS}]+(?:(?<=\d),(?=\d{{3}}(?!\d))[^{_BREAKS}]+)*)"
)
# Chosen: longer runs are data (base64, minified code), which nobody names.
_MAX_CHARS = 300
# The same short runs come again and again, in a pass and from pass to pass. Measured on a session of 350,000 tokens,
# which has 7,300 of them: as fast as with 65,536, and never more than about 3 MB.
_CACHED_RUNS = 8_192
_CACHED_RUN_CHARS = 48
_TRIM_START, _TRIM_END = ".:=&^@$%+", ".:=&^~@#$%/-+"
_QUOTED = re.compile(r"\"([^\"\n]{3,80})\"|`([^`\n]{3,80})`|“([^”\n]{3,80})”|(?<![\w])'([^'\n]{3,80})'(?![\w])")
_PIECES = re.compile(r"[=&:]+")
# A search tool puts the number of a line behind the file: `main.go-120`.
_LINE_NUMBER = re.compile(r"(?<=\w)(\.[A-Za-z]\w{0,4})-\d+$")

_EXTENSIONS = (
    "py|pyi|pyx|ipynb|js|jsx|ts|tsx|mjs|cjs|mts|vue|svelte|astro|go|rs|java|kt|scala|swift|dart|c|h|cc|cpp|hpp|"
    "cs|rb|php|pl|lua|ex|exs|erl|hs|clj|zig|nix|sh|bash|zsh|fish|ps1|bat|cmd|sql|proto|graphql|tf|gradle|md|mdx|"
    "rst|txt|adoc|tex|pdf|json|jsonl|json5|ndjson|yaml|yml|toml|ini|cfg|conf|properties|lock|xml|html|htm|css|"
    "scss|less|svg|png|jpg|jpeg|gif|webp|ico|mp3|mp4|wav|csv|tsv|parquet|xls|xlsx|docx|pptx|log|gz|zip|tar|tgz|"
    "bz2|whl|jar|so|dll|exe|deb|db|sqlite|patch|diff|snap|tmpl|j2|pem|crt|mod|sum|bak|orig|dockerfile|gitignore"
)
_UNITS = (
    r"%|[kKMGTx]|[KMGTkmg]i?[bB]|bp?s|[mnuµ]?s|m|h|d|min|secs?|hrs?|px|r?em|pt|st|nd|rd|th|[kMG]?Hz|k?Wh?"
    r"|USD|EUR|GBP|[ap]m|[eE]-?\d{1,3}"
)
_SHAPES: tuple[tuple[EntityKind, re.Pattern[str]], ...] = (
    (EntityKind.URL, re.compile(r"(?:[a-z][a-z0-9+.-]{1,15}://|www\.)\S{3,}", re.IGNORECASE)),
    (
        EntityKind.ERROR,
        re.compile(
            r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Warning|Failure)|ERR_\w+|SIG[A-Z]{3,}"
            r"|(?:TS|CS|SC|RUF|ORA-)\d{3,5}|[A-Z]\d{3,4}"
            r"|E(?:ACCES|ADDRINUSE|AGAIN|BADF|BUSY|CONN(?:ABORTED|REFUSED|RESET)|EXIST|HOSTUNREACH|INTR|INVAL|IO|ISDIR"
            r"|MFILE|NOENT|NOMEM|NOSPC|NOTDIR|NOTEMPTY|NOTFOUND|PERM|PIPE|RESOLVE|ROFS|TIMEDOUT)"
        ),
    ),
    (EntityKind.FLAG, re.compile(r"--[A-Za-z][\w-]*|-[A-Za-z]\w+")),
    (
        EntityKind.DATE,
        re.compile(
            r"\d{4}[-/]\d{1,2}(?:[-/]\d{1,2}(?:T[\d:.]+(?:Z|[+-][\d:]+)?)?)?"
            r"|\d{1,2}[-/]\d{1,2}[-/]\d{2,4}|\d{1,2}\.\d{1,2}\.\d{4}|\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?"
        ),
    ),
    (EntityKind.NUMBER, re.compile(rf"[-+]?\d[\d.,_]*(?:{_UNITS})?")),
    (
        EntityKind.PATH,
        re.compile(
            rf"(?=.*[A-Za-z])~?(?:[\w.@+~-]*/)+[\w.@+~-]*|[A-Za-z]:\\.+|[\w@+-]+(?:\.[\w@+-]+)*\.(?i:{_EXTENSIONS})"
        ),
    ),
)
# Two words of prose with a stroke between them: Missing/empty.
_EITHER_OR = re.compile(r"[A-Z][A-Za-z]*/[A-Za-z]+|[a-z]+/[A-Z][A-Za-z]*|and/or")
_ID = re.compile(r"(?=[\w.-]*\d)(?=[\w.-]*[A-Za-z])[\w-]+(?:\.[\w-]+)*|[\w.+-]+@[\w-]+\.[\w.-]+|#\w+")
_MIN_ID_CHARS = 4
_IDENTIFIER = re.compile(
    r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|#)[A-Za-z_$][\w$]*)+|[a-z]+(?:[A-Z][a-z0-9]*)+|(?:[A-Z][a-z0-9]+){2,}|\w*_\w+"
    r"|[A-Z][A-Z0-9]{2,}|[a-z]{2,}\d+|[A-Za-z]+(?:-[A-Za-z]+){2,}"
)
# Words that people write in capitals: no names.
_CAPITAL_WORDS = re.compile(
    "ALL|ALSO|ALWAYS|AND|ANY|ARE|BAD|BEFORE|BUT|CAN|CANNOT|CRITICAL|DO|DONE|DONT|EVERY|EXACT|EXACTLY|FAIL|FAILED|"
    "FALSE|FIRST|FIXED|FOR|FROM|GOOD|HAS|HIGH|IMPORTANT|INFO|INTO|ITS|LOW|MANDATORY|MAY|MORE|MUST|NEVER|NEW|NONE|"
    "NOT|NOTE|NOW|NULL|OLD|ONE|ONLY|OUR|PASS|PASSED|PLEASE|REALLY|REQUIRED|SHOULD|STOP|THAT|THE|THEN|THIS|TRUE|"
    "USE|VERY|WARNING|WAS|WHAT|WHEN|WHY|WILL|WITH|WITHOUT|YES|YOU|YOUR"
)


def find_entities(text: str) -> Iterator[Entity]:
    """Yield every specific string of a text, in order, with quoted phrases after the rest."""
    for match in _TOKEN.finditer(text):
        if match.lastindex:
            start = match.start()
            for kind, piece, place in _parts(match.group()):
                yield Entity(kind, piece, start + place)
    for match in _quoted(text):
        group = match.lastindex or 0
        if _is_phrase(match.group(group)):
            yield Entity(EntityKind.QUOTED, match.group(group), match.start(group))


def entity_kinds(text: str) -> dict[str, EntityKind]:
    """Return the same strings, each once and without its place: several times as fast."""
    found: dict[str, EntityKind] = {}
    for run in dict.fromkeys(_TOKEN.findall(text)):
        # Not `_parts`: most of the time of a compaction is spent here, and a call for each word shows.
        for kind, piece, _ in _cached_parts(run) if len(run) <= _CACHED_RUN_CHARS else _find_parts(run):
            found[piece] = kind
    for match in _quoted(text):
        phrase = match.group(match.lastindex or 0)
        if _is_phrase(phrase):
            found.setdefault(phrase, EntityKind.QUOTED)
    return found


def kind_of(token: str) -> EntityKind | None:
    """Return what a token is, or None for an ordinary word."""
    if token.isalpha() and (token.islower() or token[1:].islower() or _CAPITAL_WORDS.fullmatch(token)):
        return None
    for kind, shape in _SHAPES:
        if shape.fullmatch(token):
            if kind is EntityKind.PATH and _EITHER_OR.fullmatch(token):
                return None
            return None if kind is EntityKind.NUMBER and _digits(token) < 3 else kind
    if len(token) >= _MIN_ID_CHARS and _ID.fullmatch(token):
        return EntityKind.ID
    return EntityKind.IDENTIFIER if _IDENTIFIER.fullmatch(token) else None


def _parts(run: str) -> tuple[tuple[EntityKind, str, int], ...]:
    return _cached_parts(run) if len(run) <= _CACHED_RUN_CHARS else _find_parts(run)


def _find_parts(run: str) -> tuple[tuple[EntityKind, str, int], ...]:
    """Return the specific strings in a run of characters with their places: the run, or parts of `name=value`."""
    token, start = _trimmed(run, 0)
    if not 2 <= len(token) <= _MAX_CHARS:
        return ()
    kind = kind_of(token)
    if kind:
        piece = _LINE_NUMBER.sub(r"\1", token) if kind is EntityKind.PATH and "-" in token else token
        return ((kind, piece, start),)
    found: list[tuple[EntityKind, str, int]] = []
    place = 0
    for piece in _PIECES.split(token) if _PIECES.search(token) else ():
        place = token.index(piece, place)
        cut, begin = _trimmed(piece, start + place)
        kind = kind_of(cut) if len(cut) > 1 else None
        if kind:
            found.append((kind, cut, begin))
        place += len(piece)
    return tuple(found)


_cached_parts = lru_cache(maxsize=_CACHED_RUNS)(_find_parts)


def _quoted(text: str) -> Iterable[re.Match[str]]:
    """Return what stands in quotation marks; texts without any are not searched."""
    has_any = '"' in text or "`" in text or "'" in text or "“" in text  # one by one: in a third of the time of a loop
    return _QUOTED.finditer(text) if has_any else ()


def _is_phrase(text: str) -> bool:
    """Return True for several words that were quoted; what is between two quotations begins or ends with a blank."""
    if "\\" in text or not 1 <= text.count(" ") <= 8:
        return False
    return text[0] not in " .,;:)" and text[-1] not in " (,"


def _trimmed(token: str, start: int) -> tuple[str, int]:
    """Return a token without the punctuation around it; a leading mark that belongs to it stays."""
    cut = token.rstrip(_TRIM_END)
    if cut and cut[0] in _TRIM_START and not (cut[0] == "." and "/" in cut):
        bare = cut.lstrip(_TRIM_START)
        start += len(cut) - len(bare)
        cut = bare
    return cut, start


def _digits(token: str) -> int:
    return sum(char.isdigit() for char in token)
