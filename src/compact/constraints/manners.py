"""How things are to be done or to look: form, contrast, and the words for it; in the notation of cues.py."""

from __future__ import annotations

from compact.constraints.cues import Cue

FORM = Cue(
    "form",
    r"""
keep keeping :: <40>(?:<manner>|to the point|to (?:a|one|two|three|\d)|out of|in sync|up to date|high level)
most max maximum up than under below within exactly to at :: (?:of |to )?(?:<number>|\d+|a single|
  a couple(?: of)?|a few)(?: |-)(?:\w+ )?<counted>
<number> :: (?:\w+ )?<counted> (?:max(?:imum)?|or (?:less|fewer)|tops|at most|at a time)
one :: <30>at a time
in into only :: (?:british |american |plain |simple |proper )*<language>(?!'s)
in :: (?:plain|simple|layman's|your own|full|bullet|lower|upper|everyday) (?:language|words|terms|english|text|
  sentences|points|case)
all every each any your :: (?:of )?(?:your |the |my )?(?:\w+ )?(?:<products>|<product>)\b<30>(?:in|as|under|below|
  using|without|must|should|needs?|has to|have to|goes?|gets?|starts?|ends?|begins?|short|brief|formal)
no without avoid skip drop stop hate hates dislike of use using
with more less fewer love loves like likes the any:: (?:\w+ ){0,2}<decoration>
no without avoid skip drop stop hate :: (?:\w+ ){0,1}(?:bullet points|oxford commas?|small talk|passive voice|
  follow-up questions|code blocks|tables)
hates dislike of use using with fewer :: (?:\w+ ){0,1}(?:bullet points|oxford commas?|small talk|passive voice|
  follow-up questions|code blocks|tables)
call address :: me
refer :: to (?:me|us|him|her|it|them) as
my :: pronouns
i :: go by
first-name :: (?:basis|terms)
iso utc yyyy-mm-dd dd iso-8601 24-hour 24h :: (?:\w+ )?(?:format|dates?|units?|spelling|style|notation|only|
  please|clock)
metric imperial celsius fahrenheit british american uk us :: (?:\w+ )?(?:format|dates?|units?|spelling|style|
  notation|only|please|clock)
^ start begin open end finish close conclude sign wrap prefix preface lead :: <40>(?:with|by|as)
when once after every time :: (?:you(?:'re| are|'ve| have)?|each|every) (?:\w+ )?(?:done|finish\w*|ready|
  complete\w*|through|step|task|change|answer|reply)
^ reply answer respond talk speak :: (?:to me |me |it |things |everything )?<20>(?:in|like|as|using|only|briefly|
  formally|politely|without)
^ communicate phrase word write explain :: (?:to me |me |it |things |everything )?<20>(?:in|like|as|using|only|
  briefly|formally|politely|without)
short brief concise longer shorter :: (?:\w+ )?(?:answers?|repl(?:y|ies)|responses?|messages|explanations?|
  sentences|summar(?:y|ies)|paragraphs|instructions|steps|words)
formal bulleted numbered one-line one-sentence :: (?:\w+ )?(?:answers?|repl(?:y|ies)|responses?|messages|
  explanations?|sentences|summar(?:y|ies)|paragraphs|instructions|steps|words)
tone wording spelling indentation formatting
house style reading line :: (?:style|guide|level|length)
tabs spaces camelcase camel snake_case kebab-case docstrings
single double :: quotes
trailing type :: (?:commas?|hints)
in :: (?:a |an |the )?(?:\w+ )?(?:tone|manner|voice|style|format|fashion)
as :: if (?:i|you|we)\b
like :: i'm
in :: writing
by :: (?:e-?mail|text|sms|post|mail|chat|letter) only
only :: by (?:e-?mail|text|sms|post|mail|chat|phone)
by :: phone
most max maximum :: \d+
less more fewer :: [\w-]+ (?:and )?(?:more|less|fewer) [\w-]+
""",
)

