"""Judges a value by its look: a secret, or a placeholder, a type, a reference in code, a word of prose.

A name such as `password` is not enough: `password: str` is a type, `password=user.password` a reference,
`password: required` a remark. So the name says how much is asked of the value (see `Kind`), the value decides.
"""

from __future__ import annotations

import re

from compact.redaction.names import FOREIGN_NAMES

# Written in this form so that one glance shows what is let through. All lower case; compared without case.
_ORDINARY = frozenset(
    b"""
    any array base64 bcrypt argon2 argon2id binary blob bool boolean byte bytes char enum float hex hmac int integer
    json jsonb jwt list map md5 nil none null number object oauth oauth1 oauth2 option optional pbkdf2 promise record
    rs256 hs256 scrypt secretstr sha1 sha256 sha512 str string text tuple undefined union unknown utf8 uuid varchar
    void false true yes no on off final incomplete classvar secretbytes literal

    absent allowed anonymous apikey api_key authentication authenticated authorization authorized auto automatic basic
    bearer blank cookie credential credentials deprecated digest disabled empty enabled encrypted expired failed
    field forbidden ghost header headers hidden include incorrect inherit invalid key keys leaked login manual masked
    mandatory match missing needed nope not omit ok optional pass passed password passwords passwd passphrase plain
    plaintext private prompt protected public pwd readonly redacted refresh rejected required reset same-origin secret
    secrets secure sensitive session set skip skipped success sync token tokens unauthorized unchanged unset unused
    valid validated verified weak wrong

    a an and are as at be but by can file files for from get has have how if in into is it its like may must my new of
    old only option options or our per should so such than that the their them then these they this those to use used
    user users uses using via was we what when where which who will with without you your flag argument arguments arg
    parameter param params here there instead

    args assert async await break buffer cls config const console context ctx data def default del dict digest else
    env environ err error event except export fetch form func function hash hashed input item kwargs lambda let line
    match module name obj opts other payload plain print process props raise raw req request res response result
    return self settings static super this throw try type typeof username val value values var while yield z joi yup
    current decoded encoded expected actual foo bar baz command alias auth split b64enc b64dec quote explicit pw
    """.split()
) | {name.encode() for name in FOREIGN_NAMES}
_PROSE = frozenset(
    b"""a an and are at be been by can cannot do does enter for from has have here if in invalid is it least like may
    must no not of on one or our please required should than that the this to type use via was were when will with
    you your password passwords token""".split()
)
_REFERENCE = re.compile(rb"[A-Za-z_$][A-Za-z_$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][A-Za-z0-9_$]*)*[?!,;)]*")
_CODE = re.compile(
    rb"[A-Za-z_$&*][\w.$:>?-]*+(?:[(\[{]|<[\w&<>:, ]+>)"  # a call, a subscript, a struct, a generic
    rb"|(?:os|process|sys|env|config|settings|secrets|self|this|vault|var|local|data|module|args|opts)\."
)
_PLACEHOLDER = re.compile(
    rb"(?!\{noop\})[<{\[(](?:[a-z_ .$|:{#%!-]*$|[^>}\])]*[>}\])])"
    rb"|\{\{|\([a-z_.]+\(|\$[({\[]|%[({]|%[sdr]\b|%\w+%$|#\{|\\\("
    rb"|[$@:?&*!%#][a-z_./]*$|\?+$|\$\d$"
    rb"|:[a-z]+:|&lt;|&#x3c;|&#60;|op://|vault:|arn:aws|ref\+|https?://|file://|env:|ssm:|keyring:|sops:"
)
_PLACEHOLDER_WORDS = re.compile(
    rb"(?:^|[^a-z])(?:your|my|insert|replace|put|enter|add|some|the|fake|dummy)[-_ .]?(?:own|actual|real)?[-_ .]?"
    rb"(?:api|access|auth|client|private|secret|token|key|password|pass|bot|app|db|openai|here|me|github|value|with)"
    rb"|\byour[-_]|[-_]here\b|placeholder|redacted|change[-_]?me[-_]|xxxx|\*\*\*|\.\.\.|\xe2\x80\xa6|\xe2\x80\xa2\xe2\x80\xa2"
)
# One of these is in whatever the pattern above matches; they are much faster to rule out.
_PLACEHOLDER_HINTS = (
    b"your my insert replace put enter add some the fake dummy here placeholder redacted change xxxx *** ... "
    b"\xe2\x80\xa6 \xe2\x80\xa2"
).split()
_PATH = re.compile(rb"(?:~|\.{1,2})?/[A-Za-z_.][\w.@-]{0,40}(?:/[\w.@*-]{0,60})*$|[A-Za-z]:\\{1,2}[A-Za-z]")
_MEASURE = re.compile(
    rb"\d[\d.,:/-]*(?:[A-Za-z%]{1,4})?$|\d{1,3}-[A-Za-z]+$|\d{4}-\d\d-\d\d|0x[0-9a-fA-F]{1,8}$|v?\d+\.\d+|#[0-9a-fA-F]{3,8}$"
)
# Each round begins with one separator, so there is one way only to match, and the time is linear.
_WORDED = re.compile(rb"[A-Za-z]+\d{0,2}(?:[_./:-][A-Za-z]*\d{0,2})*$")
_LOWER_WORDS = re.compile(rb"[a-z]+\d{0,2}(?:[_.-][a-z]*\d{0,2})+")
_NAMED = re.compile(rb"[A-Za-z]_[A-Za-z]|[a-z][A-Z]|[A-Z]{2}[a-z]")
_CMDLET = re.compile(rb"(?:Get|Read|New|Import|ConvertTo|ConvertFrom|Invoke)-[A-Z][A-Za-z]+")  # of PowerShell
_CASE_RUNS = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CODE_INSIDE = re.compile(rb"[)\]}][=.;,(\[?]|=>|&&|\|\||\(\)|!==?|\.<\w|&[a-z]+;")
_STATEMENT = re.compile(rb"\w=\w+[,;(.]")
_TOKEN = re.compile(rb"[\w.~+/=:%|@$!*-]+")
_LONG_HEX = re.compile(rb"[0-9a-fA-F]{16,}")
_DIGIT = re.compile(rb"[0-9]")
_NO_LETTERS = bytes(c for c in range(256) if not chr(c).isascii() or not chr(c).isalpha())
_LETTER = re.compile(rb"[A-Za-z]")
_CAPITAL = re.compile(rb"[A-Z]")
_SMALL = re.compile(rb"[a-z]")
_SIGN = re.compile(rb"[!#$^&*+]")
_SYMBOL_INSIDE = re.compile(rb"[A-Za-z0-9][!@#$%^&*+=][A-Za-z0-9!@#$%^&*]")


