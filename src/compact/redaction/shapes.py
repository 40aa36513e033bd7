"""Secrets recognised by their look alone: keys that vendors give a prefix so that they can be found.

Each shape starts at a literal needle and matches forward from there, so the time is the number of needles found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from compact.redaction.values import is_worn_shape

Span = tuple[int, int]

# A word starts here; an escape (`\n`), a percent code (`%20`) or a terminal colour (`[32m`) may stand right before it.
_START = (
    rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})"
    rb"|(?<=\[\dm)|(?<=\[\d\dm)|(?<=;\d\dm))"
)
_END = rb"(?![A-Za-z0-9])"
_HEX = rb"[0-9a-f]"
_ALNUM = rb"[A-Za-z0-9]"
_WORD = rb"[A-Za-z0-9_-]"
_SECRET_BESIDE = rb"(?:[\s,;:|\"']{1,8}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=]))?"
_SLACK = rb"(?=[A-Za-z-]{0,20}+\d)[A-Za-z0-9%-]{18,}+"
_SIGNED = rb"(?<![_-])eyJ" + _WORD + rb"{8,1024}+\.eyJ" + _WORD + rb"{8,}+\.?" + _WORD + rb"*+"


@dataclass(frozen=True, slots=True)
class Shape:
    """A literal needle, and the pattern that must match `back` bytes before it."""

    needle: bytes
    source: bytes
    back: int = 0


def _after(needle: bytes, rest: bytes) -> Shape:
    return Shape(needle, _START + re.escape(needle) + rest)


def _around(needle: bytes, pattern: bytes, *, back: int) -> Shape:
    return Shape(needle, pattern, back)


def _several(needles: bytes, rest: bytes) -> list[Shape]:
    return [_after(needle, rest) for needle in needles.split()]


SHAPES: tuple[Shape, ...] = (
    # Cloud providers. After a key id, the 40 characters beside it are its secret.
    *_several(b"AKIA ASIA ABIA ACCA", rb"[A-Z0-9]{16}" + _END + _SECRET_BESIDE),
    _after(b"ABSK", rb"[A-Za-z0-9+/]{80,}+={0,2}"),
    _after(b"AIza", _WORD + rb"{35}(?![A-Za-z0-9_])"),
    _after(b"ya29.", _WORD + rb"{20,}+"),
    _after(b"GOCSPX-", _WORD + rb"{24,}+"),
    _around(b"Q~", rb"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,}+", back=4),
    _around(b"JQQJ99", rb"[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{20,}+", back=52),
    _after(b"LTAI", _ALNUM + rb"{16,24}" + _END),
    _after(b"dop_v1_", _HEX + rb"{60,}+"),
    _after(b"doo_v1_", _HEX + rb"{60,}+"),
    _after(b"dor_v1_", _HEX + rb"{60,}+"),
    _after(b"AKID", _ALNUM + rb"{32}" + _END),
    _around(b"AZDO", rb"(?<![A-Za-z0-9])[A-Za-z0-9]{76}AZDO" + _ALNUM + rb"{4}" + _END, back=76),
    # Model vendors.
    _after(b"sk-", rb"(?:proj|svcacct|admin|None|service|ant|or|lf)-(?=[A-Za-z_-]{0,60}+\d)" + _WORD + rb"{20,}+"),
    _after(b"sk-", rb"(?=[A-Za-z]{0,60}+\d)" + _ALNUM + rb"{20,}+"),
    *_several(b"gsk_ xai- pplx- csk-", _ALNUM + rb"{32,}+"),
    _after(b"hf_", _ALNUM + rb"{30,}+"),
    _after(b"api_org_", _ALNUM + rb"{30,}+"),
    _after(b"r8_", _ALNUM + rb"{30,}+"),
    *_several(b"nvapi- pcsk_ tgp_v1_ lsv2_pt_ lsv2_sk_ wandb_v1_", _WORD + rb"{32,}+"),
    _after(b"tvly-", rb"(?=[A-Za-z-]{0,60}+\d)" + _WORD + rb"{20,}+"),
    _after(b"fc-", _HEX + rb"{32}" + _END),
    _after(b"e2b_", _HEX + rb"{40}" + _END),
    _after(b"sk_", _HEX + rb"{48}" + _END),
    *_several(b"llx- rpa_", _ALNUM + rb"{40,}+"),
    _after(b"pa-", rb"(?=[A-Za-z_-]{0,40}+\d)" + _WORD + rb"{40,}+"),
    _after(b"fw_", rb"(?=[A-Za-z]{0,20}+\d)" + _ALNUM + rb"{22,}+"),
    _after(b"jina_", _HEX + rb"{32}" + _WORD + rb"{28}" + _END),
    _after(b"key_", _HEX + rb"{64}" + _END),
    _after(b"AQ.Ab8", _WORD + rb"{40,}+"),
    _after(b"dapi", _HEX + rb"{32}(?:-\d)?" + _END),
    *_several(b"fm2_ fm1r_ fm1a_", rb"[A-Za-z0-9+/=_,-]{40,}+"),
    # Code hosting and packages.
    *_several(b"ghp_ gho_ ghu_ ghs_ ghr_ npm_", _ALNUM + rb"{36,}+"),
    _after(b"github_pat_", rb"[A-Za-z0-9_]{22,}+"),
    *_several(b"glpat- gldt- glrt- glsoat- glcbt- glptt- glft- glimt- glagent- gloas-", rb"[A-Za-z0-9_.-]{20,}+"),
    _after(b"pypi-", _WORD + rb"{50,}+"),
    _after(b"rubygems_", _HEX + rb"{48}" + _END),
    _after(b"dckr_pat_", _WORD + rb"{20,}+"),
    _after(b"dckr_oat_", _WORD + rb"{20,}+"),
    _after(b"oy2", rb"[a-z0-9]{43}" + _END),
    _after(b"AKCp", _ALNUM + rb"{60,}+"),
    _after(b"ATATT3", rb"[A-Za-z0-9_=-]{60,}+"),
    _after(b"ATBB", _ALNUM + rb"{32}" + _END),
    # Messages and payments.
    *_several(b"xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", _SLACK),
    *_several(b"sk_live_ sk_test_ rk_live_ rk_test_", _ALNUM + rb"{16,}+"),
    _after(b"whsec_", rb"[A-Za-z0-9+/]{24,}+={0,2}"),
    _after(b"SK", _HEX + rb"{32}" + _END),
    _after(b"SG.", _WORD + rb"{16,32}\." + _WORD + rb"{30,}+"),
    _after(b"key-", _HEX + rb"{32}" + _END),
    _around(b"-us", rb"(?<![0-9a-f])[0-9a-f]{32}-us\d{1,2}" + _END, back=32),
    _after(b"xkeysib-", _HEX + rb"{64}-" + _ALNUM + rb"{16}"),
    _around(b":AA", rb"(?<=\d{8}):AA" + _WORD + rb"{33}(?![A-Za-z0-9_-])", back=0),
    *_several(b"shpat_ shpss_ shpca_ shppa_", rb"[0-9a-fA-F]{32}" + _END),
    *_several(b"sq0atp- sq0csp-", _WORD + rb"{22,}+"),
    _after(b"re_", rb"(?=[A-Za-z_]{0,24}+\d)" + _ALNUM + rb"{8}_" + _ALNUM + rb"{24}" + _END),
    *_several(b"EZAK EZTK", _ALNUM + rb"{54}" + _END),
    *_several(b"FLWSECK- FLWSECK_TEST-", _ALNUM + rb"{32}-X" + _END),
    _after(b"pat-", rb"[a-z]{2}\d-[0-9a-f]{8}-[0-9a-f-]{27}" + _END),
    # Infrastructure and tools.
    *_several(b"hvs. hvb. hvr.", _WORD + rb"{24,}+"),
    _around(b".atlasv1.", rb"[A-Za-z0-9]{14}\.atlasv1\." + _WORD + rb"{60,}+", back=14),
    *_several(b"glsa_ glc_ sntrys_ sntryu_ lin_api_ ntn_ figd_ figo_ nfp_ sbp_ sb_secret_", rb"[A-Za-z0-9_+/=-]{28,}+"),
    *_several(b"pscale_tkn_ pscale_pw_ pscale_oauth_ napi_ rnd_ ops_eyJ", rb"[A-Za-z0-9_=.-]{24,}+"),
    *_several(b"dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", rb"[A-Za-z0-9_.-]{30,}+"),
    *_several(b"sqp_ squ_ sqa_ pul-", _HEX + rb"{40}" + _END),
    *_several(b"PMAK- CFPAT- NRAK- HRKU- CCIPAT_ bkua_ tskey- pnu_ cfut_ cfat_", _WORD + rb"{20,}+"),
    *_several(b"MT Mz Nj NT Nz OD OT ND", _ALNUM + rb"{20,24}\." + _WORD + rb"{6}\." + _WORD + rb"{27,}+"),
    _after(b"AGE-SECRET-KEY-1", rb"[0-9A-Z]{40,}+"),
    *_several(b"dt0c01. dt0s01.", rb"[A-Z0-9]{24}\.[A-Z0-9]{64}" + _END),
    *_several(b"hcaik_ hcbik_ hcamk_", rb"[a-z0-9]{58}" + _END),
    *_several(b"phx_ apify_api_", _ALNUM + rb"{36,}+"),
    _after(b"sgp_", rb"(?:" + _HEX + rb"{16}_|local_)?" + _HEX + rb"{40}" + _END),
    _after(b"tfp_", rb"(?=[A-Za-z_-]{0,40}+\d)" + _WORD + rb"{40,}+"),
    _after(b"rdme_", rb"[a-z0-9]{60,}+"),
    _after(b"secret_", _ALNUM + rb"{43}" + _END),
    _after(b"sdk-", rb"[0-9a-f]{8}-[0-9a-f-]{27}" + _END),
    _after(b"sk.eyJ", _WORD + rb"{20,}+\." + _WORD + rb"{16,}+"),
    # A signed token: header, claims, signature.
    Shape(b"eyJ", _START + _SIGNED),
)

# With what of its needle can stand in a run.
_PARTS = tuple((shape.needle.lstrip(b":"), shape) for shape in SHAPES)
# Shorter runs hold no shape; in ordinary text there are few longer ones, so most needles are never sought.
SHORTEST_SHAPE = 20
_RUN = b"x" * SHORTEST_SHAPE
_IN_RUN = bytes(ord("x") if chr(c).isalnum() or chr(c) in "_.~+-%" else ord(" ") for c in range(128)) + b" " * 128
_MARKED = bytes(ord("x") if chr(c).isupper() or chr(c).isdigit() else ord(" ") for c in range(128)) + b" " * 128


def find_shapes(data: bytes) -> list[Span]:
    """Return where in `data` a secret is recognised by its look alone."""
    runs = b" ".join(_long_runs(data))
    spans: list[Span] = []
    if runs:
        find = runs.find
        for part, shape in _PARTS:
            if find(part) >= 0:  # `in` would try to read bytes as a number first, which takes longer than to find them
                spans.extend(_matches(shape, data))
    return spans


def _long_runs(data: bytes) -> Iterator[bytes]:
    """Yield the unbroken runs that are long enough and hold a capital or a digit, as every shape does."""
    classes = data.translate(_IN_RUN)
    start = classes.find(_RUN)
    marked = data.translate(_MARKED) if start >= 0 else b""
    while start >= 0:
        end = classes.find(b" ", start)
        end = len(data) if end < 0 else end
        if marked.find(b"x", start, end) >= 0:
            yield data[start:end]
        start = classes.find(_RUN, end)


# Compiled when first needed: a hundred patterns would take longer than the rest of the import, and few are ever used.
_compiled = cache(re.compile)


def _matches(shape: Shape, data: bytes) -> Iterator[Span]:
    pattern = _compiled(shape.source)
    at = data.find(shape.needle)
    while at >= 0:
        found = pattern.match(data, at - shape.back) if at >= shape.back else None
        if found and not is_worn_shape(found[0] if shape.back else found[0][len(shape.needle) :]):
            yield found.span()
        at = data.find(shape.needle, found.end() if found else at + 1)
