"""The command, as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx2
import pytest

from compact.extras import install_line
from proxying.models import Model, Turn
from proxying.provider import Provider

COMMAND = [sys.executable, "-m", "compact.cli.main", "proxy"]
HELLO = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COMPACT_")}
    return {**kept, **more}


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_it_listens_and_stops_when_told(end: signal.Signals, tmp_path: Path) -> None:
    """It says where it is, answers, and has everything in its store when it is gone."""
    with Provider(Model(lambda _: Turn("hello"))) as provider:
        process = subprocess.Popen(
            [*COMMAND, "--upstream", provider.url, "--port", "0"],
            cwd=tmp_path,
            env=environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr
            where = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
            assert where
            answer = httpx2.post(f"{where[0]}/v1/chat/completions", json=HELLO, timeout=60)
            process.send_signal(end)
            _, rest = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
    assert answer.json()["choices"][0]["message"]["content"] == "hello"
    assert answer.headers["x-compact"].startswith("unchanged; tokens=")
    assert "Traceback" not in rest
    assert process.returncode in (130, -end)
    assert (tmp_path / ".compact" / "state.db").stat().st_size > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--upstream", "api.openai.com"], "is not the URL of an HTTP server"),
        (["--upstream", "https://x", "--host", "0.0.0.0"], "could use this proxy"),
        ([], "Missing option '--upstream'"),
    ],
)
def test_a_wrong_setting_is_told_in_two_lines(options: list[str], message: str, tmp_path: Path) -> None:
    done = subprocess.run([*COMMAND, *options], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 2
    first, second = done.stderr.strip().splitlines()
    assert message in first
    assert second.startswith("hint: ")


SETUPS = {
    "claude-code": ("https://api.anthropic.com", "export ANTHROPIC_BASE_URL=http://127.0.0.1:5176"),
    "codex": ("https://api.openai.com", 'openai_base_url = "http://127.0.0.1:5176/v1"'),
    "opencode": ("https://api.anthropic.com", '"baseURL": "http://127.0.0.1:5176/v1"'),
    "qwen": ("https://dashscope.aliyuncs.com", "export OPENAI_BASE_URL=http://127.0.0.1:5176/v1"),
    "gemini": ("https://generativelanguage.googleapis.com", "export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:5176"),
}


@pytest.mark.parametrize("agent", SETUPS)
@pytest.mark.parametrize("token", ["", "a-secret-token"])
def test_what_to_set_for_an_agent_can_be_pasted(agent: str, token: str, tmp_path: Path) -> None:
    """Plain lines that a shell takes; a token is named, and never printed."""
    variables = environment(**({"COMPACT_PROXY_TOKEN": token} if token else {}))
    done = subprocess.run([*COMMAND, "--agent", agent], cwd=tmp_path, env=variables, capture_output=True, text=True)
    upstream, line = SETUPS[agent]
    first, *lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert first.startswith(f"# the proxy: compact proxy --upstream {upstream}")
    if agent == "codex" and token:
        line = 'base_url = "http://127.0.0.1:5176/v1"'
    assert any(line in one for one in lines)
    assert "\x1b" not in done.stdout
    assert "a-secret-token" not in done.stdout
    assert ("X-Compact-Token" in done.stdout) == bool(token)
    exports = "\n".join(one for one in lines if one.startswith("export "))
    subprocess.run(["sh", "-euc", exports], env={**variables, "COMPACT_PROXY_TOKEN": token}, check=True)


def test_the_setup_of_codex_is_toml(tmp_path: Path) -> None:
    for token in ("", "t"):
        variables = environment(COMPACT_PROXY_TOKEN=token)
        done = subprocess.run(
            [*COMMAND, "--agent", "codex"], cwd=tmp_path, env=variables, capture_output=True, text=True
        )
        settings = tomllib.loads(done.stdout)
        assert "model_provider" in settings if token else settings == {"openai_base_url": "http://127.0.0.1:5176/v1"}


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path) -> None:
    code = "import sys; sys.modules['uvicorn'] = None; from compact.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "proxy", "--upstream", "https://api.openai.com"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 2
    assert "needs the package uvicorn" in done.stderr
    assert install_line("proxy") in done.stderr


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with Provider(lambda _: []) as provider:
        port = provider.url.rpartition(":")[2]
        command = [*COMMAND, "--upstream", "https://x", "--port", port]
        done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
