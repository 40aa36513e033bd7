"""What speaks against a standing wish: questions, errands, and what is told, not asked; in the notation of cues.py."""

from __future__ import annotations

from compact.constraints.cues import Cue

QUESTION = Cue(
    "question",
    r"""
$ why what who which where how is are was were does did has have had isn't aren't doesn't am any :: ~[^.!]*\?
$ do don't :: (?:you|we|i|they|the)\b[^.!]*\?
$ should shall can could may must would will can't shouldn't couldn't :: (?:i|we|it|they|the|this|that|there|
  those)\b[^.]*\?
how what which why where who :: (?:is|are|was|do|does|did|should|would|could|can|come|about|if)\b[^.]*\?
right correct no yeah or :: ~\?$
""",
)

ERRAND = Cue(
    "errand",
    r"""
can could would will :: you (?:please |also |just |kindly |maybe |possibly |then )*(?:check|tell|help|look|find|
  pull|provide|confirm|let me know|go|process|proceed|cancel|change|search|explain|give|verify|update|book|list|
  clarify|transfer|split|do|see|fix|add|create|review|run|investigate|exchange|return|refund|modify|remove|apply|
  assist|arrange|write|implement)
go :: ahead
proceed process
ending :: in \d
my :: (?:user id|order|reservation|zip|email is|name is)
transfer transferred :: me
i i'd :: (?:would |also |really |just |now |still |am )*(?:like|want|need|hoping|hope|wanted|love|prefer|have|try|
  trying|looking) (?:to|for)\b(?! (?:be |see |review|approve|keep (?:it|things|this)|have the|not|avoid|stick))
thank thanks :: (?:you )?(?:so much |very much |again )?for
appreciate :: (?:your|the|it|you|that)\b(?! if)
let :: me know (?:if|what|how|which|whether)
help :: me
if :: you need
for :: now
this :: (?:one )?time
right :: now
just :: this once
not :: yet
yet :: ~[.!]*$
don't dont :: (?:forget|worry|hesitate|bother|mind)
looks :: (?:good|fine|right|correct)
""",
)

TOLD = Cue(
    "told",
    r"""
i it he she they this that which who there we i've they've it's :: (?:have |has |had |was |were |did |is |are |
  am )?(?:always|never) (?:been|\w+ed|\w+[^su']s|got|had|was|were|did|saw|came|went|seen|done|have|has)
i it he she they this that we you :: (?:didn't|doesn't|don't|did not|does not|do not|couldn't|wasn't|isn't|hasn't|
  haven't|cannot|can't)\b<20>(?:work|see|find|know|think|have|understand|remember|believe|exist|match|show|appear|
  run|load|compile|pass|seem|recall|receive)
i :: (?:think|guess|believe|assume|noticed|see|saw|tried|was|am trying|wonder|got|understand)
i'm :: not sure
looks :: like
seems
""",
)
