"""Places that carry a secret by their form: headers, cookies, URLs, key blocks, commands with a password."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from compact.redaction.values import is_ordinary, is_placeholder, is_worn_shape, looks_like_password, looks_random

Span = tuple[int, int]


def _any(secret: bytes) -> bool:
    return not is_placeholder(secret)


def _opaque(secret: bytes) -> bool:
    return not is_placeholder(secret) and looks_random(secret)


def _after_scheme(secret: bytes) -> bool:
    return not (is_placeholder(secret) or is_ordinary(secret))


def _user_and_password(secret: bytes) -> bool:
    """Return True if it is the base64 of `user:password`, which an ordinary word never is."""
    try:
        plain = binascii.a2b_base64(secret + b"=" * (-len(secret) % 4))
    except binascii.Error:
        return False
    return b":" in plain and plain.isascii() and plain.decode("ascii").isprintable()


def _not_a_port(secret: bytes) -> bool:
    return _any(secret) and not secret.isdigit()


@dataclass(frozen=True, slots=True)
class Carrier:
    """A literal needle in lower case, the pattern that must match there, and the test of its `secret` group."""

    needle: bytes
    pattern: re.Pattern[bytes]
    accepts: Callable[[bytes], bool] = _any


def _at(needle: bytes, pattern: bytes, accepts: Callable[[bytes], bool] = _any) -> Carrier:
    return Carrier(needle, re.compile(pattern, re.IGNORECASE), accepts)


def _chosen(secret: bytes) -> bool:
    """Return True for what people choose as a password, and for what machines do."""
    return not is_placeholder(secret) and (looks_like_password(secret) or looks_random(secret))


def _hashed(secret: bytes) -> bool:
    return not is_worn_shape(secret)


# Behind the port: database, user, password, and the end of the line.
_PGPASS = rb":[\w.*-]{1,64}:[\w.*@-]{1,64}:(?P<secret>[^\s:\"'\\]{3,128})(?=\s|$|\\n|[\"'])"
_BCRYPT = rb"\$\d\d\$[./A-Za-z0-9]{53})"
_CRYPT = rb"\$(?:rounds=\d{1,9}\$)?(?:j[\w./]{1,8}\$)?[./\w-]{1,32}\$[./A-Za-z0-9]{22,86})"
_TO_VALUE = rb"\\{0,8}[\"'`]?\]?[ \t]{0,4}(?:[:=,]|=>)[ \t]{0,4}\\{0,8}[\"'`]?[ \t]{0,4}"
_TOKEN = rb"(?P<secret>[A-Za-z0-9._~+/=:|%-]{6,}+)"
_SCHEME = rb"(?:bearer|basic|token|api-?key|bot|key|negotiate|ntlm|digest|splunk|aws4-hmac-sha256)[ \t]{1,4}"

CARRIERS: tuple[Carrier, ...] = (
    _at(b"authorization", rb"authorization" + _TO_VALUE + _SCHEME + _TOKEN, _after_scheme),
    _at(b"authorization", rb"authorization" + _TO_VALUE + rb"(?!" + _SCHEME + rb")" + _TOKEN, _opaque),
    _at(b"bearer ", rb"bearer[ \t]{1,4}[\"']?(?P<secret>[A-Za-z0-9._~+/=-]{8,}+)", _opaque),
    _at(b"basic ", rb"basic[ \t]{1,4}(?P<secret>[A-Za-z0-9+/]{8,}+={0,2})", _user_and_password),
    _at(b"://", rb"://[^\s/:@\"'<>`]{0,128}:(?P<secret>[^\s/\"'<>`]{1,256})@"),
    _at(b"://", rb"://(?P<secret>[A-Za-z0-9_-]{20,128})@", _opaque),
    _at(b"hook", rb"hooks\.slack(?:-gov)?\.com\\?/(?:services|workflows|triggers)\\?/(?P<secret>[\w/\\+-]{20,}+)"),
    _at(b"hook", rb"hooks\\?/\d{6,24}\\?/(?P<secret>[\w-]{30,}+)"),
    _at(b"hook", rb"hook(?:\.office\.com\\?/webhookb2)?\\?/(?P<secret>[0-9a-f]{8}-[\w@/\\-]{30,}+)"),
    _at(b"hook", rb"hooks\.zapier\.com\\?/hooks\\?/catch\\?/(?P<secret>[\w/\\]{8,}+)"),
    _at(b"sig", rb"(?<=[?&;, -])sig(?:nature)?=(?P<secret>[A-Za-z0-9%+/_=-]{20,}+)", _opaque),
    _at(b"sshpass", rb"sshpass[ \t]{1,4}-p[ \t]{0,4}[\"']?(?P<secret>[^\s\"']{3,}+)"),
    _at(b"curl", rb"curl\b[^\n]{0,160}? (?:-u|--user)[ =]{0,4}[\"']?[^\s:\"']{0,80}:(?P<secret>[^\s\"']{2,}+)"),
    _at(b"mysql", rb"mysql\w{0,8}\b[^\n|;&]{0,120}?[ \t]-p[\"']?(?!assword)(?P<secret>[^\s\"']{3,}+)", _not_a_port),
    _at(b"login", rb"login\b[^\n|;&]{0,160}?[ \t]-p[ =]{1,4}[\"']?(?P<secret>[^\s\"']{3,}+)", _not_a_port),
    _at(b"redis-cli", rb"redis-cli\b[^\n|;&]{0,160}?[ \t](?:-a|--pass)[ =]{1,4}[\"']?(?P<secret>[^\s\"']{3,}+)"),
    _at(b"mosquitto_", rb"mosquitto_\w{3}\b[^\n|;&]{0,160}?[ \t](?-i:-P)[ \t]{1,4}[\"']?(?P<secret>[^\s\"']{3,}+)"),
    _at(b"ldap", rb"ldap[a-z]{3,8}\b[^\n|;&]{0,200}?[ \t](?-i:-w)[ \t]{1,4}[\"']?(?P<secret>[^\s\"']{3,}+)"),
    _at(b"-pass", rb"-pass(?:in|out)?[ =]{1,4}[\"']?pass:(?P<secret>[^\s\"']{3,}+)"),
    _at(b"net use ", rb"net use [^\n]{0,160}?[ \t](?P<secret>[^\s/\\:]{4,64})[ \t]{1,4}/user:", _chosen),
    _at(b"securestring", rb"securestring[ \t]{1,4}(?:-string[ \t]{1,4})?[\"'](?P<secret>[^\"'\n]{3,256})"),
    _at(b"identified by", rb"identified by[ \t]{1,4}(?:password[ \t]{1,4})?[\"'](?P<secret>[^\"'\n]{3,256})"),
    _at(b"oracle:thin:", rb"oracle:thin:[\w.-]{1,64}/(?P<secret>[^\s@\"']{2,128})@"),
    _at(b"appid=", rb"appid=(?P<secret>[0-9a-f]{32})\b"),
    _at(b"<password>{", rb"<password>\{(?P<secret>[A-Za-z0-9+/=]{20,512})\}"),
    _at(b"random_password", rb"random_password[^}]{0,600}?\"result\\?\"[ ]?:[ ]?\\?\"(?P<secret>[^\"\n]{4,256})"),
    *(
        _at(name, name + rb" (?:for|of|to|f\xc3\xbcr|zu|pour)\b[^\n:\"]{1,60}: (?P<secret>[^\s\"']{6,64})", _chosen)
        for name in (b"password", b"passphrase", b"passwort", b"kennwort", b"passe")
    ),
    # Lines of .pgpass; hashes of passwords, as files of users and databases have them.
    *(_at(b":%b:" % port, rb":" + re.escape(port) + _PGPASS, _chosen) for port in (b"5432", b"5433", b"6432", b"*")),
    *(_at(b"$%b$" % kind, rb"(?P<secret>\$" + kind + _CRYPT, _hashed) for kind in (b"1", b"5", b"6", b"y", b"apr1")),
    *(_at(b"$%b$" % kind, rb"(?P<secret>\$" + kind + _BCRYPT, _hashed) for kind in (b"2a", b"2b", b"2y")),
    _at(b"$argon2", rb"(?P<secret>\$argon2[id]{1,2}\$[\w=,$+/.-]{40,256})", _hashed),
    _at(b"pbkdf2", rb"(?P<secret>pbkdf2[_:-]sha\d{1,3}[$:]\d{1,8}[$:][\w+/.=-]{1,64}[$:][\w+/.=-]{20,128})", _hashed),
    _at(b"{ssha", rb"\{ssha\d{0,3}\}(?P<secret>[A-Za-z0-9+/=]{24,})", _hashed),
    _at(b"private-lines", rb"private-lines: ?\d{1,4}(?P<secret>(?:(?:\s|\\[nr]){1,4}+[A-Za-z0-9+/=]{16,}+){1,400}+)"),
)
_BY_NEEDLE = {c.needle: tuple(same for same in CARRIERS if same.needle == c.needle) for c in CARRIERS}
_COOKIE_NEEDLE, _KEY_NEEDLE = b"cookie", b"-----begin "
# One of these is in every text in which `find_carried` finds something, once that is in lower case.
CARRIER_NEEDLES = (*_BY_NEEDLE, _COOKIE_NEEDLE, _KEY_NEEDLE)

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
        at = low.find(needle)
        while at >= 0:
            for carrier in carriers:
                found = carrier.pattern.match(data, at)
                if found and carrier.accepts(found["secret"]):
                    yield found.span("secret")
            at = low.find(needle, at + len(needle))
    yield from _cookies(data, low)
    yield from _key_blocks(data, low)


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
