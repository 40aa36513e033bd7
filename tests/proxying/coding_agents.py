"""Real coding agents from npm: installed once into a folder, and run headless in an empty home without a network."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

VERSIONS: Mapping[str, str] = json.loads(Path(__file__).with_name("coding_agents.json").read_text())
KEY = "sk-test-coding-agent-0123456789abcdef"
TASK = "Read all the files in the folder notes, one after the other, and tell me when you are done."
_INSTALL_SECONDS = 240
_RUN_SECONDS = 240


class NotInstallable(Exception):
    """An agent cannot be installed here; the text says why."""


@dataclass(frozen=True)
class CodingAgent:
    """One agent: its package and command, the window that it is given, and how it is told where its provider is.

    `prepare` writes its settings into its home or its work folder, and returns its arguments and its environment.
    """

    package: str
    command: str
    shell_tool: str
    window_tokens: int
    prepare: Callable[[Path, Path, str], tuple[list[str], dict[str, str]]]
    shell_argument: str = "command"
    node: int = 18


def _claude(home: Path, work: Path, url: str) -> tuple[list[str], dict[str, str]]:
    environment = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4000",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }
    return ["-p", TASK, "--dangerously-skip-permissions", "--model", "claude-sonnet-4-5"], environment


def _codex(home: Path, work: Path, url: str) -> tuple[list[str], dict[str, str]]:
    (home / ".codex").mkdir()
    provider = f'name = "scripted"\nbase_url = "{url}/v1"\nenv_key = "OPENAI_API_KEY"\nwire_api = "responses"\n'
    settings = f'model = "gpt-5"\nmodel_provider = "scripted"\n[model_providers.scripted]\n{provider}'
    (home / ".codex" / "config.toml").write_text(settings + "[analytics]\nenabled = false\n")
    arguments = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK]
    return arguments, {"OPENAI_API_KEY": KEY}


def _opencode(home: Path, work: Path, url: str) -> tuple[list[str], dict[str, str]]:
    # It compacts by itself at the window that it is told: a large one leaves that to the proxy.
    model = {"name": "gpt-4o", "limit": {"context": 1_000_000, "output": 4_000}}
    options = {"baseURL": f"{url}/v1", "apiKey": KEY}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "scripted", "options": options, "models": {"gpt-4o": model}}
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "provider": {"scripted": provider},
        "permission": {"*": "allow"},
    }
    (work / "opencode.json").write_text(json.dumps(settings))
    switches = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return ["run", "-m", "scripted/gpt-4o", TASK], {f"OPENCODE_DISABLE_{name}": "1" for name in switches}


def _qwen(home: Path, work: Path, url: str) -> tuple[list[str], dict[str, str]]:
    environment = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "gpt-4o"}
    (home / ".qwen").mkdir()
    settings = {"telemetry": {"enabled": False}, "general": {"disableAutoUpdate": True, "enableAutoUpdate": False}}
    (home / ".qwen" / "settings.json").write_text(json.dumps(settings))
    return ["-y", "--auth-type", "openai", "-p", TASK], environment


AGENTS: Mapping[str, CodingAgent] = {
    "claude-code": CodingAgent("@anthropic-ai/claude-code", "claude", "Bash", 60_000, _claude),
    "codex": CodingAgent("@openai/codex", "codex", "exec_command", 40_000, _codex, shell_argument="cmd"),
    "opencode": CodingAgent("opencode-ai", "opencode", "bash", 40_000, _opencode),
    "qwen-code": CodingAgent("@qwen-code/qwen-code", "qwen", "run_shell_command", 48_000, _qwen, node=20),
}


def node_version() -> int:
    """The major version of node; 0 if there is none."""
    if not shutil.which("node") or not shutil.which("npm"):
        return 0
    told = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=60).stdout
    return int(told.strip().lstrip("v").split(".")[0] or 0)


def install(agent: CodingAgent, folder: Path) -> Path:
    """Install an agent into a folder unless it is there, one at a time; return its command."""
    command = folder / "node_modules" / ".bin" / agent.command
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        manifest = folder / "node_modules" / agent.package / "package.json"
        if manifest.exists() and json.loads(manifest.read_text())["version"] == VERSIONS[agent.package]:
            return command
        if not node_version():
            raise NotInstallable("node and npm are not installed")
        (folder / "package.json").exists() or (folder / "package.json").write_text("{}")
        wanted = f"{agent.package}@{VERSIONS[agent.package]}"
        options = ["--no-audit", "--no-fund", "--no-progress", "--save-exact", "--prefix", str(folder)]
        done = subprocess.run(
            ["npm", "install", *options, wanted], capture_output=True, text=True, timeout=_INSTALL_SECONDS, cwd=folder
        )
    if done.returncode or not command.exists():
        raise NotInstallable(f"npm cannot install {wanted}: {done.stderr.strip()[-300:]}")
    return command


def run(agent: CodingAgent, command: Path, folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    """Run an agent to its end, in an empty home, on the notes in its work folder."""
    home, work = folder / "home", folder / "work"
    home.mkdir(exist_ok=True)
    arguments, environment = agent.prepare(home, work, url)
    known = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb", "CI": "1"}
    return subprocess.run(
        [str(command), *arguments],
        env={**known, **environment},
        cwd=work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_RUN_SECONDS,
    )
