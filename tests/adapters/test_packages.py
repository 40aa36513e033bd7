"""Every adapter is a folder that can be found, says what is in it, and names the extra that it needs."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import compact.adapters
from compact.extras import install_line

FOLDER = Path(compact.adapters.__file__).parent
ADAPTERS = sorted(found.name for found in pkgutil.iter_modules([str(FOLDER)]) if found.name != "support")
# Packages that are there without any extra.
ALWAYS_THERE = {"compact", "pydantic", "pydantic_core", *sys.stdlib_module_names}
RENAMED = [
    ("anthropic", "CompactionMiddleware", "AnthropicCompactionMiddleware"),
    ("langchain", "CompactionMiddleware", "LangChainCompactionMiddleware"),
    ("google_adk", "CompactionPlugin", "AdkCompactionPlugin"),
    ("strands", "CompactionPlugin", "StrandsCompactionPlugin"),
]


def frameworks_of(adapter: str) -> set[str]:
    """The packages that an adapter imports, and that may be missing."""
    found: set[str] = set()
    for file in (FOLDER / adapter).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            found |= {name.partition(".")[0] for name in names}
    return found - ALWAYS_THERE


# Whoever passes in a client has its package: an SDK is imported only then.
OF_SEVERAL = {"clients"}
WITH_FRAMEWORK = [adapter for adapter in ADAPTERS if frameworks_of(adapter) and adapter not in OF_SEVERAL]


def test_the_adapters_are_found() -> None:
    assert {"langchain", "own_loop"} <= set(ADAPTERS)
    assert frameworks_of("langchain") == {"langchain", "langchain_core", "langgraph"}
    assert set(ADAPTERS) - set(WITH_FRAMEWORK) == {"own_loop"} | OF_SEVERAL


@pytest.mark.parametrize("folder", [*ADAPTERS, "support"])
def test_a_folder_lists_its_files(folder: str) -> None:
    """The docstring of each `__init__` names every file beside it, and no other."""
    doc = importlib.import_module(f"compact.adapters.{folder}").__doc__ or ""
    listed = {line.split()[0] for line in doc.splitlines() if re.match(r"[a-z_]+ {2}", line)}
    assert {found.name for found in pkgutil.iter_modules([str(FOLDER / folder)])} == listed
    assert folder in ("support", "own_loop") or "The hook is" in doc


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_public_names_are_there_without_a_warning(adapter: str) -> None:
    module = importlib.import_module(f"compact.adapters.{adapter}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(getattr(module, name) is not None for name in module.__all__)


def test_clients_are_wrapped_without_the_packages_of_others() -> None:
    """The name is there where no SDK is installed, and says what it takes."""
    missing = dict.fromkeys(frameworks_of("clients"))
    code = f"import sys; sys.modules.update({missing!r})\nimport compact; compact.wrap(object())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "builtins.object is not a client that wrap knows" in done.stderr


@pytest.mark.parametrize("adapter", WITH_FRAMEWORK)
def test_a_missing_package_names_the_extra(adapter: str) -> None:
    """Which has the adapter's name, and is there."""
    extra = adapter.replace("_", "-")
    blocked = dict.fromkeys(sorted(frameworks_of(adapter)))
    code = f"import sys; sys.modules.update({blocked})\nimport compact.adapters.{adapter}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert install_line(extra) in done.stderr
    assert f"\n{extra} = [" in (FOLDER.parents[2] / "pyproject.toml").read_text(encoding="utf-8")


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
