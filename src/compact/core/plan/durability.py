"""How long a tool's result matters: what may be cleared, what must keep its key fields, what must stay."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, cast

from compact.core.messages.message import Message


class ToolDurability(Enum):
    """What clearing a result would lose."""

    EPHEMERAL = "ephemeral"  # progress, notes to self: nothing; may even be dropped once cleared
    ANCHORING = "anchoring"  # created something: its key fields (ids, paths, status) must stay
    REPLAYABLE = "replayable"  # the same call gives it back
    NON_REPLAYABLE = "non_replayable"  # an answer, an approval, a payment: it is never cleared


@dataclass(frozen=True, slots=True)
class DeterminismMetadata:
    """What proves that replaying a call gives the same result."""

    content_hash: str | None = None
    etag: str | None = None
    mtime: float | None = None
    version: str | None = None

    @property
    def is_verifiable(self) -> bool:
        """True if at least one of the proofs is there."""
        return any(proof is not None for proof in (self.content_hash, self.etag, self.mtime, self.version))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDurabilityPolicy:
    """How the results of one tool are kept; `None` leaves a rule to the strategy's default."""

    durability: ToolDurability = ToolDurability.REPLAYABLE
    preserve_fields: tuple[str, ...] = ()
    keep_last: int | None = None
    keep_turns: int | None = None
    never_evict: bool = False


@dataclass(frozen=True, slots=True)
class ToolResultEnvelope:
    """A tool result with all that decides about it: which call made it, and how durable it is."""

    message: Message
    tool_name: str
    arguments: str
    policy: ToolDurabilityPolicy
    determinism: DeterminismMetadata = field(default_factory=DeterminismMetadata)

    @property
    def may_clear(self) -> bool:
        """True if the result may leave the prompt and a stub may stand for it."""
        return not self.policy.never_evict and self.policy.durability is not ToolDurability.NON_REPLAYABLE

    def preserved_fields(self) -> dict[str, str]:
        """Return the key fields of a JSON result that its policy wants to keep, as text."""
        if not self.policy.preserve_fields:
            return {}
        try:
            parsed = json.loads(self.message.text)
        except (ValueError, RecursionError):
            return {}
        if not isinstance(parsed, dict):
            return {}
        fields = cast(dict[str, Any], parsed)
        return {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name in self.policy.preserve_fields
            if (value := fields.get(name)) is not None
        }


_DURABILITIES = frozenset(durability.value for durability in ToolDurability)
_ANCHOR_FIELDS = ("id", "path", "file_path", "url", "status", "name")

# First match wins; names are compared in lower case. What no pattern names is replayable: the log still has it.
DEFAULT_DURABILITY_POLICIES: Mapping[str, ToolDurabilityPolicy] = {
    **dict.fromkeys(
        ("ask_*", "ask", "human*", "*approval*", "confirm*", "*payment*", "*signature*"),
        ToolDurabilityPolicy(durability=ToolDurability.NON_REPLAYABLE),
    ),
    **dict.fromkeys(
        ("think", "todo*", "*progress*", "wait*", "sleep*", "ping*", "heartbeat*"),
        ToolDurabilityPolicy(durability=ToolDurability.EPHEMERAL),
    ),
    **dict.fromkeys(
        ("create*", "*_create", "insert*", "book*", "submit*", "send*", "deploy*", "upload*"),
        ToolDurabilityPolicy(durability=ToolDurability.ANCHORING, preserve_fields=_ANCHOR_FIELDS),
    ),
}


def tool_policies(
    never_evict: Iterable[str], policies: Mapping[str, ToolDurabilityPolicy]
) -> dict[str, ToolDurabilityPolicy]:
    """Return the policies by pattern, with those tools that are never evicted before all others."""
    return {**dict.fromkeys(never_evict, ToolDurabilityPolicy(never_evict=True)), **policies}


def policy_for(tool_name: str, policies: Mapping[str, ToolDurabilityPolicy]) -> ToolDurabilityPolicy:
    """Return the first policy whose pattern fits the tool, else that of the defaults, else replayable."""
    lowered = tool_name.lower()
    for pattern, policy in policies.items():
        if fnmatchcase(lowered, pattern.lower()):
            return policy
    return _default_policy(lowered)


@lru_cache(maxsize=1024)
def _default_policy(lowered: str) -> ToolDurabilityPolicy:
    fitting = (policy for pattern, policy in DEFAULT_DURABILITY_POLICIES.items() if fnmatchcase(lowered, pattern))
    return next(fitting, ToolDurabilityPolicy())


def envelope(
    message: Message, *, tool_name: str, arguments: str, policies: Mapping[str, ToolDurabilityPolicy]
) -> ToolResultEnvelope:
    """Wrap a result; `meta["durability"]` and `meta["determinism"]` on the message overrule the tool's policy."""
    policy = policy_for(tool_name, policies)
    own = message.meta.get("durability")
    if isinstance(own, str) and own in _DURABILITIES:
        fields_to_keep = policy.preserve_fields or _ANCHOR_FIELDS
        policy = replace(policy, durability=ToolDurability(own), preserve_fields=fields_to_keep)
    proofs = message.meta.get("determinism")
    if not isinstance(proofs, Mapping):
        return ToolResultEnvelope(message, tool_name, arguments, policy)
    named = cast(Mapping[str, Any], proofs)
    known = {spec.name: named.get(spec.name) for spec in fields(DeterminismMetadata)}
    return ToolResultEnvelope(message, tool_name, arguments, policy, DeterminismMetadata(**known))
