"""Standing wishes in other languages: a few telling words each, in the notation of cues.py."""

from __future__ import annotations

import re

from compact.constraints.cues import Cue

GERMAN = Cue(
    "German",
    r"""
ab :: (?:jetzt|sofort|heute|nun|hier)
von :: (?:jetzt|nun|hier|heute) (?:an|ab)
in :: zukunft
künftig zukünftig fortan immer niemals nie
grundsätzlich stets keinesfalls jedesmal generell durchgehend ausschließlich
auf :: keinen fall
auf :: (?:deutsch|englisch|französisch|spanisch|italienisch)
jedes :: mal
bis :: auf weiteres
ohne :: (?:meine|vorher|mich|rücksprache|rückfrage|zu fragen|zustimmung|freigabe|dass ich)
frag frage fragen zeig zeige zeigen sag sagen :: <40>(?:vorher|zuerst|erst|bevor)
bevor ehe :: (?:du|sie|ihr|etwas|irgendetwas)
bitte :: (?:keine?n?|nicht|nur|kein|immer|auf|halte|halten|verwende|verwenden|benutze|nutze|antworte|antworten|
  schreib|schreibe|duze|sieze|nie|stets|kurz|jede|jeden|alle)
keine keinen kein nicht nur :: <60>bitte
ich :: (?:möchte|will|hätte gern|mag|brauche|wünsche) (?:mir )?(?:nicht|keine|nur|dass)
mir ich :: <30>(?:lieber|wichtig)
verzichte verzichten vermeide vermeiden
sobald wenn falls :: du<40>(?:fertig|unsicher|nicht)
""",
)
FRENCH = Cue(
    "French",
    r"""
désormais dorénavant toujours jamais systématiquement
à :: (?:partir de maintenant|partir de là|l'avenir|chaque fois)
en :: (?:aucun cas|français|anglais|allemand|espagnol)
sans :: (?:me|mon|ma|demander|m'|d'abord|mon accord)
avant :: (?:de|d'|que tu|que vous|chaque)
s'il :: (?:te|vous) pla[iî]t
stp svp uniquement évite évitez
demande-moi montre-moi demandez-moi montrez-moi préviens-moi prévenez-moi réponds-moi tutoie-moi
merci :: (?:de|d')
ne n'utilise n'envoie n'efface :: <30>(?:pas|jamais|plus|aucun|rien)
je :: (?:préfère|préférerais|souhaite|voudrais) (?:que|ne|des|éviter|recevoir)
chaque :: fois
""",
)
SPANISH = Cue(
    "Spanish",
    r"""
de :: ahora en adelante
a :: partir de (?:ahora|hoy|este momento)
en :: (?:adelante|el futuro|español|inglés|ningún caso)
siempre nunca jamás
cada :: vez que
bajo :: ningun[ao]
sin :: (?:preguntar\w*|consultar\w*|mi|avisar\w*|pedir\w*|antes|que yo)
antes :: de (?:que )?\w+
por :: favor (?:no|solo|sólo|evita|evite|responde|responda|usa|use|en|nada|mantén|que)
prefiero preferiría :: (?:que|no|las|los|respuestas)
solo sólo únicamente :: (?:en|por|con)
nada :: de
no :: (?:uses|toques|envíes|hagas|borres|cambies|me|quiero|utilices|mandes|modifiques)
me :: gustaría que
""",
)
ITALIAN = Cue(
    "Italian",
    r"""
d'ora :: in (?:poi|avanti)
da :: (?:ora|adesso|oggi) in (?:poi|avanti)
in :: (?:futuro|italiano|inglese|nessun caso)
sempre ogni :: (?:volta|che|di|a|in|il|la|con|prima|\w+)
non :: (?:\w+ )?mai
mai :: (?:più|senza|il|la|i|le|usare|inviare)
senza :: (?:chieder\w*|prima|il mio|la mia|avvis\w*|la mia)
prima :: di (?:\w+)
per :: (?:favore|piacere)
preferisco preferirei :: (?:che|non|le|risposte|se)
niente :: \w+
non :: (?:usare|toccare|inviare|cancellare|mandare|modificare|fare|voglio)
""",
)
PORTUGUESE = Cue(
    "Portuguese",
    r"""
de :: agora em diante
a :: partir de (?:agora|hoje)
daqui :: (?:em|para a?|pra) (?:diante|frente)
sempre :: (?:que|me|em|use|responda|o|a|os|as)
nunca :: \w+
em :: hipótese alguma
em :: (?:português|inglês)
sem :: (?:me|perguntar|pedir|a minha|minha|consultar|antes)
antes :: de (?:\w+)
por :: favor (?:não|só|apenas|evite|responda|use|em|sempre|nunca|mantenha)
prefiro :: (?:que|não|as|respostas)
apenas só somente :: (?:em|por|com|use)
não :: (?:use|toque|envie|apague|mude|faça|altere|quero|mexa|mande)
""",
)
DUTCH_TURKISH = Cue(
    "Dutch, Turkish",
    r"""
vanaf :: (?:nu|heden|vandaag)
voortaan altijd nooit
in :: het (?:vervolg|nederlands|engels)
elke :: keer
in :: geen geval
zonder :: (?:mij|me|mijn|te vragen|eerst|overleg|toestemming)
voordat :: je
geen niet alleen :: <60>(?:alsjeblieft|alstublieft|graag|aub)
alsjeblieft alstublieft aub graag :: <40>(?:geen|niet|alleen|kort|in|eerst)
ik :: (?:heb liever|wil (?:geen|niet|dat|graag))
gebruik :: (?:geen|altijd|alleen)
bundan :: (?:sonra|böyle)
asla daima kesinlikle
her :: (?:zaman|seferinde|defasında)
hiçbir :: (?:zaman|koşulda|şekilde)
bana :: (?:sormadan|danışmadan|haber vermeden)
lütfen :: <60>(?:sadece|yalnızca|\w+may[ıi]n|\w+mey[ıi]n|\w+ma|\w+me|kısa|türkçe)
sadece yalnızca :: türkçe
tercih :: ederim
""",
)
NORTH_EAST = Cue(
    "Polish, Czech, Scandinavian, Finnish",
    r"""
od :: (?:teraz|teď|nynějška)
zawsze nigdy vždy vždycky nikdy
za :: każdym razem
proszę prosím :: (?:nie|tylko|o|zawsze|ne|jen|pouze)
bez :: (?:pytania|mojej|mojego|mého|zeptání)
från :: och med nu
i :: fortsättningen
alltid aldrig altid aldri
fra :: nu af
fra :: nå av
tästä :: lähtien
aina :: \w+
älä :: \w+
""",
)
FOREIGN_CUES = (GERMAN, FRENCH, SPANISH, ITALIAN, PORTUGUESE, DUTCH_TURKISH, NORTH_EAST)

