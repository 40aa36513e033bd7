"""Places that carry a secret by their form: headers, cookies, URLs, hashes, key blocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from compact.redaction.calls import CALLS
from compact.redaction.carrier import (
    Carrier,
    at,
    chosen,
    hashed,
    no_common_word,
    opaque,
    opaque_and_no_id,
    user_and_password,
)
from compact.redaction.commands import COMMANDS
from compact.redaction.values import is_ordinary, is_placeholder

Span = tuple[int, int]


_TO_VALUE = rb"\\{0,8}[\"'`]?\]?[ \t]{0,4}(?:[:=,]|=>)[ \t]{0,4}\\{0,8}[\"'`]?[ \t]{0,4}"
_TOKEN = rb"(?P<secret>[A-Za-z0-9._~+/=:|%-]{6,}+)"
_SCHEME = rb"(?:bearer|basic|token|api-?key|bot|key|negotiate|ntlm|splunk|aws4-hmac-sha256)[ \t]{1,4}"

CARRIERS: tuple[Carrier, ...] = (
    at(b"auth", rb"authorization" + _TO_VALUE + _SCHEME + _TOKEN, no_common_word),
    at(b"auth", rb"authorization" + _TO_VALUE + rb"(?!" + _SCHEME + rb")" + _TOKEN, opaque),
    at(b"auth", rb"authorization" + _TO_VALUE + rb"(?!" + _SCHEME + rb")[a-z][\w-]{1,24}[ ]{1,4}" + _TOKEN, opaque),
    at(b"auth", rb"authorization" + _TO_VALUE + rb"digest [^\n]{0,300}?response=\\{0,8}\"(?P<secret>[0-9a-f]{32,64})"),
    at(b"auth", rb"auth\.user\.info[ ]{0,4}[=:][ ]{0,4}[^\s:]{1,128}:(?P<secret>[^\s\"']{3,256})"),
    at(b"bearer ", rb"bearer[ \t]{1,4}[\"']?(?P<secret>[A-Za-z0-9._~+/=-]{8,}+)", opaque),
    at(b"basic ", rb"basic[ \t]{1,4}(?P<secret>[A-Za-z0-9+/]{8,}+={0,2})", user_and_password),
    at(b"://", rb"://[^\s/:@\"'<>`]{0,128}:(?P<secret>[^\s/\"'<>`]{1,256})@"),
    at(b"://", rb"://(?P<secret>[A-Za-z0-9_-]{20,128})@", opaque),
    at(b"://", rb"://(?P<secret>[A-Za-z0-9_-]{20,128}):(?:x-oauth-basic)?@", opaque),
    at(b"code=", rb"code=(?P<secret>[A-Za-z0-9%/_.~+-]{24,}={0,2})", opaque_and_no_id, before=rb"[?&]$"),
    at(b"hook", rb"hooks\.slack(?:-gov)?\.com\\?/(?:services|workflows|triggers)\\?/(?P<secret>[\w/\\+-]{20,}+)"),
    at(b"hook", rb"hooks\\?/\d{6,24}\\?/(?P<secret>[\w-]{30,}+)"),
    at(b"hook", rb"hook(?:\.office\.com\\?/webhookb2)?\\?/(?P<secret>[0-9a-f]{8}-[\w@/\\-]{30,}+)"),
    at(b"hook", rb"hooks\.zapier\.com\\?/hooks\\?/catch\\?/(?P<secret>[\w/\\]{8,}+)"),
    at(b"sig", rb"(?<=[?&;, -])sig(?:nature)?=(?P<secret>[A-Za-z0-9%+/_=~-]{20,}+)", opaque),
    at(b"appid=", rb"appid=(?P<secret>[0-9a-f]{32})\b"),
    at(b"<password>{", rb"<password>\{(?P<secret>[A-Za-z0-9+/=]{20,512})\}"),
    at(b"random_password", rb"random_password[^}]{0,600}?\"result\\?\"[ ]?:[ ]?\\?\"(?P<secret>[^\"\n]{4,256})"),
    *(
        at(
            needle,
            name + rb" (?:for|of|to|f\xc3\xbcr|zu|pour)\b[^\n:\"]{1,60}(?::| is| ist| est) (?P<secret>[^\s\"']{6,64})",
            chosen,
        )
        for needle, name in (
            *((b"passw", b"password"), (b"passw", b"passwort"), (b"passe", b"passe")),
            *((b"phrase", b"phrase"), (b"kennwort", b"kennwort")),
        )
    ),
    # Hashes of passwords, as files of users and databases have them.
    at(b"$argon2", rb"(?P<secret>\$argon2[id]{1,2}\$[\w=,$+/.-]{40,256})", hashed),
    at(b"pbkdf2", rb"(?P<secret>pbkdf2[_:-]sha\d{1,3}[$:]\d{1,8}[$:][\w+/.=-]{1,64}[$:][\w+/.=-]{20,128})", hashed),
    at(b"{ssha", rb"\{ssha\d{0,3}\}(?P<secret>[A-Za-z0-9+/=]{24,})", hashed),
    at(b"private-lines", rb"private-lines: ?\d{1,4}(?P<secret>(?:(?:\s|\\[nr]){1,4}+[A-Za-z0-9+/=]{16,}+){1,400}+)"),
    *COMMANDS,
    *CALLS,
)
_BY_NEEDLE = {c.needle: tuple(same for same in CARRIERS if same.needle == c.needle) for c in CARRIERS}
# One search for all that begin with the same sign is faster than one for each: lines of .pgpass, which have the port
# before database, user and password; and hashes.
_SIGNED: tuple[tuple[re.Pattern[bytes], Callable[[bytes], bool]], ...] = (
    (
        re.compile(
            rb":(?:5432|5433|6432|\*):[\w.*-]{1,64}:[\w.*@-]{1,64}:(?P<secret>[^\s:\"'\\]{3,128})(?=\s|$|\\n|[\"'])"
        ),
        no_common_word,
    ),
    (
        re.compile(
            rb"(?P<secret>\$(?:2[aby]\$\d\d\$[./A-Za-z0-9]{53}|(?:1|5|6|y|apr1)\$(?:rounds=\d{1,9}\$|\$)?"
            rb"(?:j[\w./]{1,8}\$)?[./\w-]{1,32}\${1,2}[./A-Za-z0-9]{22,86}))"
        ),
        hashed,
    ),
)
_SIGNED_NEEDLES = (
    *(b":5432:", b":5433:", b":6432:", b":*:"),
    *(b"$%b$" % kind for kind in b"1 5 6 y apr1 2a 2b 2y".split()),
)
_COOKIE_NEEDLE, _KEY_NEEDLE = b"cookie", b"-----begin "
# One of these is in every text in which `find_carried` finds something, once that is in lower case.
CARRIER_NEEDLES = (*_BY_NEEDLE, *_SIGNED_NEEDLES, _COOKIE_NEEDLE, _KEY_NEEDLE)

# Chosen: a command, its address and a few flags.
_LEAD_BYTES = 200

_COOKIE = re.compile(
    rb"(?i:cookie)(?:\\{0,8}[\"'`]?[ \t]{0,4}(?:[:=]|,(?=[ \t]{0,4}[\[\"']))|(?<=--cookie))[ \t]{0,4}\[?\\{0,8}[\"'`]?"
)
_COOKIE_PAIR = re.compile(rb"[ \t]{0,4}[\w!#$%&*+.^|~-]{1,128}+=(?P<secret>[^\s;,\"'\\]{4,}+);?")
_KEY_HEAD = re.compile(rb"-----begin [a-z0-9 ]{0,40}private key(?: block)?-----", re.IGNORECASE)
_KEY_BODY = re.compile(rb"[A-Za-z0-9+/=]{24}")
_KEY_REST = re.compile(
    rb"(?:\s{1,4}[\w-]{1,20}: [^\n]{1,80}){0,4}(?:(?:\s|\\{1,4}[nr]){0,8}+[A-Za-z0-9+/=]{16,}+){1,400}+"
)


def find_carried(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield where in `data` a secret is carried by a form around it; `low` is `data` in lower case."""
    for needle, carriers in _BY_NEEDLE.items():
        place = low.find(needle)
        while place >= 0:
            for carrier in carriers:
                found = carrier.pattern.match(data, place)
                if found and carrier.accepts(found["secret"]) and _stands_behind(carrier.before, data, place):
                    yield found.span("secret")
            place = low.find(needle, place + len(needle))
    for pattern, accepts in _SIGNED:
        yield from (found.span("secret") for found in pattern.finditer(data) if accepts(found["secret"]))
    yield from _cookies(data, low)
    yield from _key_blocks(data, low)


