"""What to set so that an agent sends its requests to a proxy: lines to paste into a shell or a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

_TOKEN_HEADER = "X-Compact-Token"
_TOKEN_VARIABLE = "COMPACT_PROXY_TOKEN"


class ProxiedAgent(StrEnum):
    """The agents whose settings are known."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    OPENCODE = "opencode"
    QWEN = "qwen"
    GEMINI = "gemini"


@dataclass(frozen=True, slots=True)
class AgentSetup:
    """The provider that an agent calls unless it is told otherwise, and the lines that send it to a proxy."""

    upstream: str
    lines: tuple[str, ...]

    def text(self, start: str) -> str:
        """Return the lines to paste; `start` is the command that starts the proxy they are for."""
        return "\n".join((f"# the proxy: {start}", *self.lines))


def setup_of(agent: ProxiedAgent, address: str, *, has_token: bool) -> AgentSetup:
    """Return what to set for an agent; with a token it is read from the environment, and not printed."""
    return _SETUPS[agent](address, has_token)


def _claude_code(address: str, has_token: bool) -> AgentSetup:
    lines = [f"export ANTHROPIC_BASE_URL={address}"]
    if has_token:
        lines.append(f'export ANTHROPIC_CUSTOM_HEADERS="{_TOKEN_HEADER}: ${_TOKEN_VARIABLE}"')
    return AgentSetup("https://api.anthropic.com", tuple(lines))


def _codex(address: str, has_token: bool) -> AgentSetup:
    """Codex reads no environment variable for this; a provider of one's own is the only one with headers."""
    upstream, where = "https://api.openai.com", "# in ~/.codex/config.toml, above the first [table]:"
    if not has_token:
        return AgentSetup(upstream, (where, f'openai_base_url = "{address}/v1"'))
    provider = (
        'model_provider = "compact"',
        "# and at its end:",
        "[model_providers.compact]",
        'name = "Compact"',
        f'base_url = "{address}/v1"',
        'wire_api = "responses"',
        'env_key = "OPENAI_API_KEY"',
        f'env_http_headers = {{ "{_TOKEN_HEADER}" = "{_TOKEN_VARIABLE}" }}',
    )
    return AgentSetup(upstream, (where, *provider))


def _opencode(address: str, has_token: bool) -> AgentSetup:
    options: dict[str, object] = {"baseURL": f"{address}/v1"}
    if has_token:
        options["headers"] = {_TOKEN_HEADER: f"{{env:{_TOKEN_VARIABLE}}}"}
    config = json.dumps({"provider": {"anthropic": {"options": options}}})
    note = "# or the same in opencode.json; for OpenAI's models write openai, and give the proxy https://api.openai.com"
    return AgentSetup("https://api.anthropic.com", (f"export OPENCODE_CONFIG_CONTENT='{config}'", note))


def _qwen(address: str, has_token: bool) -> AgentSetup:
    lines = [f"export OPENAI_BASE_URL={address}/v1"]
    if has_token:
        headers = json.dumps({_TOKEN_HEADER: f"${_TOKEN_VARIABLE}"})
        settings = f'{{"model": {{"generationConfig": {{"customHeaders": {headers}}}}}}}'
        lines += ["# and in ~/.qwen/settings.json:", settings]
    return AgentSetup("https://dashscope.aliyuncs.com/compatible-mode/v1", tuple(lines))


def _gemini(address: str, has_token: bool) -> AgentSetup:
    lines = [f"export GOOGLE_GEMINI_BASE_URL={address}"]
    if has_token:
        lines.append(f'export GEMINI_CLI_CUSTOM_HEADERS="{_TOKEN_HEADER}: ${_TOKEN_VARIABLE}"')
    lines.append("# with GEMINI_API_KEY; a login with Google uses another server, which is not compacted")
    return AgentSetup("https://generativelanguage.googleapis.com", tuple(lines))


_SETUPS: Mapping[ProxiedAgent, Callable[[str, bool], AgentSetup]] = {
    ProxiedAgent.CLAUDE_CODE: _claude_code,
    ProxiedAgent.CODEX: _codex,
    ProxiedAgent.OPENCODE: _opencode,
    ProxiedAgent.QWEN: _qwen,
    ProxiedAgent.GEMINI: _gemini,
}
