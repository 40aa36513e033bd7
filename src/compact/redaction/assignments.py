"""Secrets that follow their name: `API_KEY=…`, `"password": "…"`, `--token …`, `<secret>…</secret>`, and the like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compact.redaction import values
from compact.redaction.names import FOREIGN_NAMES, Kind, kind_of_name

Span = tuple[int, int]

# One of these is in every name of a secret. Beyond ASCII bytes have no case, so each is sought as a word may begin.
_FOREIGN = tuple(name for name in FOREIGN_NAMES if "pass" not in name)
_ASCII = bytes(range(128))
# Each with its bytes beyond ASCII: of these a text has few, so that one look at them rules out nearly all needles.
_WIDE_NEEDLES = {
    form.encode(): form.encode().translate(None, _ASCII)
    for name in _FOREIGN
    if not name.isascii()
    for form in (name, name[0].upper() + name[1:])
}
# What the plain ones share is sought once: the rest of a name is read around it.
_STEMS = ("schluessel", "contrasen", "parola", "chiave", "chave", "clave", "cle_")


def _has_stem(name: str) -> bool:
    return " " not in name and any(stem in name for stem in _STEMS)


ASCII_NEEDLES = (
    *(b"pass", b"pw", b"secret", b"token", b"key", b"cred", b"auth", b"jwt", b"psk", b"mdp"),
    *(stem.encode() for stem in _STEMS),
    *(name.encode() for name in _FOREIGN if name.isascii() and not _has_stem(name)),
)
NEEDLES = (*ASCII_NEEDLES, *_WIDE_NEEDLES)

# From the needle on: the rest of the name, what closes it, and what leads to the value.
_LEAD = re.compile(
    rb"""
    (?P<rest>[A-Za-z0-9_-]{0,48}+(?:[ ]\d{1,2}(?=:))?) (?P<close>\\{0,8}["'`]?(?:\[\d{0,5})?\]?[*_]{0,2})
    (?: [ \t]{0,8}+ (?P<compare>===?|!==?|=>|\|\||\?\?) [ \t]{0,8}+
      | (?P<sign>[ \t]{0,8}+ (?::=|:|=|\xef\xbc\x9a) [*_]{0,2} [ \t]{0,8}+)
        (?: (?:&(?:'\w{1,12}[ ])?)? (?:[A-Za-z_][\w.]{0,30}+|(?=\[)) (?:\[[\w.,; |]{0,30}\])? \?? [ \t]{0,4} =
            [ \t]{0,4} (?=b?\\{0,8}["'`]) )?  # a type
        (?: (?:String|SecretString|SecretStr|Secret|Zeroizing) (?:::(?:from|new))? \( (?=["']) )?  # the text in it
        (?: \r?\n[ \t]{0,40} (?=["'`]) )?
      | (?:[\s,]|\\[nr]){1,40}+ \\{0,8}["']?value\\{0,8}["']? [ \t]{0,4} (?P<pair>[:=]) [ \t]{0,4}
      | (?P<tag>(?:[ ][\w:]{1,30}="[^"<>]{0,200}"){0,4}> | </key>\s{0,40}<string>)
      | (?P<percent>%22(?:%20)?%3[Aa](?:%20)?%22)
      | (?P<call>\() [ \t]{0,4} (?=\\{0,8}["'`])
      | [ \t]{1,8} (?P<loose>\||(?:is|was|to|ist|war|lautet|est|es)[ \t]{1,4}:?) [ \t]{0,8}
      | [ \t]{0,4} (?P<is>\xe6\x98\xaf|\xe4\xb8\xba|\xe3\x81\xaf) [ \t]{0,4}  # is, in Chinese and in Japanese
      | (?P<comma>,) [ \t]{0,4} (?=\\{0,8}["'`])
      | (?P<space>[ \t]{1,8})
    )
    """,
    re.VERBOSE,
)
_QUOTE = re.compile(rb"[bfruBFRUN]{0,2}(\\{0,8})([\"'`])")
_QUOTED = {
    b'"': re.compile(rb'(?:[^"\\\n]|\\.){0,8192}+(?=")'),
    b"'": re.compile(rb"(?:[^'\\\n]|\\.){0,8192}+(?=')"),
    b"`": re.compile(rb"[^`\n]{0,8192}+(?=`)"),
}
_BARE = re.compile(rb"[^\s\"'`]{1,96}+")
_BARE_REST = re.compile(rb"[^\s\"'`<>&;,]*+")
_BARE_END = re.compile(
    rb"\\+[nrt\"']|</|<REDACTED|&(?=[\w.%-]{1,40}=)|;(?=[ \w.%-]{1,40}=)|,(?=$|[\w.-]{1,40}[:=])|[)\]}](?=[,;)\]}])"
)
_TRAILING = b")]},;.:\\|"
_MAY_END = _TRAILING + b"<&"
_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_JUDGED = 96  # bytes: enough to tell, and a text made of names costs no more than its length
_TAG_HEAD = re.compile(rb"<(?:\w{1,20}:)?$")
_SET = re.compile(rb"(?:^|[\s;])set(?:[ \t]{1,4}-{1,2}[a-z]{1,10}){1,4}[ \t]{1,4}$")  # fish
_NETRC = re.compile(rb" login \S{1,60}\s{1,8}$")
# In the files of servers these begin a line, and the secret follows a space.
_DIRECTIVE = re.compile(rb"(?:bindpw|requirepass|masterauth|insecure-password)$", re.IGNORECASE)
# There the second argument is the value of the first, or what it is if there is none.
_NAMING_CALL = re.compile(
    rb"(?:env|environ\.get|environ\.setdefault|fetch|define|\.put|\.set|setproperty)\([ ]{0,4}"
    rb"(?:[\"'][\w.-]{1,24}[\"'],[ ]{0,4})?[\"']$",
    re.IGNORECASE,
)
_SETTER = re.compile(rb"(?:^|\.)(?:set|with)_?[a-z]{0,40}$|^\.[a-z_]{1,40}$", re.IGNORECASE)
_MORE_WORDS = re.compile(rb"[ \t]{1,8}(?:[A-Za-z(\"'`|&+=]|\d{1,3} [A-Za-z])|[ \t]{0,8}[(\[]")
_MORE_CODE = re.compile(rb"[ \t]{1,8}[(|&+?*%-]|[ \t]{0,8}[(\[]")


@dataclass(frozen=True, slots=True)
class _Value:
    """What stands where the value should: its place, its bytes, how it is written, and whether the line continues."""

    start: int
    end: int
    found: bytes
    is_quoted: bool = True
    is_equated: bool = False
    continues: bool = False


def find_assignments(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield where in `data` a value is a secret because of the name before it; `low` is `data` in lower case."""
    for needle in _possible_needles(data):
        at = low.find(needle)
        while at >= 0:
            after = at + len(needle)
            lead = _LEAD.match(data, after)
            if lead:
                span = _secret_after(data, at, lead)
                if span:
                    yield span
                after = span[1] if span else lead.end("rest")
            at = low.find(needle, after)


def _possible_needles(data: bytes) -> Iterable[bytes]:
    if data.isascii():
        return ASCII_NEEDLES
    wide = data.translate(None, _ASCII)
    return (*ASCII_NEEDLES, *(needle for needle, part in _WIDE_NEEDLES.items() if part in wide))


def _secret_after(data: bytes, at: int, lead: re.Match[bytes]) -> Span | None:
    start = _name_start(data, at)
    kind = _kind(data, start, lead.end("rest")) if _is_lead(data, start, lead) else Kind.NONE
    if kind is Kind.NONE:
        return None
    value = _value_after(data, lead)
    if not value or not value.found or values.is_ordinary(value.found):
        return None
    is_secret = _is_secret(data, start, lead, value, kind) and not values.is_placeholder(value.found)
    return (value.start, _whole_end(data, value)) if is_secret else None


def _is_lead(data: bytes, start: int, lead: re.Match[bytes]) -> bool:
    """Return True if what follows the name can lead to a value: `>` only in a tag, `(` only where something is set."""
    if lead["tag"]:
        return _is_in_tag(data, start, lead)
    if lead["call"]:
        return bool(_SETTER.search(data[start : lead.end("rest")]))
    return bool(lead["close"]) or not lead["comma"]


def _is_in_tag(data: bytes, start: int, lead: re.Match[bytes]) -> bool:
    """Return True for `<password>`, `<wsse:Password Type="…">`, `<entry key="password">` and `<key>token</key>`."""
    before = data[max(0, start - 24) : start]
    if lead["tag"].startswith(b"</key>"):
        return before.endswith(b"<key>")
    return before.endswith((b'name="', b'key="')) if lead["close"] else bool(_TAG_HEAD.search(before))


def _takes_argument(data: bytes, start: int, end: int) -> bool:
    """Return True for a flag, `ENV NAME value`, `set -x NAME value` and lines of .netrc, ldap.conf and redis.conf.

    There a mere space leads to the value.
    """
    before = data[max(0, start - 80) : start].lower()
    if data[start : start + 1] == b"-" or before.endswith((b"env ", b"setx ", b"configure set ")):
        return True
    if _DIRECTIVE.match(data, start, end):
        return not before.strip() or before.rstrip(b" \t").endswith(b"\n")
    return bool(_NETRC.search(before) or _SET.search(before))


def _kind(data: bytes, start: int, end: int) -> Kind:
    name = data[start:end].decode("utf-8", "replace")
    if name.lower() == "passe" and data[max(0, start - 7) : start].lower() == b"mot de ":
        return Kind.SURE
    if name.lower() == "key" and data[start - 1 : start] == b" ":
        # "API key: …": the word before the space belongs to the name.
        name = data[_name_start(data, start - 1) : end].decode("latin-1")
    if name.lower().endswith("authorization"):
        return Kind.NONE  # the carriers know what may follow it
    if data[start - 1 : start] == b":" and data.rfind(b"arn:", max(0, start - 100), start) >= 0:
        return Kind.NONE  # the `secret:` in it is the kind of the resource
    return kind_of_name(name)


def _name_start(data: bytes, at: int) -> int:
    floor = max(0, at - 64)
    start = floor + len(data[floor:at].rstrip(_NAME_BYTES))
    # In `…\nAPI_KEY=…` inside a JSON text the `n` is part of the escape, not of the name.
    return start + 1 if start < at and data[start - 1 : start] == b"\\" and data[start : start + 1] in b"nrt" else start


def _is_secret(data: bytes, start: int, lead: re.Match[bytes], value: _Value, kind: Kind) -> bool:
    """Return True for a secret: a sign before the value asks least of it, a mere space most."""
    if lead["sign"] or lead["pair"] or lead["tag"] or lead["percent"]:
        return _is_assigned(value, kind)
    if lead["compare"] or (lead["comma"] and _NAMING_CALL.search(data[max(0, start - 60) : start])):
        return value.is_quoted and _is_assigned(value, kind)
    if lead["call"] and data[start : start + 1] != b".":  # `.token("…")` may as well ask for one
        return _is_assigned(value, kind)
    if lead["space"] and _takes_argument(data, start, lead.end("rest")):
        return _is_passed(value, kind)
    if lead["space"] and data[lead.end() : lead.end() + 1] not in (b'"', b"'", b"`"):
        return kind is Kind.SURE and values.is_strong(value.found)
    return _is_mentioned(value, kind)


def _is_assigned(value: _Value, kind: Kind) -> bool:
    found = value.found
    if len(found) < 3 or (kind is Kind.LIKELY and not values.looks_random(found)):
        return False
    if not value.is_quoted and (values.is_reference(found) or values.is_code(found) or _is_type_of_one(found)):
        return False
    if kind is Kind.LIKELY:
        return value.is_quoted or values.is_one_token(found)
    if kind is Kind.HINT:
        # `PASS: TestLogin2` is the outcome of a test, `PASS=hunter2` is not.
        is_password = (value.is_quoted or value.is_equated) and values.looks_like_password(found)
        return is_password or values.looks_random(found)
    if values.is_path_or_measure(found):
        return found.isdigit() and len(found) >= 4 and not value.continues
    if value.is_quoted:
        return not (values.is_prose(found) or _is_name_of_one(found))
    return not value.continues or values.looks_like_password(found) or values.looks_random(found)


def _is_name_of_one(found: bytes) -> bool:
    """Return True for a quoted name in the place of a secret: `"challengePassword"`, `"db_password"`."""
    is_joined = b"_" in found or not found.islower()
    return (
        values.is_reference(found) and is_joined and kind_of_name(found.decode("latin-1")) in (Kind.SURE, Kind.LIKELY)
    )


def _is_type_of_one(found: bytes) -> bool:
    """Return True for the name of a class in the place of a secret: `Ed25519PrivateKey`."""
    return values.is_camel_name(found) and kind_of_name(found.decode("latin-1")) is not Kind.NONE


def _is_mentioned(value: _Value, kind: Kind) -> bool:
    if kind is Kind.HINT or values.is_camel_name(value.found):
        return False
    if kind is Kind.SURE:
        return values.looks_like_password(value.found)
    return len(value.found) >= 8 and values.looks_random(value.found)


def _is_passed(value: _Value, kind: Kind) -> bool:
    found = value.found
    if found.startswith(b"-") or found.isupper():
        return False
    if kind is not Kind.SURE:
        return values.looks_random(found)
    return not (values.is_reference(found) or values.is_path_or_measure(found))


def _value_after(data: bytes, lead: re.Match[bytes]) -> _Value | None:
    if lead["tag"]:
        return _tag_content(data, lead.end())
    if lead["percent"]:
        end = data.find(b"%22", lead.end(), lead.end() + 8192)
        return _Value(lead.end(), end, data[lead.end() : end][:_JUDGED]) if end >= 0 else None
    quote = _QUOTE.match(data, lead.end())
    value = _quoted(data, quote) if quote else None
    if value and quote and quote[2] == b"`" and lead["sign"] == b"=" and b" " in value.found:
        return None  # a command, of which a shell takes the output
    return value or _bare(data, quote or lead, lead["sign"] or b"")


def _tag_content(data: bytes, at: int) -> _Value | None:
    end = data.find(b"<", at, at + 4096)
    return _Value(at, end, data[at:end][:_JUDGED]) if end > at and data[end + 1 : end + 2] == b"/" else None


def _quoted(data: bytes, quote: re.Match[bytes]) -> _Value | None:
    escape, mark = quote[1], quote[2]
    if escape:
        end = data.find(escape + mark, quote.end(), quote.end() + 8192)
    else:
        inside = _QUOTED[mark].match(data, quote.end())
        end = inside.end() if inside else -1
    return _Value(quote.end(), end, data[quote.end() : end][:_JUDGED]) if end >= 0 else None


def _whole_end(data: bytes, value: _Value) -> int:
    """Return where the value ends; a bare one was judged by its first bytes, but it goes as a whole."""
    rest = _BARE_REST.match(data, value.end) if not value.is_quoted and value.end - value.start > _JUDGED - 10 else None
    return rest.end() if rest else value.end


def _bare(data: bytes, before: re.Match[bytes], sign: bytes) -> _Value | None:
    """Return a value without quotes, or after a quote that never closes because the text was cut off."""
    at = before.end()
    run = _BARE.match(data, at)
    if not run or run[0].endswith((b"...", b"\xe2\x80\xa6")):
        return None
    found = run[0]
    if len(found.translate(None, _MAY_END)) < len(found):
        cut = _BARE_END.search(data, at, run.end() + 48)  # it looks ahead
        found = (data[at : min(cut.start(), run.end())] if cut else found).rstrip(_TRAILING)
    end = at + len(found)
    more = None if sign == b"=" else (_MORE_CODE if b"=" in sign else _MORE_WORDS).match(data, end)
    return _Value(at, end, found, is_quoted=False, is_equated=sign == b"=", continues=bool(more))
