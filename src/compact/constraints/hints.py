"""What makes a wish likelier without being one: conditions, duties, polite words; in the notation of cues.py."""

from __future__ import annotations

from compact.constraints.cues import Cue

CONDITION = Cue(
    "condition",
    r"""
when if once after while wherever in :: (?:case )?(?:you(?:'re| are|'ve| have)?|replying|answering|writing|naming|
  talking|citing|quoting|creating|making|committing|referring|mentioning|unsure|in doubt|possible)
when if once in :: (?:case )?(?:something|anything|anyone|someone|an? \w+ (?:is|has|fails)|i (?:ask|say|write|
  send|share|paste|mention|use|type))
in :: doubt
if :: (?:unsure|not sure|uncertain)
for with :: (?:anything|everything|each|every|all|meetings)
""",
)

QUANTIFIER = Cue(
    "every",
    r"""
every each everything :: ~(?! day| good| else| looks)
whichever exclusively strictly twice
you :: <verb>
whatever anything :: you
any all :: (?:\w+ you|new)
only :: ever
at :: least one
per :: (?:day|message|answer|commit|file)
""",
)

DUTY = Cue(
    "duty",
    r"""
make be :: (?:sure|certain)
ensure must
see :: to it
remember :: (?:to|that)
keep bear :: (?:it |that )?in mind
take :: care
you :: (?:should|must|need to|have to|are (?:to|supposed|expected)|ought|shall|had better)
has have :: to (?:be|have)
my our your all any every each <products> :: <30>should
i :: (?:need|want|expect|insist on|ask for|require|demand) (?!to\b)
""",
)

DESIRE = Cue(
    "desire",
    r"""
would it'd i'd that'd :: be (?:great|nice|good|helpful|best|lovely|ideal|better|useful|cool|awesome|wonderful|
  perfect|preferable|fantastic|amazing|kind|grateful|happy|happier|glad|thankful|appreciated)
i'd would :: (?:really )?(?:rather|prefer|appreciate|love|ask|like you|like (?:all|every|your|a))
i :: (?:prefer|favou?r)
important essential crucial critical matters :: (?:to me|for me|to us|that)
means :: a lot
do :: me a favou?r
helps :: me
easier better best clearer works :: (?:for me|best)
so :: (?:that )?i can
please pls plz thanks :: ~[.!]*$
helps :: ~[.!]*$
plenty enough :: ~[.!]*$
could can would will :: (?:you|we|i) (?:please |also |maybe |perhaps )*(?:keep|make sure|stick|use|try|only|
  always|ask you)
would :: you mind
""",
)

HINT = Cue(
    "hint",
    r"""
btw fyi ps p.s please pls plz important heads-up reminder
by :: the way
heads side :: (?:up|note)
for :: the record
so :: you know
while :: i'm at it
oh :: and
one :: (?:more |other |last |small |little |quick )?(?:thing|request|ask|note|wish)
small quick little tiny general minor :: (?:request|wish|favou?r|reminder|note|ask|thing|preference)
a :: (?:request|reminder|favou?r|preference)
""",
)