CONTRAST = Cue(
    "contrast",
    r"""
^ use choose pick take write say call run :: <60>(?:not|instead of|rather than|over|only|in place of|wherever)
^ put store send import do make give work :: <60>(?:not|instead of|rather than|over|only|in place of|wherever)
^ go :: with<60>(?:not|instead of|rather than|over|only)
^ stick stay :: (?:to|with|within|on)
you :: (?:stick|stay|stuck|stayed) (?:to|with|within)
^ prefer favor favour
i we i'd we'd would :: (?:would |'d |much |really |strongly |generally |usually |always |kind of )*(?:prefer|
  favou?r) (?!to\b|the\b|my\b|a\b|an\b|it\b|that one|this\b|option)
i i'd would :: (?:would |much |really )*(?:rather|prefer|appreciate|love) (?:it )?(?:if |that |when |to have |
  for )?(?:you|your|we|no|not|everything|replies|answers|fewer|less|more|all)
^ only :: (?:ever|use|in|on|with|through|via|from|by|work|touch|edit|write|reply|answer|respond|speak|contact|
  send|call|book|show|give|suggest|recommend|when|if|after|change|look|run)
only exclusively solely :: (?:please)?[.!]*$
nothing :: (?:but|else|beyond)
^ <verb> :: <60>(?:instead of|rather than|as opposed to|in place of)
limit restrict confine :: (?:yourself|it|changes|your)
^ be :: (?:strict|careful with|conservative|frugal|brief|concise|precise|critical|direct|blunt|explicit|formal|
  gentle|polite|kind|mindful|sparing|short|honest about|discreet)
we :: (?:usually|normally|typically|generally|tend to|like to|prefer|only|strictly) (?!\w+ed\b)
i i'm :: <40>(?:easier|harder|hard to|hard time|confus\w+|distract\w+|annoy\w+|tiring|lost|overwhelm\w+|
  colou?r-?blind|dyslexic|vegetarian|vegan|irritat\w+|nervous|unreadable|allergic)
<others> :: (?:\w+ )?(?:hates?|prefers?|insists?|only|can't|cannot|requires?|demands?|expects?|forbids?|likes?|
  loves?|won't|complains?|has a thing|is (?:picky|strict|allergic))
our the company house team :: (?:\w+ )?(?:policy|convention|rule|standard|guideline|practice|agreement) (?:is|
  here|says|that)
my :: (?:strong |personal )?preference
preferably
must has have needs need should shall :: (?:to )?(?:always )?(?:stay|remain|be kept|keep|continue)
as :: (?:little|few|short|simple|small|brief|concise|precise) as (?:possible|you can)
less fewer shorter simpler :: (?:\w+ )?the better
only :: (?:ever )?(?:fly|read|drink|eat|accept|work|pay|speak|travel|buy) (?:with|in|on|by|from|through|at|via|to|
  non|\w+s)
only exclusively solely :: (?:please|pls|thanks|thx)
i we :: (?:usually|normally|typically|generally|tend to|mostly|rarely|seldom|often|like to|like it|like my|
  like things|refuse|avoid|strictly|try to|strive)
i'm we're :: (?:used to|more of an?|not (?:good|great|comfortable|keen|big|much)|sensitive|particular|picky|
  strict|very private|hard of|on a \w+ diet)
i :: (?:have an?|'ve an?) (?:\w+ )?(?:allergy|aversion|weakness|hard time|thing about|preference|policy|rule|
  habit|disability)
make makes made making :: me (?:nervous|uneasy|anxious|uncomfortable|angry|dizzy|cringe|sad|lose)
annoys bothers irritates confuses helps scares stresses :: me
law rule policy convention agreement :: (?:here )?(?:is|that|says|to)
tradition habit deal requirement principle practice :: (?:here )?(?:is|that|says|to)
let's :: (?:agree|make it a|always|never|keep|stick|not|avoid)
^ treat regard pretend imagine :: \w+
^ assume :: (?:i|that|you|we|nothing|every|all|any)
would :: you mind (?:\w+ing)
anything everything whatever any all every :: <60>(?:must|needs?|has to|have to|should|goes|stays|gets|is to|are to)
^ <verb> :: (?:\w+ )?(?:often|regularly|frequently|sparingly|early)
""",
)

PRODUCT = Cue(
    "product",
    r"""
^ <products>
all your every any no of for in with use keep write quote cite name list :: (?:\w+ )?<products>
give :: me (?:\w+ )?<products>
""",
)

MANNERLY = Cue("manner", "^ <mannerly>")