def is_ordinary(value: bytes) -> bool:
    """Return True for a type name, a keyword, a status or a common word."""
    return value.strip(b" .,;:!?()[]").lower() in _ORDINARY


def is_placeholder(value: bytes) -> bool:
    """Return True for what stands where a secret will be: `<token>`, `${API_KEY}`, `YOUR_API_KEY`, `****`, a URL."""
    if _PLACEHOLDER.match(value.lower()) or _speaks_of_one(value):
        return True
    return len(value) > 3 and len(set(value)) == 1 and not value.isdigit()


def _speaks_of_one(value: bytes) -> bool:
    low = value.lower()
    return any(hint in low for hint in _PLACEHOLDER_HINTS) and bool(_PLACEHOLDER_WORDS.search(low))


def is_worn_shape(value: bytes) -> bool:
    """Return True for a vendor's key that is only its form, as manuals print it: `ghp_xxxxxxxxxx`."""
    return (
        len(set(value)) < 8
        or value.endswith(b"EXAMPLE")
        or _speaks_of_one(value)
        or bool(_LOWER_WORDS.fullmatch(value))
    )


def is_reference(value: bytes) -> bool:
    """Return True for an unquoted value that code reads from elsewhere: `user.password`, `get_token()`."""
    if _CODE.match(value):
        return True
    if b"." in value and is_camel_name(value.rpartition(b".")[2]):
        return True
    if not _REFERENCE.fullmatch(value) or _mixes_case(value):
        return bool(_CMDLET.fullmatch(value))
    if len(value) >= 20 and _DIGIT.search(value) and _mixes_case(value.translate(None, _NO_LETTERS)):
        return False
    return b"." in value or b"->" in value or b"::" in value or bool(_NAMED.search(value))


def is_code(value: bytes) -> bool:
    """Return True for an unquoted value with punctuation that only code has, as in a minified script."""
    if len(value.translate(None, b")]}>&|!<")) < len(value) and _CODE_INSIDE.search(value):
        return True
    return len(value) >= 32 and bool(_STATEMENT.search(value))


def is_one_token(value: bytes) -> bool:
    """Return True if it has only the bytes of which tokens are made."""
    return bool(_TOKEN.fullmatch(value))


def is_camel_name(value: bytes) -> bool:
    """Return True for a name such as `Ed25519PrivateKey`: a random string changes case more often than words do."""
    words = _CASE_RUNS.findall(value)
    is_name = len(words) > 1 and value.isalnum() and not value[-1:].isdigit()
    return is_name and sum(map(len, words)) * 3 >= 10 * len(words) and bool(_CAPITAL.search(value))


def is_prose(value: bytes) -> bool:
    """Return True for a quoted value that is a sentence or a label rather than a secret."""
    words = value.lower().split()
    return len(words) > 1 and any(word.strip(b".,;:!?'()") in _PROSE for word in words)


def is_path_or_measure(value: bytes) -> bool:
    """Return True for a file's path, a number with its unit, a date, a version or a colour."""
    return bool(_PATH.match(value)) or (bool(_MEASURE.match(value)) and len(value) < 24)


def looks_random(value: bytes) -> bool:
    """Return True for letters and digits mixed as no word mixes them, or upper and lower case mixed so."""
    if len(value) < 6 or b" " in value:
        return False
    if _LONG_HEX.fullmatch(value):
        return True
    if not _DIGIT.search(value):
        return _mixes_case(value)
    if not _LETTER.search(value) or is_path_or_measure(value):
        return False
    return not (_WORDED.match(value) or is_camel_name(value))


def _mixes_case(value: bytes) -> bool:
    # Names in code have one capital a word; in random letters about half are capitals.
    return len(value) >= 16 and value.isalpha() and 0.3 < len(_CAPITAL.findall(value)) / len(value) < 0.7


def looks_like_password(value: bytes) -> bool:
    """Return True for what people choose: letters with a digit, or a symbol in the middle; no separators."""
    if len(value) < 6 or is_ordinary(value) or is_path_or_measure(value):
        return False
    if _SYMBOL_INSIDE.search(value):
        return True
    if not (_DIGIT.search(value) and _LETTER.search(value)):
        return False
    return is_strong(value) or not any(mark in value for mark in (b"-", b"_", b".", b"/", b":"))


def is_strong(value: bytes) -> bool:
    """Return True for what rules for passwords ask for: `Giraffe-77!`; no version and no name has all of it."""
    return bool(_SIGN.search(value) and _SMALL.search(value) and _CAPITAL.search(value) and _DIGIT.search(value))
