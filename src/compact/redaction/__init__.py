"""Take secrets out of what leaves the process; what stays in memory is never changed.

redactor    the one class to use: text, nested values and messages
nested      nested data: which parts are strings, which sit under a secret's name
spans       where the secrets in a text are, and their replacement
names       is `client_secret` the name of a secret, and `max_tokens` not
values      is this value a secret, or a placeholder, a type, a word
assignments `name = value` in the many ways people and programs write it
blocks      secrets on a line behind their name: YAML, Kubernetes, Terraform
encoded     base64 that holds a secret once it is decoded
carrier     what all carriers are: a word, what must stand there, and what the secret may be
carriers    headers, cookies, URLs, hashes and key blocks that carry a secret
commands    command lines that carry one
calls       calls and SQL that have one in a known place
tables      columns of secrets: SQL, CSV, Markdown
shapes      secrets recognised by their look alone, such as vendors' keys
custom      the user's own patterns, on a linear-time engine
"""

from __future__ import annotations

from compact.redaction.redactor import Redactor
from compact.redaction.spans import MARK

__all__ = ["MARK", "Redactor"]
