"""What speaks for a sentence being a standing wish, and what against it.

A line is `first words :: the words that follow`, or first words alone. `<verb>` and the like stand for a word of that
class (words.py), `<40>` for up to so many characters of the same sentence, `^` for a place where an order may begin,
`$` for the first two words, `~` for what follows without a blank. A blank allows for a comma; a line that begins with
blanks belongs to the one above.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cue:
    """Words that speak for a standing wish, or against one; how much is learned (weights.py)."""

    name: str
    lines: str


SCOPE = Cue(
    "scope",
    r"""
from :: (?:now|here|this (?:point|moment)|today|this message|that point) (?:on|onwards?|out|forwards?|in)
^ going moving :: forward
going moving :: forward(?=,)
henceforth hereafter throughout whenever consistently
in :: (?:the )?future\b[^?]*$
for :: (?:future (?:reference|\w+s)|the (?:rest|remainder|duration) of|the remaining)
rest :: of (?:this|our) \w+
until till :: (?:further notice|i (?:say|tell|ask|give|change|explicitly|write)|told|you hear)
unless :: (?:i\b|told|asked|instructed|stated|otherwise|explicitly|you(?:'re| are) (?:told|asked|sure|certain)|we)
unless :: (?:absolutely|it's (?:absolutely|really|urgent)|specified|requested|necessary|there's|there is)
at :: (?:all times|no (?:point|time)|any (?:time|point|cost))
as :: a (?:\w+ )?rule|as a matter of (?:principle|policy)
as :: a matter of (?:principle|policy)
^ by :: default
standing :: (?:rule|order|instruction|request|preference|wish)
house ground hard strict golden general simple firm personal important my one :: rules?
during in for within :: (?:this|our) (?:whole |entire )?(?:session|conversation|chat|collaboration|project)
under :: (?:no|any) circumstances?
on by :: no (?:account|means)
in :: no case
no :: (?:matter (?:what|how|which)|exceptions?)
without :: (?:exceptions?|fail)
ever :: again
not :: (?:ever|even once|under any|once)
each every any :: time (?:you|we|i|there|a|an|the|something|it)
everytime anytime :: \w+
while :: (?:we|you)(?:'re| are) (?:working|doing|helping|on)
in :: general,
every :: single
each every :: time[.!]*$
as :: (?:we|you) go(?: along)?
along :: the way
at after in :: (?:each|every) (?:step|stage|point|turn)
in to with after for before on under below above of :: (?:each|every|all|any)(?: of)?(?: your| the| my|
   our)?(?: \w+)? (?:<product>|<products>)
""",
)

ALWAYS = Cue(
    "always",
    r"""
^ always never :: (?!mind\b)(?!(?:\w+(?:[^su']s|ed)|got|had|was|were|did|saw|came|went|found|been)\b)\w+
always never :: (?:ever )?(?:\w+ly )?<verb>
you we to must should shall will would can could may :: (?:please |just |also |really )?(?:always|never) (?:ever |
  be |to )?(?!\w+ed\b|\w+[^su']s\b|got|had|been)\w+
should must are is be :: (?:always|never) be \w+
i i'd would :: (?:always|never) (?:want|like|prefer|ask|need|expect|wish|accept|answer|read|take|work)
<others> <products> :: (?:always|never|must|should never|should always)
always never ever :: ~[.!]*$
please :: (?:always|never)
""",
)

ASK_FIRST = Cue(
    "ask-first",
    r"""
without :: (?:first |ever |explicitly |even |you )?(?:asking|checking|confirming|consulting|telling|showing|warning)
without :: (?:first |ever |explicitly |even |you )?(?:notifying|informing|running (?:it|them)|talking to|my|me)
without :: (?:an? )?(?:ok|okay|go|yes|green|explicit|prior|written|clear|approval|permission|consent|confirmation|
  sign-?off|review)
ask check confirm consult clear :: <40>(?:me|us)\b<40>(?:first|before|beforehand|prior)
verify discuss agree align double-check coordinate :: <40>(?:me|us)\b<40>(?:first|before|beforehand|prior)
ask warn notify tell inform alert ping :: me\b<50>(?:first|before(?:hand)?|prior to|whenever|each time)
show send give let get have run present submit :: <60>before (?:you|any|each|every|it goes|they go|anything|
  sending|\w+ing (?:it|them|any|anything|to|the|a))
share walk read tell explain draft check test back :: <60>before (?:you|any|each|every|it goes|they go|anything|
  sending|\w+ing (?:it|them|any|anything|to|the|a))
^ before :: (?:you|any|each|every|\w+ing) (?!go|proceed|do that)<60>(?:ask|check|confirm|show|tell|let|wait|run|
  get|warn|give|send|notify|double|make sure|read|explain|summari[sz]e|back|i want|i'd|you)
wait :: (?:for|until|till) (?:my|me\b|i\b|an? (?:ok|go|explicit|green))
need needs require requires get with after pending having has :: my (?:\w+ )?(?:ok|okay|blessing|confirmation|yes)
my :: (?:\w+ )?(?:approval|sign-?off|consent|permission|go-?ahead|green light|say-so)
run pass bounce clear :: (?:it|them|this|that|those|everything|any|all|every|each)<40>(?:by|past|with) me
only not :: (?:after|once|when|if|until|unless) (?:i|i've|i'm)
let :: me (?:see|review|approve|check|read|look|decide|choose|pick|know)<50>(?:before (?:you|it|any|\w+ing)|first|
  beforehand|whenever|each time|every time)
i i'd :: (?:would )?(?:want|like) to (?:see|review|approve|check|read|sign off|decide)<50>(?:before|first|every|
  each|any|all|myself)
final last :: (?:say|word) (?:on|in|is)
keep :: me (?:posted|informed|updated|in the loop|in cc|in copy)
no :: surprises
^ ask check confirm :: (?:me )?(?:first|before)
a the :: yes from me
""",
)

PROHIBITION = Cue(
    "prohibition",
    r"""
^ don't dont :: (?!forget|worry|know|think|hesitate|bother\b|see|mind|need|care|want|get\b|remember|understand|
  believe|like|feel|have|be afraid|we\b|i\b|you (?!dare|ever)|the\b|they\b)\w+
^ do :: not (?!forget|worry|know|think|hesitate|bother\b|see|mind|need|care|want|get\b|remember|understand|
  believe|like|feel|have|be afraid)\w+
please pls :: (?:don't|do not|dont|not|no)
you :: (?:should(?: not|n't)|must(?: not|n't)|may not|cannot|can't|can not|are not (?:to|allowed)|aren't (?:to|
  allowed)|shall not|shouldnt)
you if that better best rather i'd we'd would :: (?:you )?(?:not to|do not|don't|didn't|wouldn't|not|never) <verb>
^ avoid refrain abstain steer
^ stay keep :: (?:away|out|off|clear|your hands)
^ hands :: off
to you please must should :: (?:avoid|refrain|abstain|steer clear|stay (?:away|out|off|clear))
^ stop quit cease ditch lose :: (?:the |all |with |any |those |these |your |using |being )*(?!here|now|and|if|it|
  that|there)\w+
^ enough :: (?:with|of)
^ spare :: me
^ lay go tone cut :: (?:off|easy on|down|back on|down on|out) (?:the|all|your|on)?
^ leave :: (?:out |<60>(?:alone|untouched|unchanged|as (?:it )?is|as they are|intact|in peace))
^ skip drop omit :: (?:the |all |any |your |those )*(?:\w+ )?(?:<decoration>|<products>|<product>|parts?)
off-limits no-go taboo forbidden prohibited banned sacred sacrosanct verboten non-negotiable mandatory dealbreaker
off :: limits
not :: (?:allowed|an option|acceptable|welcome|negotiable|to be \w+ed)
out :: of bounds
^ no none zero nothing :: (?!problem|worries|idea|need|luck|thank|one\b|way\b|doubt|longer|wonder|rush|hurry|sir|
  maam|i\b|i'|it\b|that|we\b|the\b|not\b|just\b|you\b|there|matter|
  other)(?:[\w'/-]+ ){0,5}[\w'/-]+(?:,? (?:please|pls|ever|at all|whatsoever|anywhere|in (?:the|your|any)|unless|
  without|before|outside)|[.!]*$)
can could would will :: (?:you|we) (?:please |kindly |maybe |perhaps |also )*(?:not|stop|avoid|refrain|leave out|
  drop the)
mind :: not \w+ing
nothing :: (?:should|must|may|gets?|goes|is to|leaves|destructive)
nobody :: (?:should|must|may)
none :: of (?:the|our|this|it|those|that) (?:should|must|may|please)
i :: (?:really )?(?:don't|do not|never) (?:want|need|like|wish) (?:you|your|any|it|to (?:be|see|hear|get|receive|
  have))
i we he she they who :: (?:absolutely |really |personally )?(?:hates?|dislikes?|loathes?|detests?|can't stand|
  cannot stand)
not :: a (?:big |huge )?fan of
allergic sick tired :: (?:to|of)
fed :: up with
pet :: peeve
drives drive :: me (?:crazy|mad|nuts|up)
must :: not
mustn't
^ hold :: (?:back|off) (?:on|from|with)
stay stays remain remains left :: (?:untouched|as is|as it is|as they are|the same|private|intact|between us|
  confidential|unchanged|put|secret|closed)
i we :: (?:can|could|would|'d) (?:happily |gladly )?do without
can could :: do without
you :: (?:don't|do not|needn't) (?:need to|have to) (?!worry|go)
no :: need (?:to|for)
and :: (?:nobody|no one|nothing|nowhere) else
frowned :: upon
your :: <40>too (?:long|short|verbose|wordy|chatty|formal|technical|many|much|detailed|fast|slow|big)
should may can shouldn't cannot :: (?:not )?(?:appear|leave|end up|be (?:sent|shared|used|stored|logged|changed|
  touched|exposed|committed))
""",
)
