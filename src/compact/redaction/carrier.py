"""One place that carries a secret by its form: a word to look for, what stands there, and what the secret may be."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass

from compact.redaction.values import is_ordinary, is_placeholder, is_worn_shape, looks_like_password, looks_random

_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def any_value(secret: bytes) -> bool:
    """Return True for all but placeholders."""
    return not is_placeholder(secret)


def no_common_word(secret: bytes) -> bool:
    """Return True for all but placeholders, types, and words such as `required`."""
    return not (is_placeholder(secret) or is_ordinary(secret))


def opaque(secret: bytes) -> bool:
    """Return True for what a machine made."""
    return not is_placeholder(secret) and looks_random(secret)


def opaque_and_no_id(secret: bytes) -> bool:
    """Return True for what a machine made, save a UUID: most of these are names of something."""
    return opaque(secret) and not _UUID.fullmatch(secret)


def chosen(secret: bytes) -> bool:
    """Return True for what people choose as a password, and for what machines do."""
    return not is_placeholder(secret) and (looks_like_password(secret) or looks_random(secret))


def hashed(secret: bytes) -> bool:
    """Return True for the hash of a password that is not only its form, as manuals print it."""
    return not is_worn_shape(secret)


def not_a_port(secret: bytes) -> bool:
    """Return True for all but placeholders and numbers: `-p 3306` is a port."""
    return any_value(secret) and not secret.isdigit()


def user_and_password(secret: bytes) -> bool:
    """Return True if it is the base64 of `user:password`, which an ordinary word never is."""
    try:
        plain = binascii.a2b_base64(secret + b"=" * (-len(secret) % 4))
    except binascii.Error:
        return False
    return b":" in plain and plain.isascii() and plain.decode("ascii").isprintable()


@dataclass(frozen=True, slots=True)
class Carrier:
    """A literal needle in lower case, the pattern that must match there, and the test of its `secret` group.

    If `before` is given, it must match the end of the line's part that stands before the needle.
    """

    needle: bytes
    pattern: re.Pattern[bytes]
    accepts: Callable[[bytes], bool] = any_value
    before: re.Pattern[bytes] | None = None


def at(
    needle: bytes, pattern: bytes, accepts: Callable[[bytes], bool] = any_value, *, before: bytes | None = None
) -> Carrier:
    """Return a carrier; its patterns take capitals and small letters alike."""
    lead = None if before is None else re.compile(before, re.IGNORECASE)
    return Carrier(needle, re.compile(pattern, re.IGNORECASE), accepts, lead)