def _stands_behind(lead: re.Pattern[bytes] | None, data: bytes, place: int) -> bool:
    return lead is None or bool(lead.search(data[max(0, place - _LEAD_BYTES) : place]))


def _cookies(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the values in `Cookie:` headers; of `Set-Cookie:` only the first, the others are its attributes."""
    at = low.find(_COOKIE_NEEDLE)
    while at >= 0:
        lead = _COOKIE.match(data, at)
        pair = _COOKIE_PAIR.match(data, lead.end()) if lead else None
        is_setting = low[max(0, at - 4) : at] == b"set-"
        after = at + 6
        while pair:
            if not (is_placeholder(pair["secret"]) or is_ordinary(pair["secret"]) or _is_setting(pair["secret"])):
                yield pair.span("secret")
            after = pair.end()
            pair = None if is_setting else _COOKIE_PAIR.match(data, after)
        at = low.find(_COOKIE_NEEDLE, after)


def _is_setting(value: bytes) -> bool:
    """Return True for a short word, such as `dark`: no session has such an id."""
    return len(value) <= 12 and value.isalpha() and value.islower()


def _key_blocks(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield private key blocks, whole; of one that was cut off, the lines that are left of it."""
    at = low.find(_KEY_NEEDLE)
    while at >= 0:
        head = _KEY_HEAD.match(data, at)
        after = head.end() if head else at + 5
        if head:
            dashes = low.find(b"-----", after)
            stop = dashes if dashes >= 0 else len(data)
            # A mark ends a block like dashes do: what stands behind it was no part of this one. Looked for before the
            # dashes only: to the end of the text would cost the square of many heads.
            mark = low.find(b"<redacted", after, stop)
            stop = mark if mark >= 0 else stop
            # Prose names these headers too; a key follows at once, or after a line or two of attributes.
            end = _key_block_end(data, low, after, stop) if _KEY_BODY.search(data, after, min(stop, after + 400)) else 0
            if end:
                yield at, end
                after = end
        at = low.find(_KEY_NEEDLE, after)


def _key_block_end(data: bytes, low: bytes, after: int, stop: int) -> int:
    """Return the end of the block whose head ends at `after`, if the next dashes are at `stop`; 0 without a key."""
    if low.startswith(b"-----end ", stop) and stop - after < 20_000:
        close = low.find(b"-----", stop + 9, stop + 80)
        return close + 5 if close >= 0 else stop
    rest = _KEY_REST.match(data, after)
    return rest.end() if rest else 0
