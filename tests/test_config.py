"""Configuration: files, environment, errors that name the field and its range, and keys of former times."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from compact import CompactConfig, CompactManager, CompactPolicy, ConfigError
from compact.assembly.budget import build_budget
from compact.assembly.recall import build_rehydration_config
from compact.assembly.rules import build_strategies
from compact.config import ConfigSection, StateConfig
from compact.config_sources import environment_names, merged
from compact.core.engine.events import NoticeEvent
from compact.testing import RecordingSink


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
        ("COMPACT_PART_CAPS", '{"tool_results": 0.3}', ("policy", "part_caps"), {"tool_results": 0.3}),
        ("COMPACT_STRATEGIES__ENABLED", "clear, drop", ("strategies", "enabled"), ("clear", "drop")),
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
        ({"policy": {"trigger": 0.5}}, "policy.trigger is not a known setting; did you mean policy.trigger_pct?"),
        ({"policy": {"trigger_pct": 85}}, "policy.trigger_pct must be 0.0-1.0, not 85; 85% is 0.85"),
        ({"policy": {"target_pct": "50%"}}, "policy.target_pct must be 0.0-1.0, not '50%'; 50% is 0.5"),
        ({"trigger_pct": 0.5}, "trigger_pct is not a known setting; did you mean policy.trigger_pct?"),
        (
            {"enabled": True},
            "enabled is not a known setting; did you mean policy.enabled or strategies.enabled or "
            "rehydration.enabled or redaction.enabled?",
        ),
        ({"model": ""}, "model must not be empty, not ''"),
        (
            {"state": {"url": "mysql://db"}},
            "state.url must be `memory:`, `sqlite:///path` or `postgresql://user@host/name`, not 'mysql://db'",
        ),
        ({"storage": {"adapter": "s3"}}, "storage needs a bucket for the adapter s3: set storage.bucket"),
        ({"tokenizer": "magic"}, "tokenizer should be 'auto' or 'simple', not 'magic'"),
        (
            {"policy": {"target_pct": 0.9, "trigger_pct": 0.5}},
            "policy.target_pct (0.9) is above policy.trigger_pct (0.5): lower the first or raise the second",
        ),
        (
            {"policy": {"target_pct": 0.9}},
            "policy.target_pct (0.9) is above policy.trigger_pct (0.85, the default): "
            "lower the first or raise the second",
        ),
        (
            {"policy": {"prefetch_pct": 0.9}},
            "policy.prefetch_pct (0.9) is above policy.trigger_pct (0.85, the default): "
            "lower the first or raise the second",
        ),
        (
            {"policy": {"target_pct": 0.6, "prefetch_pct": 0.5}},
            "policy.target_pct (0.6) is above policy.prefetch_pct (0.5): lower the first or raise the second",
        ),
        (
            {"policy": {"target_tokens": 300_000, "trigger_tokens": 200_000}},
            "policy.target_tokens (300,000) is above policy.trigger_tokens (200,000): "
            "lower the first or raise the second",
        ),
        (
            {"policy": {"target_tokens": 9_000, "trigger_tokens": 9_000}},
            "policy.target_tokens (9,000) must be below policy.trigger_tokens (9,000): "
            "lower the first or raise the second",
        ),
        (
            {"max_context_tokens": 8_000, "max_input_tokens": 9_000},
            "max_input_tokens (9,000) is above max_context_tokens (8,000): lower the first or raise the second",
        ),
        (
            {"policy": {"trigger_pct": 0}},
            "policy.trigger_pct must be above 0; to compact nothing, set policy.enabled to false",
        ),
        ({"policy": {"trigger_tokens": 0}}, "policy.trigger_tokens must be at least 1, not 0"),
        ({"strategies": {"clear": {"keep_last": "many"}}}, "strategies.clear.keep_last must be at least 0, not 'many'"),
        (
            {"regret": {"max_share": 0}},
            "regret.max_share must be above 0; to keep nothing longer, set regret.keep_longer to false",
        ),
        ({"regret": {"max_share": -1}}, "regret.max_share must be above 0.0 and at most 1.0, not -1"),
        ({"summarizer": {"timeout_seconds": 0}}, "summarizer.timeout_seconds must be above 0.0, not 0"),
    ],
)
def test_errors_name_the_field_and_what_it_may_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        CompactConfig(**settings)
    assert caught.value.message == message
    assert caught.value.field


def _numbers(section: type[ConfigSection], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, ConfigSection):
            yield from _numbers(kind, (*above, name))
        elif {int, float} & {kind, *get_args(kind)}:
            yield (*above, name)


@pytest.mark.parametrize("path", list(_numbers(CompactConfig)), ids=".".join)
def test_true_is_not_one(path: tuple[str, ...]) -> None:
    """YAML's `true` where a number belongs is a mistake, in every setting."""
    settings: Any = True
    for step in reversed(path):
        settings = {step: settings}
    with pytest.raises(ConfigError) as caught:
        CompactConfig(**settings)
    assert caught.value.message == f"{'.'.join(path)} must be a number, not true"
    assert caught.value.field == ".".join(path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"policy": {"part_caps": {"dialogue": True}}},
            "policy.part_caps must be a number for each part, not dialogue: true",
        ),
        (
            {"strategies": {"clear": {"tools": {"read_file": {"keep_last": True}}}}},
            "strategies.clear.tools.read_file.keep_last must be a number, not true",
        ),
    ],
)
def test_true_is_not_one_in_a_table_either(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        CompactConfig(**settings)
    assert caught.value.message == message


def test_a_contradiction_is_blamed_on_the_setting_that_was_given() -> None:
    """A command says which variable or file set it."""
    with pytest.raises(ConfigError) as caught:
        CompactConfig(policy={"target_pct": 0.9})
    assert caught.value.field == "policy.target_pct"


def test_a_trigger_below_the_defaults_is_no_contradiction() -> None:
    assert CompactConfig(policy={"trigger_pct": 0.4}).policy.target_pct == 0.5


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


RENAMED = [
    ("policy.strategy", "brief", "policy.summary_form", "brief"),
    ("policy.tier_caps", {"dialogue": 0.2}, "policy.part_caps", {"dialogue": 0.2}),
    ("summarizer.prepare", "never", "summarizer.prefetch", "never"),
    ("summarizer.enabled", False, "strategies.enabled", ("deduplicate", "clear", "externalize", "drop")),
    ("strategies.window.enabled", True, "strategies.enabled", (*CompactConfig().strategies.enabled, "window")),
    ("strategies.drop.enabled", False, "strategies.enabled", ("deduplicate", "clear", "externalize", "summarize")),
]
MOVED = {
    "policy.injection_reserve": 50,
    "policy.rehydration_reserve": 100,
    "strategies.deduplicate.min_tokens": 5,
    "strategies.clear.keep_lines": 7,
    "strategies.clear.keep_turns": 2,
    "strategies.externalize.preview_lines": 1,
    "strategies.externalize.min_tokens_non_replayable": 9,
    "strategies.window.max_tokens": 300,
    "summarizer.pause_after_failures": 9,
    "summarizer.pause_seconds": 1.5,
    "summarizer.target_token_ratio": 0.3,
    "summarizer.response_format": "text",
    "summarizer.prompts": {},
    "rehydration.cooldown_turns": 4,
    "rehydration.max_artifacts_per_turn": 1,
    "rehydration.max_tokens_per_artifact": 77,
    "telemetry.max_queued_events": 5,
}


def nested(path: str, value: Any) -> dict[str, Any]:
    for step in reversed(path.split(".")):
        value = {step: value}
    return value


def at(config: CompactConfig, path: str) -> Any:
    value: Any = config
    for step in path.split("."):
        value = getattr(value, step)
    return value


@pytest.mark.parametrize(("old", "value", "new", "expected"), RENAMED)
def test_a_renamed_key_still_works_and_warns(
    old: str, value: Any, new: str, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}") as caught:
        assert at(CompactConfig(**nested(old, value)), new) == expected
    assert caught[0].filename == __file__, "the warning points to the line that set it"
    with pytest.warns(DeprecationWarning, match=old):
        assert at(CompactConfig.load(write(tmp_path, json.dumps(nested(old, value)))), new) == expected
    monkeypatch.setenv(
        "COMPACT_" + old.replace(".", "__").upper(), value if isinstance(value, str) else json.dumps(value)
    )
    with pytest.warns(DeprecationWarning, match=old):
        assert at(CompactConfig(), new) == expected


@pytest.mark.parametrize("old", MOVED)
def test_a_setting_that_is_a_field_of_an_object_now_still_works_and_warns(old: str) -> None:
    section, name = old.rsplit(".", 1)
    with pytest.warns(DeprecationWarning, match=f"{old} is no setting any more: use "):
        config = CompactConfig(**nested(old, MOVED[old]))
    assert at(config, section).former == {name: MOVED[old]}


def test_former_settings_reach_what_they_are_fields_of() -> None:
    settings: dict[str, Any] = {}
    for old, value in MOVED.items():
        settings = merged(settings, nested(old, value))
    with pytest.warns(DeprecationWarning, match="no setting any more"):
        config = CompactConfig(**settings)
    strategies = {strategy.name: strategy for strategy in build_strategies(config)}
    assert set(strategies) == {"deduplicate", "clear", "externalize", "summarize", "drop"}
    assert vars_of(strategies["summarize"], "target_token_ratio") == (0.3,)
    assert vars_of(strategies["clear"], "keep_lines", "keep_turns") == (7, 2)
    assert vars_of(strategies["externalize"], "preview_lines", "min_tokens_non_replayable") == (1, 9)
    assert vars_of(strategies["deduplicate"], "min_tokens") == (5,)
    limits = build_rehydration_config(config)
    assert vars_of(limits, "cooldown_turns", "max_artifacts_per_turn", "reserve_tokens") == (4, 1, 100)
    assert build_budget(config, rehydration=limits).injection_reserve == 50
    assert config.telemetry.for_exporters()["max_queued_events"] == 5


def vars_of(thing: object, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(thing, name) for name in names)


def test_a_section_object_keeps_what_was_set_by_a_former_name() -> None:
    with pytest.warns(DeprecationWarning, match=r"policy\.") as caught:
        policy = CompactPolicy(strategy="brief", rehydration_reserve=9)  # type: ignore[call-arg]
    assert ["policy.strategy" in str(warning.message) for warning in caught] == [True, False]
    with pytest.warns(DeprecationWarning, match="rehydration_reserve"):
        config = CompactConfig(policy=policy)
    assert (config.policy.summary_form, config.policy.former) == ("brief", {"rehydration_reserve": 9})


def test_no_setting_warns_by_itself() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert CompactConfig(**CompactConfig().model_dump(exclude={"version"})) == CompactConfig()


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"version 9\.0 .* is not known"):
        CompactConfig.load(write(tmp_path, "version: '9.0'\n"))


