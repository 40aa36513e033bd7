"""Command lines that carry a secret: behind a flag, as an argument, or from `echo` through a pipe."""

from __future__ import annotations

from compact.redaction.carrier import any_value, at, chosen, no_common_word, not_a_port, opaque

_QUOTE = rb"[\"']?"
_WORD = _QUOTE + rb"(?P<secret>[^\s\"']{3,4096}+)"
# A space before it: most needles of two characters are parts of words, and words may be as long as the text.
_FLAG = rb"(?<=[ ])"
# The command in whose arguments a flag means a password; other commands give the flag other meanings.
_OF_P = rb"(?:sshpass|login|mongo(?:sh|dump|restore)?)\b[^\n|;&]{0,160}[ ]$"
_OF_JOINED_P = rb"mysql\w{0,8}\b[^\n|;&]{0,120}[ ]$"  # `-p shop` asks for the password, and names the database
_OF_CAPITAL_P = rb"(?:mosquitto_\w{3}|sqlcmd|bcp|zip|unzip)\b[^\n|;&]{0,160}[ ]$"
_OF_U = rb"(?:lftp|smbclient|rpcclient|https?)\b[^\n|;&]{0,120}[ ]$"
_READERS = (
    rb"(?:sudo\b[^\n|]{0,40} -S|passwd --stdin|chpasswd|(?:docker|podman|helm registry|oras) login"
    rb"|wrangler secret put|gh (?:auth login|secret set)|cryptsetup|vault (?:login|kv put)|gcloud secrets|kubeseal)\b"
)

COMMANDS = (
    at(b"-p", _FLAG + rb"(?-i:-p)[ =]{0,4}" + _WORD, not_a_port, before=_OF_P),
    at(b"-p", _FLAG + rb"(?-i:-p)[\"']?(?!assword)(?P<secret>[^\s\"']{3,4096}+)", not_a_port, before=_OF_JOINED_P),
    at(b"-p", _FLAG + rb"(?-i:-P)[ ]{0,4}" + _WORD, before=_OF_CAPITAL_P),
    at(b"-p", _FLAG + rb"-p" + _WORD, chosen, before=rb"\b7z[arz]? (?:[^\n|;&]{0,160}[ ])?$"),
    at(b"-u", _FLAG + rb"-u[ =]{0,4}" + _QUOTE + rb"[^\s,%:\"']{1,80}[,%](?P<secret>[^\s\"']{3,4096}+)", before=_OF_U),
    at(b"curl", rb"curl\b[^\n]{0,160}? (?:-u|--user|--proxy-user)[ =]{0,4}[\"']?[^\s:\"']{0,80}:"
       rb"(?P<secret>[^\s\"']{2,4096}+)"),
    at(b"curl", rb"curl\b[^\n]{0,160}? (?:-b|--cookie)[ =]{0,4}[\"']?[\w.-]{1,64}="
       rb"(?P<secret>[^\s;\"']{8,4096}+)", opaque),
    at(b"login", rb"login[ ](?:-[a-z-]{1,20}[ ])?(?P<secret>s\.[A-Za-z0-9]{24}|[0-9a-f]{40})(?![A-Za-z0-9])"),
    at(b"login", rb"(?-i:LOGIN) [\"']?[\w.@+-]{1,64}[\"']? [\"']?(?P<secret>[^\s\"']{4,128})[\"']?(?=\r?\n|$)", chosen),
    at(b"login", rb"login=[\w.@-]{1,64}:" + _WORD, no_common_word),
    at(b"redis-cli", rb"redis-cli\b[^\n|;&]{0,160}?[ \t](?:-a|--pass)[ =]{1,4}" + _WORD),
    at(b"ldap", rb"ldap[a-z]{3,8}\b[^\n|;&]{0,200}?[ \t](?-i:-w)[ \t]{1,4}" + _WORD),
    at(b"-pass", rb"-pass(?:in|out)?[ =]{1,4}[\"']?pass:(?P<secret>[^\s\"']{3,4096}+)"),
    at(b"net us", rb"net use [^\n]{0,160}?[ \t](?P<secret>[^\s/\\:]{4,64})[ \t]{1,4}/user:", chosen),
    at(b"net us", rb"net use [^\n]{0,160}?[ \t]/user:[^\s]{1,64}[ \t]{1,4}(?P<secret>[^\s/\\:]{4,64})", chosen),
    at(b"net us", rb"net user [\w.$-]{1,64} (?P<secret>[^\s/]{4,64})", chosen),
    at(b"securestring", rb"securestring[ \t]{1,4}(?:-string[ \t]{1,4})?[\"'](?P<secret>[^\"'\n]{3,256})",
       no_common_word),
    at(b"securestring", rb"securestring\b[^\n]{0,160}? --value[ =]{1,4}" + _WORD),
    at(b"secret set", rb"secret set\b[^\n|;&]{0,160}? (?:--body|--value|-b)[ =]{1,4}" + _WORD, any_value),
    at(b"http-basic.", rb"http-basic\.[\w.-]{1,64} [\w.@-]{1,64} " + _WORD),
    at(b"auth", rb"authtoken[ ]" + _WORD, opaque),
    at(b"auth", rb"auth[ ](?P<secret>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22})(?![\w-])", before=rb"\bsnyk $"),
    at(b"auth", rb"auth plain (?P<secret>[A-Za-z0-9+/]{8,512}={0,2})(?=\s|$)", no_common_word),
    at(b"auth", rb"auth\" (?:\"[^\"\n]{1,64}\" )?\"(?P<secret>[^\"\n]{3,256})\"", before=rb"(?:\] |\n|^)\"$"),
    at(b"echo ", rb"echo (?:-[ne]{1,2} )?" + _QUOTE + rb"(?:[\w.-]{1,64}:(?=[^|\n]{1,200}\|[ ]{0,4}chpasswd))?"
       rb"(?P<secret>[^\s|\"'$`]{4,512})[\"']?[ ]{0,4}\|[ ]{0,4}" + _READERS, no_common_word),
    at(b"passw", rb"password-stdin[^\n]{0,160}\n(?P<secret>[^\s]{4,512})\r?\n[A-Z]{2,12}\b",
       before=rb"<<[^\n]{0,160}$"),
)  # fmt: skip
