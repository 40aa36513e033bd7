"""Every adapter is a folder that can be found, says what is in it, and names the extra that it needs."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import compact.adapters

FOLDER = Path(compact.adapters.__file__).parent
ADAPTERS = sorted(found.name for found in pkgutil.iter_modules([str(FOLDER)]) if found.name != "support")
# What is blocked to have a framework missing, and the extra that brings it.
FRAMEWORKS = {
    "agent_framework": ("agent_framework", "agent-framework"),
    "anthropic": ("anthropic", "anthropic"),
    "google_adk": ("google.adk.agents.callback_context", "google-adk"),
    "langchain": ("langchain", "langchain"),
    "litellm": ("litellm", "litellm"),
    "openai_agents": ("agents", "openai-agents"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
    "strands": ("strands", "strands"),
}
RENAMED = [
    ("anthropic", "CompactionMiddleware", "AnthropicCompactionMiddleware"),
    ("langchain", "CompactionMiddleware", "LangChainCompactionMiddleware"),
    ("google_adk", "CompactionPlugin", "AdkCompactionPlugin"),
    ("strands", "CompactionPlugin", "StrandsCompactionPlugin"),
]


def test_each_adapter_is_known_here() -> None:
    assert sorted([*FRAMEWORKS, "own_loop"]) == ADAPTERS


@pytest.mark.parametrize("folder", [*ADAPTERS, "support", ""])
def test_a_folder_lists_its_files(folder: str) -> None:
    """The docstring of each `__init__` names every file, or folder, beside it."""
    package = FOLDER / folder
    doc = importlib.import_module(".".join(filter(None, ("compact.adapters", folder)))).__doc__ or ""
    listed = {line.split()[0] for line in doc.splitlines() if line[:1].islower() and "  " in line}
    assert {found.name for found in pkgutil.iter_modules([str(package)])} <= listed


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_public_names_are_there_without_a_warning(adapter: str) -> None:
    module = importlib.import_module(f"compact.adapters.{adapter}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(getattr(module, name) is not None for name in module.__all__)


@pytest.mark.parametrize("adapter", sorted(FRAMEWORKS))
def test_a_missing_package_names_the_extra(adapter: str) -> None:
    """Also if a folder of the user's own has the package's name."""
    blocked, extra = FRAMEWORKS[adapter]
    code = f"import sys; sys.modules[{blocked!r}] = None\nimport compact.adapters.{adapter}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert f'pip install "compact-context[{extra}]"' in done.stderr


@pytest.mark.parametrize(("adapter", "old", "new"), RENAMED)
def test_an_old_name_still_works_and_says_the_new_one(adapter: str, old: str, new: str) -> None:
    module = importlib.import_module(f"compact.adapters.{adapter}")
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        found = getattr(module, old)
    assert found is getattr(module, new)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = module.Nothing


def test_a_fault_of_ours_is_not_taken_for_a_missing_package() -> None:
    from compact.adapters.support import needs_package

    with pytest.raises(ImportError, match="nothing") as error, needs_package("any", extra="any"):
        raise ImportError("No module named 'compact.nothing'", name="compact.nothing")
    assert "pip install" not in str(error.value)
