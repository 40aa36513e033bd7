"""Wishes that were taken back, or replaced by a newer one about the same thing: only where the words show which."""

from __future__ import annotations

import re

from compact.constraints.text import MAX_SENTENCE_CHARS
from compact.constraints.words import CLASSES

# "Forget what I said about …", "… are fine again", "you no longer have to …": what is meant is named beside it.
_TAKES_BACK = re.compile(
    r"""\b(?:
      (?:forget|disregard|ignore|scrap|drop|lift|cancel|revoke|undo|discard|skip|retract)\b.{0,30}
        \b(?:what\ i\ said|i\ said|i\ asked|i\ told\ you|(?:my|the|that|this|your)\s(?:\w+\s){0,4}?
        (?:rule|wish|request|instruction|limit|restriction|constraint|preference|ban|requirement|thing|policy))
    | (?:forget|never\ ?mind|disregard|ignore)\ (?:about\ )?the\b
    | (?:you|we|i)\b.{0,30}\b(?:no\ longer|any\ ?more|any\ longer)\b
    | (?:don't|do\ not|needn't|doesn't|does\ not)\b.{0,60}\b(?:any\ ?more|any\ longer)\b
    | no\ longer\ (?:need|necessary|appl|required|matter|have\ to|hold)
    | (?:is|are)\ (?:lifted|off\ the\ table|not\ necessary|no\ longer)\b
    | you\ (?:can|may|could|should|are\ free\ to)\b.{0,80}\b(?:again|after\ all|as\ before|whenever\ you\ like)\b
    | (?:feel\ free\ to|go\ back\ to|back\ to)\b.{0,80}
    | (?:is|are|'s|'re)\ (?:fine|ok|okay|allowed|welcome|good|no\ problem|alright)\ (?:now|again|after\ all|by\ now)
    | actually\b.{0,60}\b(?:is|are)\ (?:fine|ok|okay|allowed|welcome|alright)
    | (?:i|we)\ (?:changed\ (?:my|our)\ mind|take\ (?:that|it)\ back|take\ back)\b
    | (?:vergiss|ignoriere|doch\ wieder|nicht\ mehr\ nötig|wieder\ erlaubt)\b
    | (?:oublie|ne\ .{0,20}\ plus\ besoin|olvida|ya\ no\ hace\ falta)\b
    )""",
    re.VERBOSE | re.IGNORECASE,
)
# "Scratch that": what was said just before.
_THAT = re.compile(
    r"(?:(?:oh|ok|okay|no|hm+|wait|sorry|actually|well|please)[,.!]?\s+)*+(?:(?:scratch|strike|scrap) (?:that|this)"
    r"|(?:disregard|ignore|forget) (?:that|this|what i (?:just )?said)|i take (?:that|it) back)\b",
    re.IGNORECASE,
)
# It says nothing but that something no longer holds.
_ONLY_BACK = re.compile(
    r"(?:(?:oh|ok|okay|no|hm+|wait|sorry|actually|well|please|and|so|by the way|btw)[,.!]?\s+)*+"
    r"(?:never ?mind|forget|ignore|disregard|scrap|scratch|strike|drop|lift|cancel|feel free"
    r"|you (?:no longer|don't have to|don't need to|do not have to|can|may))\b[^,;—:]*$",
    re.IGNORECASE,
)
_HINTS = re.compile(
    r"forget|mind\b|ignore|disregard|scra[tp]|strike|drop|lift|cancel|revoke|undo|discard|retract|longer|any ?more"
    r"|necessary|again|after all|as before|back\b|free to|fine|ok|allowed|welcome|vergiss|wieder|oubli|olvida"
    r"|plus besoin|no hace falta",
    re.IGNORECASE,
)
_EMPTY_WORDS = """a about after again all also always am an and any anymore anything are as at be been before but
by can could do does don't dont each ever every everything fine for forget forward free from going has have here i
i'd i'm if ignore in instead is it it's its just keep let like longer make may me mind more must my need never no
not nothing now of off ok okay on one only or order other our out over please pls previous rather really rule said
say should so some stop such take than that the their them then there these they thing this those to told too under
unless until up us used want was way we welcome what when whenever where which while will wish with without would
you your you're earlier request instruction actually sure back can't cannot might mean asked first go feel scratch
allowed didn't doesn't isn't won't i've i'll you'd you'll we're we'd that's there's lift drop scrap cancel mine
thanks thank"""
_STOP = frozenset(_EMPTY_WORDS.split())
_SAME_KIND = {
    **dict.fromkeys(CLASSES["language"][1], "<language>"),
    **dict.fromkeys(
        ("reply", "answer", "respond", "write", "speak", "talk", "replies", "answers", "responses"), "<talk>"
    ),
}
_SUFFIX = re.compile(r"(?:ing|ed|es|s|e)$")
_SAME = 0.75
_SAME_AFTER_CHANGE = 0.5
_CHANGE = re.compile(r"\b(?:again|instead|any ?more|no longer|actually|after all)\b", re.IGNORECASE)
_RULE = re.compile(
    r"\b(?:rule|wish|request|instruction|limit|restriction|constraint|preference|ban|requirement|policy"
    r"|i (?:said|asked|told you))\b",
    re.IGNORECASE,
)
_MEANT = 0.5
_MEANT_OF_WISH = 0.34


