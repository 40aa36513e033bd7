"""The conformance suite for dialects: how a caller's items become entries of the log, and items again."""

from __future__ import annotations

import json
from collections.abc import Sequence

from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.core.messages.message import copy_plain
from compact.dialects import Dialect
from compact.dialects.translation import Translator


def check_dialect(dialect: Dialect, sample: Sequence[object]) -> None:
    """Check what the engine relies on in a dialect.

    Args:
        dialect: The dialect.
        sample: A legal history in it, as it goes to the provider.

    Raises:
        AssertionError: It got something wrong; the message says what.

    Example:
        >>> from compact.dialects import CHAT
        >>> from compact.testing import check_dialect, tool_run
        >>> check_dialect(CHAT, tool_run(3))
    """
    before = copy_plain(list(sample))
    assert not dialect.check(sample), "the sample is not legal in its own dialect"
    assert not any(dialect.recognises(item) is False for item in sample), "a dialect knows its own items"
    blocks = list(dialect.read(sample, 0))
    read_items = [item for block in blocks for item in block.items]
    assert len(read_items) == len(sample), "every item is in one block"
    assert all(a is b for a, b in zip(read_items, sample, strict=True)), "blocks hold the items themselves, in order"
    translator = Translator(dialect)
    entries = translator.entries(sample)
    given_back = translator.items(entries)
    assert all(a is b for a, b in zip(given_back, sample, strict=True)), "what nobody changed is given back as it is"
    messages = [read_entry(entry, f"entries[{place}]") for place, entry in enumerate(entries)]
    assert not check_chat(messages), "entries are legal Chat Completions"
    stored = json.loads(json.dumps(entries))
    rebuilt = [item for block in dialect.join(list(dialect.write(stored))) for item in block.items]
    assert rebuilt == list(sample), "items can be made from their entries alone, after these were stored"
    assert list(sample) == before, "the caller's items are not touched"
    _check_summary(dialect, sample)


def _check_summary(dialect: Dialect, sample: Sequence[object]) -> None:
    """Check that a summary in front of a history is written legally, says what it says, and is known again."""
    translator = Translator(dialect)
    summary = {"role": "assistant", "content": "<COMPACT-SUMMARY v1>\nwhat was before\n</COMPACT-SUMMARY>"}
    entries = [summary, *translator.entries(sample)]
    prompt = translator.items(entries, summary_place=0)
    assert not dialect.check(prompt), "a prompt that begins with a summary is legal"
    assert "what was before" in json.dumps(prompt, default=repr), "the summary is in the prompt"
    back = translator.entries(prompt)
    assert back == entries, "a prompt that comes back is read as the entries that it was written from"
    assert not any("compact_summary" in json.dumps(entry, default=repr) for entry in back), "marks do not stay"
