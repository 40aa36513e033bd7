"""All peers that are installed, with their versions; what is not installed or cannot be run offline is named."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from compact import CompactConfig, __version__
from compact.measuring.histories import SessionHistory
from compact.measuring.policies import Policy, PolicyLimits, Prepare, compact_policy

# The module of the peers, the package that is measured, and what a user imports.
_FRAMEWORKS = (
    ("peers.langchain_peers", "langchain", "langchain.agents.middleware"),
    ("peers.agent_framework_peers", "agent-framework-core", "agent_framework"),
    ("peers.strands_peers", "strands-agents", "strands"),
    ("peers.litellm_peers", "litellm", "litellm"),
    ("peers.headroom_peers", "headroom-ai", "headroom"),
)
NOT_MEASURED = {
    "pydantic-ai": "its compaction is done by the provider's server, so it cannot run offline",
    "google-adk": "its compaction runs inside a running app, which this benchmark does not start",
}


@dataclass(frozen=True, slots=True)
class Peer:
    """A policy, the package it comes from, and the module whose import is timed."""

    policy: Policy
    package: str
    version: str
    module: str


def ours() -> Policy:
    """Compact with its defaults, in the window of the others."""

    def start(history: SessionHistory, limits: PolicyLimits) -> Prepare:
        config = CompactConfig(
            model="gpt-4o",
            max_context_tokens=limits.window_tokens,
            policy={"hard_cap_buffer": min(1500, limits.window_tokens // 10)},
            summarizer={"prefetch": "never"},
            state={"url": "memory:"},
            storage={"adapter": "none"},
            telemetry={"exporter": "none"},
        )
        return compact_policy("compact", config).start(history, limits)

    return Policy("compact", "its defaults, without a model", start)


def installed_peers(only: str = "") -> tuple[list[Peer], dict[str, str]]:
    """Ours first, then every framework's, and why others are missing; `only` imports the framework of one peer."""
    peers = [Peer(ours(), "compact-context", __version__, "compact")]
    missing = dict(NOT_MEASURED)
    wanted = f"peers.{only.partition(' ')[0].replace('-', '_')}_peers"
    for module, package, imported in _FRAMEWORKS:
        if only and module != wanted:
            continue
        try:
            found, policies = version(package), import_module(module).POLICIES
        except (PackageNotFoundError, ImportError):
            missing[package] = "not installed here"
            continue
        peers += [Peer(policy, package, found, imported) for policy in policies]
    return peers, missing