# Scripts that do not put spaces between words, or that bend their words too much to look them up.
UNSPACED = re.compile(
    r"(?:^|[.,;] )(?:пожалуйста,? )?не \w+(?:й|йте|и|ите|ь|ьте)\b|никогда|всегда|впредь|отныне"
    "|с этого момента|в дальнейшем|кажд(?:ый|ое) раз|ни в коем случае|прежде чем"
    "|без (?:моего|моей|спроса|разрешения|подтверждения|согласования)|перед тем,? как"
    "|пожалуйста,? (?:не|только|без|всегда)"
    "|только на|не используй|не трогай|не удаляй|не отправляй|предпочитаю|мне не нравится|по-русски|на русском"
    "|ніколи|завжди|відтепер|надалі|щоразу|будь ласка,? (?:не|тільки)"
    "|从现在(?:起|开始)|从今(?:以)?后|以后|今后|往后|务必|总是|始终|永远|绝不|绝对不|千万(?:别|不要)|一律|每次|请勿|请不要|不得"
    "|必须先|只(?:用|能用|准|许)|请(?:都|只|统一|始终|尽量|用)|除非我|未经|先.{0,12}再|之前.{0,10}(?:问|确认|告诉|给我)"
    "|從現在|以後|務必|總是|絕不|請勿|請用|請不要"
    "|今後|これから(?:は|も)|これ以降|以降は|必ず|絶対に|常に|いつも|毎回|決して|ないで(?:ください|下さい|ほしい|ね)|は禁止|やめて"
    "|だけ(?:で|に|を)?.{0,12}(?:ください|下さい|お願い)|前に.{0,14}(?:確認|聞いて|見せて|相談)|で(?:お願い|答えて|回答して)"
    "|앞으로|항상|절대|반드시|마세요|말아\\s?주세요|매번|지금부터|전에.{0,12}(?:물어|확인|보여)"
    "|من الآن|دائما|دائمًا|أبدا|أبدًا|لا تستخدم|قبل أن|अब से|हमेशा|कभी (?:भी )?(?:न|मत|नहीं)",
    re.IGNORECASE,
)