def test_a_file_that_was_not_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a manager whose settings are from no file; not by one whose code named a file."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "{}", "compact.json")
    loaded = CompactConfig.load("compact.json")
    assert (loaded.file, CompactConfig().file) == (Path("compact.json"), None)
    assert loaded == CompactConfig()
    for config, expected in ((CompactConfig(), ["compact.json was not read"]), (loaded, [])):
        sink = RecordingSink()
        CompactManager(config.model_copy(update={"state": StateConfig(url="memory:")}), on_event=sink).close()
        messages = [event.message for event in sink.events if isinstance(event, NoticeEvent)]
        assert [message.split(":")[0] for message in messages] == expected


def test_a_variable_that_is_wrong_is_named_in_code_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wrote no such setting looks for it in vain; what code says itself is not blamed on a variable."""
    monkeypatch.setenv("COMPACT_POLICY__TRIGGER_PCT", "7")
    monkeypatch.setenv("COMPACT_EXPORTER", "console,consle")
    with pytest.raises(ConfigError) as wrong:
        CompactConfig(telemetry={"exporter": "none"})
    assert wrong.value.hint == "the environment variable COMPACT_POLICY__TRIGGER_PCT sets it"
    with pytest.raises(ConfigError) as listed:
        CompactConfig(policy={"trigger_pct": 0.8})
    assert (listed.value.field, listed.value.hint) == (
        "telemetry.exporter.1",
        "the environment variable COMPACT_EXPORTER sets it",
    )
    with pytest.raises(ConfigError) as own:
        CompactConfig(policy={"trigger_pct": 8}, telemetry={"exporter": "none"})
    assert own.value.hint.startswith("`compact config show`")


def test_a_misspelt_variable_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no effect, and nobody would know; one that resembles no setting is somebody else's."""
    monkeypatch.setenv("COMPACT_TRIGER_PCT", "0.5")
    monkeypatch.setenv("COMPACT_ZZZ", "1")
    monkeypatch.setenv("COMPACT_KEEP_TOOL_IO_PAIRS", "3")
    sink = RecordingSink()
    CompactManager(CompactConfig(state=StateConfig(url="memory:")), on_event=sink).close()
    messages = [event.message for event in sink.events if isinstance(event, NoticeEvent)]
    assert messages == ["the variable COMPACT_TRIGER_PCT is not a setting; did you mean COMPACT_TRIGGER_PCT?"]


def test_layers_are_merged_deeply() -> None:
    assert merged({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}, {"d": 4}) == {"a": {"b": 1, "c": 3}, "d": 4}


def test_a_misspelt_setting_gets_a_suggestion() -> None:
    with pytest.raises(
        ConfigError, match=r"policy\.keep_recent_turn is not a known setting; did you mean policy\.keep_recent_turns\?"
    ):
        CompactConfig(policy={"keep_recent_turn": 3})
