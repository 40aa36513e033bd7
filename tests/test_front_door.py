"""The front door is light, complete, and honest about what it holds; and S3's functions are thin calls behind it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import compact
from compact import CompactConfig
from compact.config import CompactSettings, ConfigSection
from compact.testing import (
    RecordingSink,
    WordTokenizer,
    check_tokenizer,
    dialogue,
    user,
)
from compact.tokens import SimpleTokenizer, get_tokenizer


def test_import_compact_loads_nothing_heavy() -> None:
    heavy = ("pydantic", "yaml", "rich", "typer", "toktok", "genai_prices", "asyncio")
    code = f"import sys, compact; print([m for m in {heavy!r} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_every_name_at_the_door_opens() -> None:
    for name in compact.__all__:
        assert getattr(compact, name) is not None
    assert set(dir(compact)) == set(compact.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        compact.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_type_checkers_know_every_setting(tmp_path: Path) -> None:
    """An editor completes the names by the same declaration."""
    assert CompactSettings.__annotations__.keys() == CompactConfig.model_fields.keys()
    (tmp_path / "pyrightconfig.json").write_text("{}")
    (tmp_path / "right.py").write_text(
        "from compact import CompactConfig, CompactPolicy\n"
        "CompactConfig(model='gpt-4o', policy=CompactPolicy(trigger_pct=0.7), state={'url': 'memory:'})\n"
        "CompactConfig.load('compact.yaml', max_context_tokens=8_000)\n"
    )
    (tmp_path / "wrong.py").write_text(
        "from compact import CompactConfig, CompactPolicy\n"
        "CompactConfig(modle='gpt-4o')\n"
        "CompactConfig(policy=CompactPolicy(triger_pct=0.7))\n"
        "CompactConfig.load('compact.yaml', max_context_tokens='8_000')\n"
    )
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "--project", str(tmp_path)], capture_output=True, text=True)
    found = {
        (Path(entry["file"]).name, entry["range"]["start"]["line"] + 1)
        for entry in json.loads(done.stdout)["generalDiagnostics"]
    }
    assert found == {("wrong.py", 2), ("wrong.py", 3), ("wrong.py", 4)}


def test_every_section_of_the_settings_is_at_the_door() -> None:
    sections = {type(getattr(CompactConfig(), name)) for name in CompactConfig.model_fields} - {str, int, type(None)}
    sections |= {type(value) for section in sections for value in section().__dict__.values()}
    named = {section.__name__ for section in sections if issubclass(section, ConfigSection)}
    assert named > {"StrategiesConfig", "ClearConfig"}
    assert named <= set(compact.__all__)


def test_a_repr_fits_a_line() -> None:
    config = CompactConfig(max_context_tokens=8_000, state={"url": "memory:"}, storage={"adapter": "none"})
    with compact.CompactManager(config) as manager:
        history = dialogue(40, words=60)
        manager.manual_compact("s", history)
        plan = manager.current_plan("s")
        assert plan.summary
        shown = [
            CompactConfig(),
            config,
            manager,
            plan,
            plan.summary,
            plan.summary.summary,
            manager.plan("s", history, now=True),
            manager.status("s"),
            manager.prompt("s"),
            manager.report("s")[0],
            manager.history("s")[0],
            manager.cost("s"),
            manager.why("s", "question"),
            manager.recall("s", "question"),
            manager.plans("s")[0],
            manager.model_calls("s")[0],
        ]
        for value in shown:
            assert len(repr(value)) <= 120, type(value).__name__
            assert "\n" not in repr(value)
        assert repr(plan).startswith(
            "CompactionPlan(session_id='s', version=1, records=<1>, reason='manual', tokens_before="
        )
        sections = "state=StateConfig(url='memory:'), storage=StorageConfig(adapter='none')"
        assert repr(config) == f"CompactConfig(max_context_tokens=8000, {sections})"
        assert repr(manager) == "<CompactManager for gpt-4o, 8,000 tokens, 1 session in memory>"


def test_tokenizers_pass_the_suite() -> None:
    for tokenizer in (WordTokenizer(), SimpleTokenizer(), get_tokenizer("gpt-4o"), get_tokenizer("gpt-4")):
        check_tokenizer(tokenizer)


def test_estimates() -> None:
    assert compact.estimate_tokens("hello") == 1
    assert compact.estimate_tokens("") == 0
    assert compact.estimate_messages_tokens([user("hello")]) > 1


def test_should_compact() -> None:
    config = CompactConfig(max_context_tokens=2_000)
    assert not compact.should_compact(dialogue(3), config)
    assert compact.should_compact(dialogue(60, words=30), config)


def test_recording_sink_starts_empty() -> None:
    assert RecordingSink().events == []
