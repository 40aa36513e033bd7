"""The value of a thousand tokens for what the agent goes on to write, by kind of content and age.

Made by `python benchmarks/value.py --data FOLDER --write`, which says how, at 549 places of 187 public
sessions of coding and service agents from 11 sources.
"""

from __future__ import annotations

from collections.abc import Mapping

from compact.core.facts.value import ContentKind

VALUES: Mapping[ContentKind, tuple[float, ...]] = {
    ContentKind.TYPED: (1238, 478, 478, 478, 408, 338, 298, 298, 298),
    ContentKind.INSERTED: (207, 196, 184, 184, 184, 184, 169, 165, 130),
    ContentKind.AGENT: (532, 371, 304, 304, 295, 239, 231, 206, 198),
    ContentKind.ARGUMENTS: (367, 216, 195, 195, 195, 184, 184, 184, 163),
    ContentKind.HEAD: (401, 155, 135, 130, 130, 130, 130, 119, 119),
    ContentKind.ERROR: (178, 118, 87, 87, 87, 87, 87, 87, 86),
    ContentKind.REST: (120, 63, 46, 46, 46, 46, 46, 46, 45),
}
