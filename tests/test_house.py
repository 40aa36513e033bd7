"""The rules of the house that no linter knows: words, names, the size of rooms, and the map."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/compact"
MOST_FILES = 16
# They hold the words of former times on purpose.
FORMER = ("core/former_names.py", "config.py")
# How the docstring of a second name for something begins.
ALIASES = ("Deprecated", "Another name for")


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    return tuple((str(path.relative_to(SOURCE)), ast.parse(path.read_text())) for path in sorted(SOURCE.rglob("*.py")))


# -- words -----------------------------------------------------------------------------------------------------------


def glossary() -> list[list[str]]:
    lines = (ROOT / "docs/glossary.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return rows[2:]


def test_the_glossary_is_a_table_in_order() -> None:
    words = [row[0] for row in glossary()]
    assert len(words) > 40
    assert words == sorted(set(words))
    assert all(len(row) == 4 and row[1] for row in glossary())


@pytest.mark.parametrize("row", glossary(), ids=lambda row: row[0])
def test_every_word_of_the_glossary_has_its_home_in_the_code(row: list[str]) -> None:
    path = row[2].strip("`").split(".")
    for length in range(len(path), 0, -1):
        try:
            found: object = import_module(".".join(["compact", *path[:length]]))
        except ModuleNotFoundError:
            continue
        break
    else:
        pytest.fail(f"there is no module for {row[2]}")
    for name in path[length:]:
        fields = getattr(found, "__dataclass_fields__", {})
        found = fields[name] if name in fields else getattr(found, name)


def test_no_name_and_no_docstring_uses_another_word_for_the_same_thing() -> None:
    others = {word.strip(): row[0] for row in glossary() for word in row[3].split(",") if word.strip()}
    wrong = re.compile(rf"(?<![a-z-])(?:{'|'.join(others)})(?![a-z-])")
    found = [
        f"{file}:{line}: {match[0]!r} is called {others[match[0]]!r}"
        for file, tree in modules()
        if file not in FORMER
        for line, text in [*_names(tree), *_docstrings(tree)]
        for match in wrong.finditer(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).lower())
    ]
    assert found == []


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the names that a module defines; but for second names."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if not (ast.get_docstring(node) or "").startswith(ALIASES):
                    yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case _:
                pass


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            if not text.startswith(ALIASES):
                yield getattr(node, "lineno", 1), text


def test_no_class_name_is_used_twice() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(file)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


# -- rooms -----------------------------------------------------------------------------------------------------------


def rooms() -> list[Path]:
    return sorted({path.parent for path in SOURCE.rglob("*.py")})


@pytest.mark.parametrize("room", rooms(), ids=lambda room: str(room.relative_to(SOURCE.parent)))
def test_a_room_is_not_crowded_and_says_what_is_in_it(room: Path) -> None:
    files = [path for path in room.iterdir() if path.is_file() and path.name != "py.typed"]
    assert len(files) <= MOST_FILES
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    assert text, "the docstring of a room says what it is for"
    if room != SOURCE:
        named = [path.stem for path in files if path.suffix == ".py" and path.stem != "__init__"]
        assert [name for name in named if not re.search(rf"(?<!\w){name}(?!\w)", text)] == []


# -- the map ---------------------------------------------------------------------------------------------------------


def architecture() -> str:
    return (ROOT / "docs/ARCHITECTURE.md").read_text()


def test_the_map_names_every_room_and_every_file_of_the_core() -> None:
    text = architecture()
    files = [path.stem for path in (SOURCE / "core").rglob("*.py") if path.stem != "__init__"]
    assert [name for name in files if not re.search(rf"`{name}(?:\.py)?`|/{name}\.py`", text)] == []
    top = [path for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()]
    names = [f"{path.name}/" if path.is_dir() else path.name for path in top if path.stem != "__init__"]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_the_map_names_no_file_that_is_gone() -> None:
    paths = re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", architecture())
    assert len(paths) > 20
    assert [path for path in paths if not (SOURCE / path).is_file()] == []
