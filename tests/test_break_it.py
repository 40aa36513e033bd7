"""`make break` changes lines of the code: each of them must still be there, and so must the tests that notice."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("break_it", ROOT / "tools/break_it.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["break_it"] = module
    spec.loader.exec_module(module)
    return module


break_it = _load()


@pytest.mark.parametrize("case", break_it.BREAKS, ids=lambda case: case.what)
def test_every_break_changes_one_line_that_is_there(case: Any) -> None:
    text = (ROOT / case.path).read_text()
    broken = break_it.apply(case, text)
    assert broken != text
    compile(broken, case.file, "exec")
    for named in case.tests.split():
        path, _, test = named.partition("::")
        assert (ROOT / path).exists()
        assert not test or f"def {test}(" in (ROOT / path).read_text()


def test_a_break_of_a_line_that_is_gone_says_so() -> None:
    gone = break_it.Break("nothing", "core/errors.py", "no such line", "", "tests")
    with pytest.raises(ValueError, match=r"core/errors\.py holds 0 of 'no such line'"):
        break_it.apply(gone, (ROOT / gone.path).read_text())
