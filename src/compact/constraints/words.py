"""The vocabulary of wishes: what agents are asked to do, what they write, and how it should look."""

from __future__ import annotations

# Words after which an order may begin in the middle of a sentence, as in "thanks, and never push".
_LEAD = """please pls plz kindly and but so also then just or btw way ok okay oh hey hi thanks thx actually again
well sure yes yeah great perfect cool nice good ps plus thing note though too now forward because since later rule
request otherwise anyway however rather maybe perhaps simply ever onwards on first"""
LEADS = frozenset(_LEAD.split())

_VERB = """accept add address alert answer apologise apologize approve argue ask assume attach bcc be begin bill
book break bump buy bypass call cancel capitalise capitalize cc change charge check choose cite click close comment
commit confirm contact convert copy correct create cut delete deploy describe disable discuss disclose do document
double double-check download downgrade draft drop edit email end engage escalate exceed explain export expose fall
fetch finish fix follow force force-push format forward get give go guess hang hardcode hard-code have hide
highlight honor honour ignore import include indent install interrupt introduce invent invite joke keep label leave
let limit link list log look mail make mark mention merge message mix mock modify move name notify number obey
offer omit open order overwrite paste pay phrase pick ping plan post prefer prefix print promise propose provide
publish push put query quote read rebase recommend refactor refer reference reformat refund reject remind remove
rename repeat reply report reset respect respond restart return reveal review rewrite round run save say schedule
send set share show sign skip sort speak specify spell spend start state stick stop store submit suggest summarise
summarize swear switch tag take talk tell test touch track transfer translate treat trust try turn type update
upgrade upload upsell use verify wait warn work wrap write"""

# Orders that speak of how things are done, not of what is to be done next.
_MANNERLY = """use keep stick prefer treat assume consider reply answer respond write speak talk explain cite quote
refer address call format round spell respect follow remember limit sign stay abbreviate capitalise capitalize
phrase word prefix name indent mark number separate communicate favor favour express state list prioritise
prioritize"""

# What an agent says and makes, in general: the plural, or "every" one of them.
_PRODUCTS = """answers replies responses messages emails e-mails mails summaries commits comments output outputs
explanations texts reports drafts posts letters notes documents docs tickets updates paragraphs sentences bullets
lists tables titles headlines headings translations snippets examples filenames names variables functions methods
classes branches prs dates times timestamps numbers figures amounts prices units currencies measurements links urls
queries tests scripts files folders questions suggestions recommendations decisions claims sources quotes citations
ids logs endpoints modules dependencies packages libraries imports strings secrets passwords slides charts plots
images invoices bookings meetings appointments calls customers clients colleagues instructions steps errors
exceptions everything temperatures distances weights colors colours spelling wording"""

_PRODUCT = """answer reply response message email e-mail mail summary commit comment output explanation text report
draft post letter note document doc ticket update paragraph sentence bullet list table title headline heading
translation sample snippet example filename name variable function method class branch pr request date time
timestamp number figure amount price unit measurement link url query test script file folder question suggestion
recommendation decision claim source quote citation step change edit action call booking meeting appointment
invoice turn round section chapter slide chart endpoint module dependency package error line thing task item
release deployment migration payment purchase"""

_LANGUAGE = """english german french spanish italian portuguese dutch russian chinese mandarin japanese korean
turkish arabic polish swedish danish norwegian finnish czech greek hindi ukrainian hebrew romanian hungarian
vietnamese thai indonesian deutsch français español lowercase uppercase metric celsius fahrenheit utc iso euros
dollars"""

# How a text or a piece of work should be.
_MANNER = """short shorter brief briefer concise terse crisp succinct simple formal informal casual professional
polite friendly neutral factual plain lean tidy minimal readable low light private confidential secret anonymous
consistent under below within between technical non-technical self-contained backwards-compatible compatible
deterministic small updated posted informed strictly english"""

_DECORATION = """emoji emojis emoticons smileys jargon buzzwords slang bullets markdown exclamation smalltalk fluff
filler apologies apologising apologizing preamble preambles intro intros abbreviations abbreviation acronyms em-
dashes dashes semicolons caps capitals bold italics headings headers footnotes disclaimers hedging flattery praise
compliments puns jokes humor humour metaphors analogies passive contractions swearing pleasantries sarcasm
anglicisms nicknames html small-talk chit-chat chitchat boilerplate cliches clichés"""

_COUNTED = """word words sentence sentences line lines character characters chars bullet bullets items options
tokens paragraph paragraphs page pages columns spaces minutes question questions suggestion suggestions steps file
files attempts retries tries times slides decimals decimal digits levels results examples seconds topic topics"""

_NUMBER = """a an one two three four five six seven eight nine ten twelve fifteen twenty fifty hundred"""

# People whose wishes the speaker passes on.
_OTHERS = """boss manager client clients team wife husband partner company customer customers user users reader
readers editor lawyer lawyers legal compliance security cto ceo lead colleague colleagues department reviewer
reviewers auditor auditors teacher professor landlord doctor finance accounting audience supervisor director board
mother father parents kids daughter son assistant secretary investors stakeholders vendor marketing hr union admin
admins sysadmin shop firm office reader"""

# Each class has a mark that is written before its words; patterns then need to know only the marks.
CLASSES: dict[str, tuple[str, frozenset[str]]] = {
    "verb": ("†", frozenset(_VERB.split())),
    "mannerly": ("‡", frozenset(_MANNERLY.split())),
    "products": ("§", frozenset(_PRODUCTS.split())),
    "product": ("¶", frozenset(_PRODUCT.split())),
    "language": ("◊", frozenset(_LANGUAGE.split())),
    "manner": ("≈", frozenset(_MANNER.split())),
    "decoration": ("≠", frozenset(_DECORATION.split())),
    "counted": ("∞", frozenset(_COUNTED.split())),
    "number": ("∫", frozenset(_NUMBER.split())),
    "others": ("√", frozenset(_OTHERS.split())),
}
OPEN_MARK = "‹"
