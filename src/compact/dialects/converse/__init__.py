"""Bedrock Converse: two roles, content of blocks with one key each, results in the user's next message.

messages  the dialect: messages as entries, and entries as messages
blocks    content blocks as parts of an entry, which can be stored as JSON, and parts as blocks again
check     what Converse answers with a ValidationException
"""

from compact.dialects.converse.check import check_converse as check_converse
from compact.dialects.converse.messages import ConverseDialect as ConverseDialect
