"""Every public name says what it is, what it takes, what it raises, and shows itself in an example that runs."""

from __future__ import annotations

import builtins
import doctest
import importlib.util
import inspect
import io
import re
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from compact import CompactManager
from compact.core import errors
from compact.core.audit import archive, store

ROOT = Path(__file__).parents[1]


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("docstrings", ROOT / "tools/docstrings.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["docstrings"] = module
    spec.loader.exec_module(module)
    return module


docstrings = _load()
NAMES = {found.path: found for found in docstrings.public_names()}
EXPLAINED = {path: found for path, found in NAMES.items() if not (found.is_property or found.is_hook or found.is_alias)}
TWINS = {path: found for path, found in EXPLAINED.items() if found.sync_twin}
EXAMPLES = {path: found for path, found in NAMES.items() if ">>>" in found.doc.sections.get("Example", "")}
# Words that others use for our sections.
OTHER_HEADINGS = re.compile(
    r"^(Arguments|Parameters|Params|Keyword Args|Return|Yields|Examples|Throws):$", re.MULTILINE
)


def each(found: Mapping[str, Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", found.values(), ids=found.keys())


def test_public_names_are_found() -> None:
    assert len(NAMES) > 250
    for path in ("compact.CompactManager.preflight", "compact.CompactConfig.load", "compact.CompactConfig.given"):
        assert path in EXPLAINED
    assert NAMES["compact.adapters.anthropic.AnthropicCompactionMiddleware.handle"].is_hook
    assert NAMES["compact.adapters.langchain.LangChainDialect.read"].is_hook
    assert not NAMES["compact.CompactionPlan.to_dict"].is_hook
    assert NAMES["compact.CompactManager.prepare_summary"].is_alias
    assert "compact.CompactManager.arecall" in TWINS


@each(NAMES)
def test_it_says_what_it_is(name: Any) -> None:
    summary = name.doc.summary
    assert summary, "no docstring"
    own = inspect.getdoc(name.value) or ""
    assert not own.startswith(f"{name.name}("), "that is what a dataclass writes by itself"
    assert len(own.splitlines()[0]) <= 120
    assert summary.endswith((".", ":"))
    assert not OTHER_HEADINGS.search(own), f"sections are called {', '.join(docstrings.SECTIONS)}"


@each({path: found for path, found in EXPLAINED.items() if path not in TWINS})
def test_every_argument_is_explained(name: Any) -> None:
    if name.is_class and issubclass(name.value, BaseModel):
        fields = name.value.model_fields.items()
        missing = [field for field, info in fields if not info.description and not _is_section(info.annotation)]
        assert missing == [], "a setting has a description"
        return
    arguments, attributes = name.doc.entries("Args"), name.doc.entries("Attributes")
    taken = _members(name) if name.is_class and issubclass(name.value, Enum) else [one.name for one in name.parameters]
    assert [one for one in taken if one not in {**arguments, **attributes}] == [], "not explained"
    assert [one for one in arguments if one not in taken] == [], "explained, and not there"
    assert name.is_class or not attributes, "only a class has attributes"
    assert all({**arguments, **attributes}.values())


def _is_section(annotation: object) -> bool:
    return inspect.isclass(annotation) and issubclass(annotation, BaseModel)


def _members(name: Any) -> list[str]:
    return [member.name for member in name.value]


@each({path: found for path, found in EXPLAINED.items() if "Attributes" in found.doc.sections})
def test_every_attribute_is_there(name: Any) -> None:
    known = {*dir(name.value), *(parameter.name for parameter in name.parameters)}
    known |= set(getattr(name.value, "__dataclass_fields__", ()))
    known |= set(re.findall(r"self\.(\w+) = ", _constructors(name.value)))
    assert [one for one in name.doc.entries("Attributes") if one not in known] == []


def _constructors(kind: type) -> str:
    makers = [vars(one)["__init__"] for one in kind.__mro__ if "__init__" in vars(one) and issubclass(one, Exception)]
    return "\n".join(inspect.getsource(maker) for maker in makers if inspect.isfunction(maker))


@each({path: found for path, found in EXPLAINED.items() if "Raises" in found.doc.sections})
def test_what_it_raises_is_an_error(name: Any) -> None:
    raised = name.doc.entries("Raises")
    assert raised
    for error in raised:
        found = next(
            (getattr(home, error) for home in (errors, store, archive, builtins) if hasattr(home, error)), None
        )
        assert inspect.isclass(found), f"there is no {error}"
        assert issubclass(found, Exception)


@each(EXPLAINED)
def test_it_has_an_example(name: Any) -> None:
    assert ">>> " in name.doc.sections.get("Example", "")


@each(TWINS)
def test_what_is_for_an_event_loop_is_called_like_its_twin(name: Any) -> None:
    twin = NAMES[name.sync_twin]
    assert f"`{twin.name}` for an event loop" in name.doc.summary
    assert "Args" in twin.doc.sections or not twin.parameters
    assert [(one.name, one.default) for one in name.parameters] == [(one.name, one.default) for one in twin.parameters]


@each({path: found for path, found in NAMES.items() if found.is_alias})
def test_a_second_name_tells_the_first(name: Any) -> None:
    meant = re.search(r"`(\w+)`", name.doc.text)
    assert meant
    assert hasattr(name.owner.value, meant[1]) or meant[1] in name.owner.value.__dataclass_fields__


# What a framework leaves behind when an example ends is not ours.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@each(EXAMPLES)
def test_the_example_runs(name: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty folder; a method's example goes on where that of its class ended."""
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    try:
        if name.owner:
            run(name.owner, space)
        assert run(name, space) > 0
    finally:
        for value in space.values():
            if isinstance(value, CompactManager):
                value.close()


def run(name: Any, space: dict[str, Any]) -> int:
    """Run an example and return how many lines it has; fail if one of them prints something else."""
    said = io.StringIO()
    test = doctest.DocTestParser().get_doctest(name.doc.sections["Example"], space, name.path, None, None)
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.write, clear_globs=False)
    space.update(test.globs)
    assert result.failed == 0, said.getvalue()
    return result.attempted
