"""Configuration: files, environment, errors that name the field and its range, migration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactPolicy, ConfigError
from compact.config_sources import environment_names, merged


def write(tmp_path: Path, text: str, name: str = "compact.yaml") -> Path:
    file = tmp_path / name
    file.write_text(text)
    return file


def test_json_is_read_like_yaml(tmp_path: Path) -> None:
    settings = {
        "model": "gpt-4o",
        "policy": {"keep_recent_turns": 2},
        "strategies": {"clear": {"never_evict": ["facts"]}},
    }
    config = CompactConfig.load(write(tmp_path, json.dumps(settings), "compact.json"))
    assert config == CompactConfig.load(write(tmp_path, json.dumps(settings)))
    assert config.strategies.clear.never_evict == ("facts",)


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    assert CompactConfig.load(write(tmp_path, "# nothing yet\n")) == CompactConfig()


@pytest.mark.parametrize(
    ("name", "value", "path", "expected"),
    [
        ("COMPACT_MODEL", "gpt-3.5-turbo", ("model",), "gpt-3.5-turbo"),
        ("COMPACT_TRIGGER_PCT", "0.9", ("policy", "trigger_pct"), 0.9),
        ("COMPACT_ARIADNE_URL", "http://x/ingest", ("telemetry", "ariadne_url"), "http://x/ingest"),
        ("COMPACT_POLICY__KEEP_RECENT_TURNS", "2", ("policy", "keep_recent_turns"), 2),
        ("COMPACT_STATE__URL", "memory:", ("state", "url"), "memory:"),
        ("COMPACT_ROLES_NEVER_PRUNE", "system, user", ("policy", "roles_never_prune"), ("system", "user")),
        ("COMPACT_TIER_CAPS", '{"tool_results": 0.3}', ("policy", "tier_caps"), {"tool_results": 0.3}),
        ("COMPACT_STRATEGIES__WINDOW__ENABLED", "true", ("strategies", "window", "enabled"), True),
        ("COMPACT_MAX_TURNS", "none", ("strategies", "window", "max_turns"), None),
    ],
)
def test_the_environment_overrules_the_defaults(
    name: str, value: str, path: tuple[str, ...], expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    setting: Any = CompactConfig()
    for step in path:
        setting = getattr(setting, step)
    assert setting == expected


def test_every_field_has_a_variable_and_no_two_share_one() -> None:
    names = [name for names, _, _ in environment_names(CompactConfig) for name in names]
    assert len(names) == len(set(names))
    assert {"COMPACT_MODEL", "COMPACT_TRIGGER_PCT", "COMPACT_ARIADNE_URL"} <= set(names)
    assert len(list(environment_names(CompactConfig))) > 30


def test_code_overrules_the_environment_field_by_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACT_TRIGGER_PCT", "0.9")
    monkeypatch.setenv("COMPACT_TARGET_PCT", "0.3")
    policy = CompactConfig(policy={"trigger_pct": 0.8}).policy
    assert (policy.trigger_pct, policy.target_pct) == (0.8, 0.3)
    assert CompactConfig(policy=CompactPolicy(trigger_pct=0.7)).policy.target_pct == 0.3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": {"trigger_pct": 2}}, "policy.trigger_pct must be 0.0-1.0, not 2"),
        ({"policy": {"keep_recent_turns": 0}}, "policy.keep_recent_turns must be at least 1, not 0"),
        ({"max_context_tokens": 5}, "max_context_tokens must be at least 256, not 5"),
        ({"policy": {"trigger": 0.5}}, "policy.trigger is not a known setting; did you mean trigger_pct?"),
        ({"tokenizer": "magic"}, "tokenizer should be 'auto' or 'simple', not 'magic'"),
        (
            {"policy": {"target_pct": 0.9, "trigger_pct": 0.5}},
            "policy target_pct (0.9) must not be above trigger_pct (0.5)",
        ),
        ({"strategies": {"clear": {"keep_last": "many"}}}, "strategies.clear.keep_last must be at least 0, not 'many'"),
        (
            {"summarizer": {"target_token_ratio": 0}},
            "summarizer.target_token_ratio must be above 0.0 and at most 1.0, not 0",
        ),
    ],
)
def test_errors_name_the_field_and_what_it_may_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        CompactConfig(**settings)
    assert caught.value.message == message
    assert caught.value.field


def test_several_errors_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        CompactConfig(model="", policy={"trigger_pct": -1})
    assert "model" in str(caught.value)
    assert "policy.trigger_pct" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: [unclosed\n", "is not valid YAML or JSON (line 2)"),
        ("- a\n- b\n", "holds a list, not settings"),
        ("just text", "holds a str, not settings"),
    ],
)
def test_broken_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("(", r"\(").replace(")", r"\)")):
        CompactConfig.load(write(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        CompactConfig.load(tmp_path / "missing.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        CompactConfig.load(binary)


def test_an_older_version_is_migrated_with_a_warning(tmp_path: Path) -> None:
    old = "version: '0.1'\nmodel_context_limit: 128000\nsafety_buffer: 5000\nthreshold_percent: 0.8\n"
    with pytest.warns(UserWarning, match=r"version 0\.1 was read as 1\.0"):
        config = CompactConfig.load(write(tmp_path, old))
    assert (config.max_context_tokens, config.policy.hard_cap_buffer, config.policy.trigger_pct) == (
        128_000,
        5_000,
        0.8,
    )
    assert config.version == "1.0"


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"version 9\.0 .* is not known"):
        CompactConfig.load(write(tmp_path, "version: '9.0'\n"))


def test_layers_are_merged_deeply() -> None:
    assert merged({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"d": 4}) == {"a": {"b": 1, "c": 3}, "d": 4}


def test_a_misspelt_setting_gets_a_suggestion() -> None:
    with pytest.raises(
        ConfigError, match=r"policy\.keep_recent_turn is not a known setting; did you mean keep_recent_turns\?"
    ):
        CompactConfig(policy={"keep_recent_turn": 3})
