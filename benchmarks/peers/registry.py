"""All peers that are installed, with their versions; what is not installed or cannot be run offline is named."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from compact import CompactConfig, __version__
from compact.measuring.histories import SessionHistory
from compact.measuring.policies import Policy, PolicyLimits, Prepare, compact_policy

# The module of the peers, the package that is measured, and what a user imports; many packages load parts when asked.
_FRAMEWORKS = (
    ("peers.langchain_peers", "langchain", "from langchain.agents.middleware import SummarizationMiddleware"),
    ("peers.agent_framework_peers", "agent-framework-core", "from agent_framework import TruncationStrategy"),
    (
        "peers.strands_peers",
        "strands-agents",
        "from strands.agent.conversation_manager import SummarizingConversationManager",
    ),
    ("peers.google_adk_peers", "google-adk", "from google.adk.apps.app import App, EventsCompactionConfig"),
    (
        "peers.pydantic_ai_peers",
        "pydantic-ai-harness",
        "from pydantic_ai_harness.compaction import SummarizingCompaction",
    ),
    ("peers.litellm_peers", "litellm", "from litellm.utils import trim_messages"),
    ("peers.headroom_peers", "headroom-ai", "from headroom import compress"),
)
# Which compactions of an installed package cannot be measured.
NOT_MEASURED = {
    "pydantic-ai-slim": "`OpenAICompaction` and `AnthropicCompaction` run on the provider's server, so not offline",
}


@dataclass(frozen=True, slots=True)
class Peer:
    """A policy, the package it comes from, and the import that is timed."""

    policy: Policy
    package: str
    version: str
    statement: str


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
    peers = [Peer(ours(), "compact-context", __version__, "from compact import CompactManager")]
    missing = {f"{package} {found}": why for package, why in NOT_MEASURED.items() if (found := installed(package))}
    wanted = f"peers.{only.partition(' ')[0].replace('-', '_')}_peers"
    for module, package, statement in _FRAMEWORKS:
        if only and module != wanted:
            continue
        found = installed(package)
        if found is None:
            missing[package] = "not installed here"
            continue
        peers += [Peer(policy, package, found, statement) for policy in import_module(module).POLICIES]
    return peers, missing


def installed(package: str) -> str | None:
    """The version of a package, if it is installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