def may_take_back(sentence: str) -> bool:
    """False if no word of a retraction is in it: most sentences are done with here."""
    return bool(_HINTS.search(sentence, 0, MAX_SENTENCE_CHARS))


def takes_back(sentence: str) -> bool:
    """True if a sentence withdraws something it names."""
    return bool(_TAKES_BACK.search(sentence[:MAX_SENTENCE_CHARS].replace("’", "'")))


def takes_back_the_last(sentence: str) -> bool:
    """True if a sentence withdraws what was said just before it, without naming it."""
    return bool(_THAT.match(sentence[:MAX_SENTENCE_CHARS].strip()))


def only_takes_back(sentence: str) -> bool:
    """True if a retraction asks for nothing new."""
    return bool(_ONLY_BACK.match(sentence[:MAX_SENTENCE_CHARS].strip().replace("’", "'")))


def topic(text: str) -> frozenset[str]:
    """What a sentence is about: its telling words, bent to one form; languages and numbers count as one."""
    words = re.findall(r"[\w']+", text.lower().replace("’", "'"))
    return frozenset(_bend(word) for word in words if word.isdigit() or (word not in _STOP and len(word) > 1))


def is_meant(retraction: frozenset[str], wish: frozenset[str], *, named: bool) -> bool:
    """True if the telling words of a retraction are those of the wish; one is enough if it speaks of a rule by name."""
    shared = retraction & wish
    if not shared or len(shared) < _MEANT * len(retraction):
        return False
    return named or len(shared) > 1 or len(shared) > _MEANT_OF_WISH * len(wish)


def names_a_rule(sentence: str) -> bool:
    """True if a retraction says that it is about something that was asked for."""
    return bool(_RULE.search(sentence[:MAX_SENTENCE_CHARS]))


def likeness_to_replace(newer: str) -> float:
    """How alike two wishes must be for the newer one to replace the older: less if it speaks of a change."""
    return _SAME_AFTER_CHANGE if _CHANGE.search(newer) else _SAME


def likeness(newer: frozenset[str], older: frozenset[str]) -> float:
    """The share of their telling words that two wishes have in common."""
    return len(newer & older) / len(newer | older) if newer and older else 0.0


def _bend(word: str) -> str:
    if word in _SAME_KIND:
        return _SAME_KIND[word]
    if word[0].isdigit():
        return "#"
    stem = _SUFFIX.sub("", word) if len(word) > 4 else word.rstrip("s") if len(word) > 3 else word
    # "committing" and "commit" are one word.
    return stem[:-1] if stem != word and len(stem) > 3 and stem[-1] == stem[-2] else stem
