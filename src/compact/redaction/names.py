"""Tells the names of secrets (`client_secret`, `x-api-key`) from their look-alikes (`max_tokens`, `password_policy`).

The last word of a name says what it holds: `token_count` is a count, `api_key_id` an id, `PASSWORD_FILE` a file.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache


class Kind(Enum):
    """How surely a name announces a secret."""

    NONE = "none"
    HINT = "hint"  # `auth`, `pass`: only if the value looks like a secret
    LIKELY = "likely"  # `token`, `access_key`: in running text only if the value looks random
    SURE = "sure"  # `password`, `api_key`: anything but a placeholder, a type or a reference


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names of secrets in other languages, as the English that the rest of this file understands. The longer come first.
FOREIGN_NAMES = {
    **dict.fromkeys(
        ("kennwort", "passwort", "wachtwoord", "lösenord", "losenord", "passord", "adgangskode"), "password"
    ),
    **dict.fromkeys(("mot_de_passe", "mot-de-passe", "mot de passe", "motdepasse", "senha", "salasana"), "password"),
    **dict.fromkeys(("contraseña", "contrasena", "contrasenya", "parola_chiave", "parolachiave"), "password"),
    **dict.fromkeys(("parola d'ordine", "hasło", "haslo", "heslo", "geslo", "lozinka", "şifre", "jelszó"), "password"),
    **dict.fromkeys(("mật khẩu", "kata sandi", "slaptažodis", "wagwoord", "parool"), "password"),
    **dict.fromkeys(("пароль", "密码", "密碼", "口令", "パスワード", "비밀번호", "암호", "รหัสผ่าน"), "password"),
    **dict.fromkeys(("كلمة المرور", "كلمة السر", "סיסמה", "סיסמא", "पासवर्ड", "συνθηματικό"), "password"),
    **dict.fromkeys(("zugangsschlüssel", "zugangsschluessel"), "access_key"),
    **dict.fromkeys(("geheimer_schlüssel", "geheimer_schluessel", "geheimschlüssel", "geheimschluessel"), "secret_key"),
    **dict.fromkeys(("privater_schlüssel", "privater_schluessel"), "private_key"),
    **dict.fromkeys(("api_schlüssel", "api-schlüssel", "api_schluessel", "api-schluessel"), "api_key"),
    **dict.fromkeys(("clé_api", "cle_api", "clave_api", "chiave_api", "chave_api"), "api_key"),
    **dict.fromkeys(("clé_secrète", "clé_secrete", "cle_secrete", "clave_secreta", "chiave_segreta"), "secret_key"),
    **dict.fromkeys(("clé_privée", "cle_privee", "clave_privada", "chiave_privata"), "private_key"),
    **dict.fromkeys(("clé d'api", "clé api", "clé secrète"), "api_key"),
}

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SURE = _words(
    "password passwd passwort pwd passphrase passcode secret apikey secretkey privatekey clientsecret "
    "authorization cookie pgpassword requirepass masterauth psk bindpw mdp"
)
_SURE_ENDINGS = ("password", "passwd", "passphrase", "apikey", "secret", "secretkey")
_LIKELY = _words("token jwt accesskey accountkey sharedkey authkey credential credentials pat")
_PLURALS = _words("passwords passphrases secrets apikeys cookies")

_SURE_KEYS = _words("api secret private")
_LIKELY_KEYS = _words(
    "access account admin aes app auth client consumer deploy encryption function functions hmac host jwt license "
    "master root rsa service preshared session shared signing ssh storage subscription webhook write ingest "
    "integration application cipher crypt crypto fastly fernet sas unseal"
)
# Tokens that are pieces of text, positions in a list, or kinds of something: none of them is a secret.
_HARMLESS_TOKENS = _words(
    "a any bos cls completion continuation cost count current cursor each end eos expected first image input last "
    "mask max min next no num one output pad page paging parse per prev previous price prompt sep single special start "
    "stop sync total unk usd word"
)
_TOKEN_OWNERS = _words("access api auth bearer bot id oauth personal private refresh security session user")
_PASS_OWNERS = _words(
    "admin db database email ftp http imap key keystore ldap mail mongo my mysql pg postgres proxy redis root smtp ssh "
    "store sudo trust truststore user wifi"
)
# The last two words of other names.
_PAIRS = {
    **dict.fromkeys([("key", "data"), ("key", "base")], Kind.SURE),  # `client-key-data`, `secret_key_base`
    **dict.fromkeys([("secret", "string"), ("secret", "value")], Kind.SURE),  # as key vaults call what they keep
    **dict.fromkeys([("password", "hash"), ("passwd", "hash"), ("pwd", "hash")], Kind.LIKELY),
    ("secret", "id"): Kind.HINT,  # of Vault it is a secret, elsewhere the name of one
}
_OWNED_PASS = tuple(f"{owner}pass" for owner in _PASS_OWNERS)  # `dbpass`, `srcstorepass`


@lru_cache(maxsize=4096)
def kind_of_name(name: str) -> Kind:
    """Return how surely `name` (in any case style, with any prefix) is the name of a secret."""
    words = [word.lower() for word in _WORDS.findall(_in_english(name))]
    while len(words) > 1 and words[-1].isdigit():
        words.pop()
    if not words:
        return Kind.NONE
    return _kind_of_last(words[-1], words[-2] if len(words) > 1 else "")


def _in_english(name: str) -> str:
    low = name.lower()
    foreign = next((word for word in FOREIGN_NAMES if word in low), None)
    return name if foreign is None else low.replace(foreign, f" {FOREIGN_NAMES[foreign]} ")


def _kind_of_last(last: str, before: str) -> Kind:
    if last in _SURE or last in _PLURALS or last.endswith(_SURE_ENDINGS + _OWNED_PASS):
        return Kind.SURE
    if (before, last) in _PAIRS:
        return _PAIRS[before, last]
    if last in ("key", "keys"):
        return _kind_of_key(before, plural=last == "keys")
    if last in ("pass", "pw"):
        return Kind.SURE if before in _PASS_OWNERS else Kind.HINT
    if last == "auth":
        return Kind.HINT
    if last == "tokens":
        return Kind.LIKELY if before in _TOKEN_OWNERS else Kind.NONE
    if last == "pat" and not before:
        return Kind.NONE
    if last in _LIKELY or last.endswith("token"):
        return Kind.NONE if before in _HARMLESS_TOKENS else Kind.LIKELY
    return Kind.NONE


def _kind_of_key(before: str, *, plural: bool) -> Kind:
    if before in _SURE_KEYS:
        return Kind.SURE
    return Kind.LIKELY if before in _LIKELY_KEYS and not plural else Kind.NONE
