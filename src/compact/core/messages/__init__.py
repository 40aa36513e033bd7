"""Messages, in the one form that the log has, whatever dialect they came in.

message        one entry of a conversation
entries        read and write entries
attachments    what is attached to a message: pictures, documents, recordings
attachment_use which of them are in use
pdf_pages      how many pages a PDF has
groups         messages that only make sense together; turns
structure      how a history is built, read once as it grows
legality       what a provider accepts, and the nearest legal prompt
turn_order     lines where a whole turn was left out, so that user and assistant alternate
sensitivity    who may see an entry, and what stands for it elsewhere
own_compaction agents that have replaced their own history by a summary
tokenizer      the socket for token counters
"""

from __future__ import annotations

from typing import Any

from compact.core.former_names import former_name


def __getattr__(name: str) -> Any:
    """Return a name of the module that this room was once."""
    return former_name(__name__, name)
