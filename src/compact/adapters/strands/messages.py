"""The messages of Strands, which are those of Bedrock's Converse with marks of its own, as a dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from compact.core.json_data import is_mapping
from compact.dialects.converse import ConverseDialect


class StrandsDialect(ConverseDialect):
    """Reads and writes `strands.types.content.Message`.

    The plugin uses it by itself; name it where you call the manager with such messages.

    Args:
        protected_flag: The key in `metadata.custom` that protects a message.
        name: The name of the dialect in events and errors.

    Example:
        >>> from compact import CompactManager
        >>> from compact.adapters.strands import StrandsDialect
        >>> messages = [{"role": "user", "content": [{"text": "Hello"}]}]
        >>> CompactManager().preflight("chat-1", messages, dialect=StrandsDialect()) == messages
        True
    """

    # Strands removes these before a request leaves; ids and metrics are not the same after a restart.
    _local_keys: ClassVar[tuple[str, ...]] = ("tracking_id", "metadata")
    _result_fields: ClassVar[Mapping[str, Any]] = {"status": "success"}

    def __init__(self, protected_flag: str = "protected", name: str = "strands") -> None:
        self.protected_flag = protected_flag
        self.name = name

    def _meta(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the user has put into the metadata; a message that Strands has pinned is protected here, too."""
        metadata: Mapping[str, Any] = item.get("metadata") or {}
        custom = metadata.get("custom")
        meta = dict(custom) if is_mapping(custom) else {}
        if meta.get("pinned") is True:
            meta[self.protected_flag] = True
        return meta
