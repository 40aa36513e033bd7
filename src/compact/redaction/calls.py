"""Calls and statements in which the place says what is a secret: the third argument of a connection, SQL of users."""

from __future__ import annotations

from compact.redaction.carrier import any_value, at, chosen, no_common_word, opaque, opaque_and_no_id

_ARGUMENT = rb"[^,()\n]{1,200},[ ]{0,4}"
_TEXT = rb"b?\\{0,4}[\"'](?P<secret>[^\"'\\\n]{3,512})\\{0,4}[\"']"
_LAST = _TEXT + rb"[ ]{0,4}\)"
_PHRASE = rb"[\s\"':=-]{1,8}(?:is[ :]{1,3})?[\"']?(?P<secret>[a-z]{3,8}(?:[ ][a-z]{3,8}){11,23})\b"

_FIELD = rb"(?:^|\n)[\w.]{0,80}(?:password|passwd|secret|token|api_?key|private_?key)\w{0,20}\r?\n[ ][^\n]{0,120}$"

CALLS = (
    # User and password, side by side and last.
    at(b"login", rb"login\([\"'][^,()\"'\n]{1,128}[\"'],[ ]{0,4}" + _LAST, chosen),
    at(b"auth", rb"auth=?\([ ]{0,4}" + _ARGUMENT + _LAST, chosen),
    at(b"auth", rb"auth\([ ]{0,4}" + _LAST, chosen, before=rb"\.$"),
    at(b"credential", rb"credentials?\([ ]{0,4}" + _ARGUMENT + _LAST, chosen),
    # Host or address, user, password.
    at(b"connect", rb"connect\w{0,12}\([ ]{0,4}" + _ARGUMENT + _ARGUMENT + _TEXT, chosen),
    at(b"pdo(", rb"pdo\([ ]{0,4}" + _ARGUMENT + _ARGUMENT + _TEXT, no_common_word),
    at(b"connect", rb"connection\([ ]{0,4}" + _ARGUMENT + _ARGUMENT + _TEXT, no_common_word, before=rb"\.get$"),
    # A client of a service takes its key first, or behind the account.
    at(b"client", rb"client(?:v\d)?\([ ]{0,4}[\"'](?P<secret>[A-Za-z0-9_-]{32,128})[\"']", opaque_and_no_id),
    at(b"client", rb"client\([\"']AC[0-9a-f]{32}[\"'],[ ]{0,4}" + _TEXT, opaque),
    # What signs.
    at(b"jwt", rb"jwt\.(?:sign|verify|encode|decode)\([ ]{0,4}" + _ARGUMENT + _TEXT, no_common_word),
    at(b"hmac", rb"hmac\.new\([ ]{0,4}" + _TEXT, no_common_word),
    at(b"hmac", rb"hmac\([ ]{0,4}[\"'][\w-]{1,16}[\"'],[ ]{0,4}" + _TEXT, no_common_word),
    # Statements that make users; Oracle's connections.
    at(b"identified ", rb"identified (?:with [\w\"'`]{1,64} )?by[ \t]{1,4}(?:password[ \t]{1,4})?"
       rb"[\"'](?P<secret>[^\"'\n]{3,256})"),
    at(b"passw", rb"password[ \t]{1,4}(?:=[ ])?[NE]?'(?P<secret>[^'\n]{3,256})'", no_common_word,
       before=rb"\b(?:with|encrypted|login|role|user)\b[\w ]{0,40}$"),
    at(b"passw", rb"password[\"'][^<>\n]{0,200}?[ ]value=[\"'](?P<secret>[^\"'\n]{3,256})[\"']", no_common_word,
       before=rb"<input [^<>]{0,120}type=[\"']$"),
    at(b"passw", rb"password::[ ](?P<secret>[A-Za-z0-9+/]{4,512}={0,2})(?=\s|$)", no_common_word),
    at(b"oracle:thin:", rb"oracle:thin:[\w.-]{1,64}/(?P<secret>[^\s@\"']{2,128})@"),
    # Twelve to twenty-four words that open a wallet.
    at(b"phrase", rb"phrase" + _PHRASE, before=rb"(?:seed|recovery|backup|mnemonic)[ _-]$"),
    at(b"mnemonic", rb"mnemonic" + _PHRASE),
    # An error of pydantic quotes what it was given; the line before names the field.
    at(b"input_value=", rb"input_value='(?P<secret>[^'\n]{3,256})", any_value, before=_FIELD),
)  # fmt: skip
