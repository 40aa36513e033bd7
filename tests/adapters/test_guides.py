"""Each guide, followed literally by somebody in an empty folder, ends where it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from test_examples import ROOT, run

GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))


# A block of Python and, if one follows at once, the block that shows what it prints.
CODE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_guide_ends_where_it_says(guide: Path, tmp_path: Path) -> None:
    """Its code runs from top to bottom without a network, and prints what the page shows, in this order."""
    found = CODE.findall(guide.read_text(encoding="utf-8"))
    program = tmp_path / "guide.py"
    program.write_text("\n".join(code for code, _ in found), encoding="utf-8")
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stderr[-3_000:]
    rest = done.stdout
    for _, shown in found:
        for line in filter(str.strip, shown.splitlines()):
            assert line in rest, (line, done.stdout[-3_000:])
            rest = rest.split(line, 1)[1]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_guide_names_an_extra_that_there_is(guide: Path) -> None:
    text = guide.read_text(encoding="utf-8")
    named = re.findall(r"pip install '\.\[([\w,-]+)\]'", text)
    assert named or "pip install ." in text
    extras = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in ",".join(named).split(",") if named else ():
        assert f"\n{extra} = [" in extras, extra
