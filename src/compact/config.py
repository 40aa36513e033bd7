"""CompactConfig: everything that can be set, in code, in the environment, or in a YAML or JSON file.

Code overrules the environment, the environment overrules the file; fields are merged one by one. What only few need is
no setting but a field of an object that is built in code and passed to `CompactManager`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Never, TypeAlias, TypedDict, Unpack, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from compact.config_sources import (
    CONFIG_VERSION,
    check_version,
    contradiction,
    explain,
    from_environment,
    is_number,
    merged,
    read_file,
    warn_moved,
    warn_renamed,
)
from compact.core.errors import ConfigError
from compact.core.json_data import is_list, is_mapping
from compact.core.plan.durability import ToolDurability

# Chosen: the most that a summary by a model takes, unless summarizer.max_tokens is set.
MODEL_SUMMARY_TOKENS = 4096
Share = Annotated[float, Field(ge=0, le=1)]


class ConfigSection(BaseModel):
    """A section of settings. Its former keys still work, with a warning.

    `section` is its path in a file. `renamed` maps former keys to today's, `moved` those that are fields of an
    object now to that field.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    section: ClassVar[str] = ""
    renamed: ClassVar[Mapping[str, str]] = {}
    moved: ClassVar[Mapping[str, str]] = {}
    _former: dict[str, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _read_former_keys(cls, data: Any, handler: ModelWrapValidatorHandler[ConfigSection]) -> ConfigSection:
        if not is_mapping(data):
            return handler(data)
        settings: dict[str, Any] = dict(data)
        for old in cls.renamed.keys() & settings.keys():
            warn_renamed(f"{cls.section}.{old}", f"{cls.section}.{cls.renamed[old]}")
            settings.setdefault(cls.renamed[old], settings.pop(old))
        former = {old: settings.pop(old) for old in sorted(cls.moved.keys() & settings.keys())}
        for old in former:
            warn_moved(f"{cls.section}.{old}", cls.moved[old])
        made = handler(settings)
        made._former = former
        return made

    @field_validator("*", mode="before")
    @classmethod
    def _true_is_not_one(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse `true` for a number: it would be read as 1."""
        if isinstance(value, bool) and is_number(cls.model_fields[info.field_name or ""]):
            raise ValueError(f"must be a number, not {str(value).lower()}")
        return value

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """Return what was set here: with everything that was not, no repr would fit a line."""
        return ((name, getattr(self, name)) for name in type(self).model_fields if name in self.model_fields_set)

    def given(self) -> dict[str, Any]:
        """Return what was set in this section, former keys included, as a file would have it.

        Example:
            >>> from compact import CompactPolicy
            >>> CompactPolicy(trigger_pct=0.7).given()
            {'trigger_pct': 0.7}
        """
        values = {name: getattr(self, name) for name in sorted(self.model_fields_set)}
        return {
            **{name: value.given() if isinstance(value, ConfigSection) else value for name, value in values.items()},
            **self._former,
        }

    @property
    def former(self) -> Mapping[str, Any]:
        """Former settings that are fields of an object now, by the name of that field."""
        return self._former


class CompactPolicy(ConfigSection):
    """When to compact, how far, and what stays verbatim.

    Raises:
        ValueError: A setting is not in its range, or contradicts another, such as a target above the trigger. As a part
            of a `CompactConfig` it is a `ConfigError`.

    Example:
        >>> from compact import CompactConfig, CompactPolicy
        >>> config = CompactConfig(policy=CompactPolicy(trigger_pct=0.7, keep_recent_turns=10))
        >>> config.policy.trigger_pct
        0.7
    """

    section = "policy"
    renamed = {"strategy": "summary_form", "tier_caps": "part_caps"}
    moved = {
        "injection_reserve": "Injector.reserve_tokens",
        "rehydration_reserve": "RehydrationConfig.reserve_tokens (CompactManager(rehydration=…))",
    }
    enabled: bool = Field(default=True, description="False returns every history unchanged.")
    trigger_pct: float = Field(
        default=0.85, ge=0, le=1, description="Share of the largest input at which a history is compacted."
    )
    prefetch_pct: float = Field(
        default=0.70, ge=0, le=1, description="Share at which a summary is written in the background."
    )
    target_pct: float = Field(default=0.50, ge=0, le=1, description="Share to which a compaction reduces the prompt.")
    trigger_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Tokens at which a history is compacted, if that is less than the share. By default 200,000 for "
        "windows above 256,000 and none for others; with a number above the window, only the share counts.",
    )
    target_tokens: int | None = Field(
        default=None, ge=1, description="Tokens to which a compaction reduces the prompt, instead of the share."
    )
    hard_cap_buffer: int = Field(default=1500, ge=0, description="Tokens of the window that are never used.")
    output_reserve: int = Field(default=0, ge=0, description="Tokens set aside for the model's answer.")
    part_caps: dict[Literal["tool_results", "dialogue"], Share] = Field(
        default_factory=dict[Literal["tool_results", "dialogue"], Share],
        description="Largest share of the window for one part of the prompt. Above it only that part shrinks; its "
        "newest messages stay.",
    )
    keep_recent_turns: int = Field(default=6, ge=1, description="Newest user/assistant pairs kept verbatim.")
    keep_tool_io_pairs: int = Field(default=4, ge=1, description="Newest tool calls with their results kept verbatim.")
    keep_attachment_turns: int = Field(
        default=3,
        ge=1,
        description="Newest turns of the user whose attachments stay in the prompt, as those do that are named in them "
        "or that a standing instruction is about.",
    )
    roles_never_prune: tuple[str, ...] = Field(
        default=("system", "developer"), description="Roles whose messages are never changed or removed."
    )
    protected_flag: str = Field(
        default="protected", min_length=1, description="The `meta` key that protects a message."
    )
    summary_form: Literal["task_state", "brief", "decision_log", "code_delta", "session_summary"] = Field(
        default="task_state", description="What the summary is for, whether code or a model writes it."
    )
    cadence: Literal["batched", "every_call"] = Field(
        default="batched",
        description="`every_call` runs the free strategies at each call: only for providers without a prompt cache.",
    )
    expected_calls: int = Field(
        default=20,
        ge=0,
        description="A compaction below the trigger is done only if it pays for itself within this many calls.",
    )

    max_wait_seconds: float = Field(
        default=240.0,
        gt=0,
        description="The most time that one call waits for summaries, other processes, injectors, the archive and the "
        "store, all together. Then it goes on without them, and an event says so.",
    )

    @field_validator("part_caps", mode="before")
    @classmethod
    def _shares_are_numbers(cls, value: Any) -> Any:
        caps: Mapping[Any, Any] = value if is_mapping(value) else {}
        if switches := [f"{part}: {str(share).lower()}" for part, share in caps.items() if isinstance(share, bool)]:
            raise ValueError(f"must be a number for each part, not {', '.join(switches)}")
        return value

    @field_validator("trigger_pct")
    @classmethod
    def _is_above_zero(cls, value: float) -> float:
        if value == 0:
            raise ValueError("must be above 0; to compact nothing, set policy.enabled to false")
        return value

    @model_validator(mode="after")
    def _thresholds_in_order(self) -> CompactPolicy:
        """Check that thresholds make sense together; those left to default move below the trigger."""
        is_set = self.model_fields_set
        for lower, upper in _THRESHOLDS:
            low, high = getattr(self, lower), getattr(self, upper)
            if lower not in is_set or low is None or high is None or (upper == "prefetch_pct" and upper not in is_set):
                continue
            if low > high or (low == high and lower == "target_tokens"):
                raise contradiction((f"policy.{lower}", low), (f"policy.{upper}", high), is_default=upper not in is_set)
        return self


# Each that is set must not be above the other, or a history would be compacted at every call.
_THRESHOLDS = (
    ("target_pct", "trigger_pct"),
    ("prefetch_pct", "trigger_pct"),
    ("target_pct", "prefetch_pct"),
    ("target_tokens", "trigger_tokens"),
)


class DeduplicateConfig(ConfigSection):
    """Stubs reads that were repeated later, or whose file was edited since.

    Example:
        >>> from compact import CompactConfig, DeduplicateConfig, StrategiesConfig
        >>> config = CompactConfig(strategies=StrategiesConfig(deduplicate=DeduplicateConfig(near_duplicates=True)))
    """

    section = "strategies.deduplicate"
    moved = {"min_tokens": "DeduplicateStrategy.min_tokens (CompactManager(strategies=[…]))"}
    near_duplicates: bool = Field(
        default=False,
        description="Experimental: also replaces a result that a later one of the same tool almost repeats; lines that "
        "differ stay.",
    )


class ToolConfig(ConfigSection):
    """How the results of one tool (or of all that fit a pattern) are kept.

    Example:
        >>> from compact import ClearConfig, CompactConfig, StrategiesConfig, ToolConfig
        >>> rules = {"read_*": ToolConfig(keep_last=3), "get_order": ToolConfig(preserve_fields=("id", "status"))}
        >>> config = CompactConfig(strategies=StrategiesConfig(clear=ClearConfig(tools=rules)))
        >>> config.strategies.clear.tools["read_*"].keep_last
        3
    """

    durability: ToolDurability = Field(
        default=ToolDurability.REPLAYABLE,
        description="What clearing a result loses: nothing (`ephemeral`), key fields, which stay (`anchoring`), a call "
        "that can be made again (`replayable`), or what cannot be had again, and is never cleared (`non_replayable`).",
    )
    preserve_fields: tuple[str, ...] = Field(default=(), description="Fields of a JSON result that stay in its stub.")
    keep_last: int | None = Field(default=None, ge=0, description="The newest results that stay; by default as above.")
    keep_turns: int | None = Field(default=None, ge=0, description="Results of the newest turns that stay.")
    never_evict: bool = Field(default=False, description="True for results that are facts: they always stay.")


class ClearConfig(ConfigSection):
    """Stubs old tool results.

    Example:
        >>> from compact import ClearConfig, CompactConfig, StrategiesConfig
        >>> config = CompactConfig(strategies=StrategiesConfig(clear=ClearConfig(never_evict=("get_policy",))))
        >>> config.strategies.clear.never_evict
        ('get_policy',)
    """

    section = "strategies.clear"
    moved = {name: f"ClearStrategy.{name} (CompactManager(strategies=[…]))" for name in ("keep_turns", "keep_lines")}
    min_tokens: int = Field(default=100, ge=0, description="Smaller results stay.")
    keep_last: int = Field(default=0, ge=0, description="How many of the newest results of each tool stay.")
    never_evict: tuple[str, ...] = Field(default=(), description="Tools whose results are never cleared.")
    tools: dict[str, ToolConfig] = Field(default_factory=dict, description="Rules by tool name or pattern.")


class ExternalizeConfig(ConfigSection):
    """Moves big results, and those that cannot be had again, into artifacts.

    Example:
        >>> from compact import CompactConfig, ExternalizeConfig, StrategiesConfig
        >>> config = CompactConfig(strategies=StrategiesConfig(externalize=ExternalizeConfig(min_tokens=5_000)))
    """

    section = "strategies.externalize"
    moved = {
        name: f"ExternalizeStrategy.{name} (CompactManager(strategies=[…]))"
        for name in ("min_tokens_non_replayable", "preview_lines")
    }
    min_tokens: int = Field(default=2000, ge=1, description="Smaller results stay.")
    default_sensitivity: Literal["public", "internal", "confidential", "restricted"] = Field(
        default="internal",
        description="The sensitivity of results that do not name theirs; confidential and restricted ones are not "
        "recalled, archived or summarised.",
    )


class WindowConfig(ConfigSection):
    """Drops old plain dialogue; only if `window` is among the enabled strategies.

    Example:
        >>> from compact import CompactConfig, StrategiesConfig, WindowConfig
        >>> strategies = StrategiesConfig(enabled=("clear", "window"), window=WindowConfig(max_turns=20))
        >>> config = CompactConfig(strategies=strategies)
    """

    section = "strategies.window"
    moved = {"max_tokens": "WindowStrategy.max_tokens (CompactManager(strategies=[…]))"}
    max_turns: int | None = Field(default=40, ge=1, description="Turns of dialogue that stay.")


StrategyName = Literal["deduplicate", "clear", "externalize", "window", "summarize", "drop"]
_USUAL_STRATEGIES: tuple[StrategyName, ...] = ("deduplicate", "clear", "externalize", "summarize", "drop")


class StrategiesConfig(ConfigSection):
    """Which strategies run, always cheapest first, and what can be set for them.

    Example:
        >>> from compact import CompactConfig, StrategiesConfig
        >>> config = CompactConfig(strategies=StrategiesConfig(enabled=("clear", "summarize")))
    """

    enabled: tuple[StrategyName, ...] = Field(
        default=_USUAL_STRATEGIES, description="Those that run; `window` forgets old dialogue, and is off by default."
    )
    deduplicate: DeduplicateConfig = DeduplicateConfig()
    clear: ClearConfig = ClearConfig()
    externalize: ExternalizeConfig = ExternalizeConfig()
    window: WindowConfig = WindowConfig()

    @model_validator(mode="before")
    @classmethod
    def _read_former_switches(cls, data: Any) -> Any:
        """Read the former switch of each strategy, `strategies.clear.enabled`."""
        if not is_mapping(data):
            return data
        settings: dict[str, Any] = dict(data)
        enabled: list[Any] = list(settings.get("enabled", _USUAL_STRATEGIES))
        for name in ("deduplicate", "clear", "externalize", "window", "drop"):
            given: object = settings.get(name)
            if not (is_mapping(given) and "enabled" in given):
                continue
            warn_renamed(f"strategies.{name}.enabled", "strategies.enabled, a list of names")
            enabled = [*(other for other in enabled if other != name), *([name] if _is_on(given["enabled"]) else ())]
            settings[name] = {key: value for key, value in given.items() if key != "enabled"}
            settings["enabled"] = tuple(enabled)
        if settings.get("drop") == {}:
            del settings["drop"]
        return settings


class SummarizerConfig(ConfigSection):
    """What writes the summary, and how long it may be.

    Example:
        >>> from compact import CompactConfig, SummarizerConfig
        >>> CompactConfig().summarizer.uses_model  # by default code writes it
        False
        >>> config = CompactConfig(summarizer=SummarizerConfig(model="gpt-4o-mini", max_tokens=2_000))
        >>> config.summarizer.uses_model
        True
    """

    section = "summarizer"
    renamed = {"prepare": "prefetch"}
    moved = {
        "response_format": "summarizer.options.response_format",
        "prompts": "PromptTemplates.load(own=…) (CompactManager(summarizer=LlmSummarizer(…)))",
        "pause_after_failures": "CircuitBreaker.failures (CompactManager(circuit_breaker=…))",
        "pause_seconds": "CircuitBreaker.pause_seconds (CompactManager(circuit_breaker=…))",
        "target_token_ratio": "SummarizeStrategy.target_token_ratio (CompactManager(strategies=[…]))",
        "enabled": "strategies.enabled, a list without `summarize`",
    }
    kind: Literal["auto", "extractive", "llm"] = Field(
        default="auto",
        description="`extractive`: by code; `llm`: by a model; `auto`: by a model if `model` or `base_url` is set.",
    )
    provider: Literal["auto", "openai", "anthropic", "litellm"] = Field(
        default="auto", description="Which API the server has; `auto` decides by the model's name."
    )
    model: str = Field(default="", description="The model that writes summaries; by default the agent's own.")
    base_url: str = Field(default="", description="The URL of your own server.")
    api_key: SecretStr | None = Field(default=None, description="The key; better kept in a variable.")
    api_key_env: str = Field(default="", description="The variable with the key; by default the provider's own.")
    max_context_tokens: int | None = Field(
        default=None, ge=1024, description="The window of that model, if Compact does not know it."
    )
    seed: int | None = Field(default=42, description="Sent until the server rejects it.")
    temperature: float | None = Field(default=0.0, ge=0, description="Sent until the server rejects it.")
    options: dict[str, Any] = Field(default_factory=dict, description="More parameters for each call of the model.")
    timeout_seconds: float = Field(default=180.0, gt=0, description="The most time for one summary, retries included.")
    prompts_dir: str = Field(default="", description="A folder with prompts of your own: `brief.md`, `system.md`, …")
    redact: bool = Field(default=False, description="True removes secrets from what the summariser's model reads.")
    cache: bool = Field(default=True, description="Use a stored summary of the same messages by the same model again.")
    max_calls_per_session: int | None = Field(
        default=None, ge=0, description="The most calls of the model per session and process."
    )
    max_spend_usd_per_session: float | None = Field(
        default=None, ge=0, description="The most dollars per session and process."
    )
    max_tokens: int | None = Field(
        default=None,
        ge=128,
        description="The most a summary may take, whoever writes it. By default 4,096, or the room up to the target "
        "for one that code writes.",
    )
    prefetch: Literal["auto", "always", "never"] = Field(
        default="auto",
        description="Whether summaries are written in the background before they are needed. On PostgreSQL "
        "`compact worker` writes them; with `auto`, those by code are written by the agent's own process.",
    )
    on_failure: Literal["prune", "keep", "raise"] = Field(
        default="prune",
        description="If the summariser fails: `prune` lets code write the summary, `keep` changes nothing while the "
        "prompt fits, `raise` raises the error.",
    )

    @property
    def uses_model(self) -> bool:
        """True if a model is asked."""
        return self.kind == "llm" or (self.kind == "auto" and bool(self.model or self.base_url))


class RehydrationSettings(ConfigSection):
    """Which of the artifacts that an agent names are shown again by themselves.

    Example:
        >>> from compact import CompactConfig, RehydrationSettings
        >>> config = CompactConfig(rehydration=RehydrationSettings(max_total_tokens=2_000))
    """

    section = "rehydration"
    moved = {
        name: f"RehydrationConfig.{name} (CompactManager(rehydration=…))"
        for name in ("max_artifacts_per_turn", "max_tokens_per_artifact", "cooldown_turns")
    }
    enabled: bool = Field(
        default=True, description="False shows no artifact again in the prompt; recall still finds it."
    )
    max_total_tokens: int = Field(
        default=8000, ge=0, description="The most tokens of all artifacts that are shown again in a turn."
    )
    allowed_sensitivities: frozenset[str] = Field(
        default=frozenset({"public", "internal"}), description="Only artifacts of these sensitivities are shown again."
    )


class RecallSettings(ConfigSection):
    """How an agent's questions about what left its prompt are answered.

    Example:
        >>> from compact import CompactConfig, RecallSettings
        >>> config = CompactConfig(recall=RecallSettings(semantic=True))
    """

    section = "recall"
    semantic: bool = Field(default=False, description="True also searches by meaning; needs the extra `semantic`.")
    reminder_tokens: int = Field(
        default=0,
        ge=0,
        description="Above 0, earlier messages that left the prompt and that the user's newest message is about are "
        "shown behind it for a turn, in so many tokens at most; a compaction leaves these free.",
    )


class RegretConfig(ConfigSection):
    """What stays longer because a compaction had removed it and the agent asked for it again; counted in any case.

    Example:
        >>> from compact import CompactConfig, RegretConfig
        >>> config = CompactConfig(regret=RegretConfig(keep_longer=False))
    """

    keep_longer: bool = Field(default=True, description="False only counts regrets, and keeps nothing longer.")
    max_share: float = Field(
        default=0.2, gt=0, le=1, description="The largest share of the target for what is kept longer."
    )

    @field_validator("max_share", mode="before")
    @classmethod
    def _is_no_switch(cls, value: Any) -> Any:
        if value in (0, "0", "0.0"):
            raise ValueError("must be above 0; to keep nothing longer, set regret.keep_longer to false")
        return value


class PricingConfig(ConfigSection):
    """What the model costs, in dollars per million tokens; by default what the bundled price list says.

    Example:
        >>> from compact import CompactConfig, PricingConfig
        >>> config = CompactConfig(model="my-model", pricing=PricingConfig(input_per_mtok=0.5, output_per_mtok=2))
    """

    input_per_mtok: float | None = Field(
        default=None, ge=0, description="Input that is not cached; the other prices count only if this is set."
    )
    output_per_mtok: float | None = Field(default=None, ge=0, description="Output; by default five times the input.")
    cache_read_per_mtok: float | None = Field(default=None, ge=0, description="Input read from the provider's cache.")
    cache_write_per_mtok: float | None = Field(default=None, ge=0, description="Input written to the provider's cache.")


class StateConfig(ConfigSection):
    """Where log and plans live.

    Example:
        >>> from compact import CompactConfig, StateConfig
        >>> config = CompactConfig(state=StateConfig(url="postgresql://agent@db/compact", tenant_id="acme"))
    """

    url: str = Field(
        default="sqlite:///./.compact/state.db",
        pattern=r"^(memory:|sqlite:///.+|postgresql://.+)$",
        description="`memory:`, `sqlite:///path` or `postgresql://user@host/name`.",
    )
    tenant_id: str = Field(
        default="", description="The tenant of these sessions; no tenant sees the sessions of another."
    )
    timeout_seconds: float = Field(
        default=15.0,
        gt=0,
        description="The most time in which an answer of the store comes on: a long history may take longer in all. "
        "Then a call goes on without it; what is not stored yet is stored with a later call.",
    )
    events_days: float = Field(
        default=14, ge=0, le=3_650, description="How long events are kept for `compact view`, redacted; 0 keeps none."
    )


class StorageConfig(ConfigSection):
    """Where transcripts for people are archived.

    Raises:
        ValueError: The adapter is `s3` and no bucket is named.

    Example:
        >>> from compact import CompactConfig, StorageConfig
        >>> config = CompactConfig(storage=StorageConfig(path="/var/lib/agent/transcripts", keep_days=30))
    """

    adapter: Literal["fs", "s3", "none"] = Field(
        default="fs", description="`fs`: a folder; `s3`: a bucket; `none`: nothing is archived."
    )
    path: str = Field(default="./.compact/archive", min_length=1, description="The folder, for `fs`.")
    bucket: str = Field(default="", description="The bucket, for `s3`; credentials come from AWS's default chain.")
    prefix: str = Field(default="", description="Before every key in the bucket.")
    region: str | None = Field(default=None, description="The bucket's region.")
    endpoint_url: str | None = Field(default=None, description="The URL of an S3 server other than AWS.")
    kms_key_id: str | None = Field(default=None, description="Encrypts every object with this key.")
    keep_days: float | None = Field(
        default=None, gt=0, description="How long transcripts, summaries and events are archived; by default for ever."
    )
    max_mb: float | None = Field(
        default=None,
        gt=0,
        description="The most megabytes of them; the oldest are deleted first. By default there is no limit.",
    )

    @model_validator(mode="after")
    def _bucket_is_named(self) -> StorageConfig:
        if self.adapter == "s3" and not self.bucket:
            raise ValueError("needs a bucket for the adapter s3: set storage.bucket")
        return self


class RedactionConfig(ConfigSection):
    """What is taken out of everything that leaves the process; memory and the state store keep the original.

    Example:
        >>> from compact import CompactConfig, RedactionConfig
        >>> config = CompactConfig(redaction=RedactionConfig(patterns=("EMP-[0-9]{6}",)))
    """

    enabled: bool = Field(default=True, description="False lets secrets through, with a warning.")
    patterns: tuple[str, ...] = Field(
        default=(), description="More patterns to redact, in RE2 syntax; needs the extra `redaction`."
    )


class TelemetryConfig(ConfigSection):
    """Where events go.

    Example:
        >>> from compact import CompactConfig, TelemetryConfig
        >>> TelemetryConfig(exporter="console, otlp").exporter
        ('console', 'otlp')
        >>> config = CompactConfig(telemetry=TelemetryConfig(console_level="warning"))
    """

    section = "telemetry"
    moved = {"max_queued_events": "ExportWorker(…, max_queued=…) (CompactManager(on_event=…))"}
    exporter: tuple[Literal["console", "ariadne", "otlp", "agents", "none"], ...] = Field(
        default=("console",), description="One, or several: `console, ariadne`."
    )
    ariadne_url: str = Field(default="http://localhost:5175/ingest", description="Ariadne, or `compact view`.")
    ariadne_token: SecretStr | None = Field(default=None, description="For a viewer that is not on this machine.")
    otlp_endpoint: str = Field(
        default="", description="For traces and metrics; by default what `OTEL_EXPORTER_OTLP_ENDPOINT` says."
    )
    content: bool = Field(
        default=False, description="True: `otlp` and `agents` also send summaries and questions, redacted."
    )
    console_level: Literal["auto", "debug", "info", "warning"] = Field(
        default="auto", description="What the console shows; `auto` is info on a terminal, warning elsewhere."
    )

    @field_validator("exporter", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = [name.strip() for name in value.split(",") if name.strip()]
        return tuple(dict.fromkeys(value)) if is_list(value) else value

    def for_exporters(self) -> dict[str, Any]:
        """Return the same as values for `ExportSettings`.

        Example:
            >>> from compact import TelemetryConfig
            >>> TelemetryConfig(exporter="none").for_exporters()["exporters"]
            ()
        """
        names = (self.exporter,) if isinstance(self.exporter, str) else self.exporter
        token = self.ariadne_token.get_secret_value() if self.ariadne_token else ""
        return {
            **self.model_dump(exclude={"exporter", "ariadne_token"}),
            **self.former,
            "exporters": tuple(name for name in names if name != "none"),
            "ariadne_token": token,
        }


_Given: TypeAlias = Mapping[str, Any]


class CompactSettings(TypedDict, total=False):
    """What `CompactConfig` takes: editors complete these names, and type checkers refuse others.

    A section is an object of its class, or what was set in it by name, as a file would have it.
    """

    version: str
    model: str
    max_context_tokens: int | None
    max_input_tokens: int | None
    tokenizer: Literal["auto", "simple"]
    policy: CompactPolicy | _Given
    strategies: StrategiesConfig | _Given
    summarizer: SummarizerConfig | _Given
    rehydration: RehydrationSettings | _Given
    recall: RecallSettings | _Given
    regret: RegretConfig | _Given
    pricing: PricingConfig | _Given
    state: StateConfig | _Given
    storage: StorageConfig | _Given
    redaction: RedactionConfig | _Given
    telemetry: TelemetryConfig | _Given


@dataclass(frozen=True, slots=True)
class _Origin:
    """The file that settings were read from; settings are equal wherever they are from."""

    file: Path | None = field(default=None, compare=False)


class CompactConfig(ConfigSection):
    """All settings; `CompactConfig()` works as it is.

    Settings given here overrule `COMPACT_*` variables; no file is read, for that there is `load`. A section is an
    object of its class, or a mapping with what is set in it.

    Raises:
        ConfigError: A setting is not known, not in its range, or contradicts another; the error names its path.

    Example:
        >>> from compact import CompactConfig, CompactPolicy
        >>> config = CompactConfig(model="claude-sonnet-4-5", policy=CompactPolicy(trigger_pct=0.7))
        >>> config == CompactConfig(model="claude-sonnet-4-5", policy={"trigger_pct": 0.7})
        True
    """

    version: str = Field(default=CONFIG_VERSION, description="Version of the file format.")
    model: str = Field(
        default="gpt-4o", min_length=1, description="The agent's model: it decides the window and the token counter."
    )
    max_context_tokens: int | None = Field(default=None, ge=256, description="The window; by default the model's own.")
    max_input_tokens: int | None = Field(
        default=None, ge=256, description="The largest input, if the provider accepts less than the window."
    )
    tokenizer: Literal["auto", "simple"] = Field(
        default="auto", description="`auto` counts exactly where the vocabulary is known; `simple` estimates."
    )
    policy: CompactPolicy = CompactPolicy()
    strategies: StrategiesConfig = StrategiesConfig()
    summarizer: SummarizerConfig = SummarizerConfig()
    rehydration: RehydrationSettings = RehydrationSettings()
    recall: RecallSettings = RecallSettings()
    regret: RegretConfig = RegretConfig()
    pricing: PricingConfig = PricingConfig()
    state: StateConfig = StateConfig()
    storage: StorageConfig = StorageConfig()
    redaction: RedactionConfig = RedactionConfig()
    telemetry: TelemetryConfig = TelemetryConfig()
    _origin: _Origin = PrivateAttr(default_factory=lambda: _Origin())

    @model_validator(mode="after")
    def _input_is_in_the_window(self) -> CompactConfig:
        window, largest = self.max_context_tokens, self.max_input_tokens
        if window is not None and largest is not None and largest > window:
            raise contradiction(("max_input_tokens", largest), ("max_context_tokens", window))
        return self

    def __init__(self, *unnamed: Never, **settings: Unpack[CompactSettings]) -> None:
        """Read `COMPACT_*` variables; settings given here overrule them."""
        if unnamed:
            hint = (
                "name each: CompactConfig(model=…); CompactConfig.load(path) reads a file, CompactConfig.of a mapping"
            )
            raise ConfigError("CompactConfig takes settings by their names", hint=hint)
        given = _as_mappings(settings)
        check_version(given)
        merged_settings = merged(from_environment(CompactConfig), given)
        try:
            super().__init__(**_with_summary_switch(merged_settings))
        except ValidationError as error:
            raise explain(error, CompactConfig, merged_settings) from None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> CompactConfig:
        """Return a configuration of settings whose names are only known when they are read.

        Args:
            settings: The settings by name, sections as mappings, as a file would have them.

        Raises:
            ConfigError: A setting is not known, not in its range, or contradicts another; the error names its path.

        Example:
            >>> CompactConfig.of({"model": "gpt-4o", "policy": {"trigger_pct": 0.7}}).policy.trigger_pct
            0.7
        """
        return cls(**cast(CompactSettings, settings))

    @classmethod
    def load(cls, path: str | Path, **settings: Unpack[CompactSettings]) -> CompactConfig:
        """Read a YAML or JSON file; the environment and the settings given here overrule it.

        Args:
            path: The file.
            settings: Settings by name, as for `CompactConfig`; they overrule the environment and the file.

        Raises:
            ConfigError: The file is not there or cannot be read, or has what `CompactConfig` refuses.

        Example:
            >>> from pathlib import Path
            >>> size = Path("compact.yaml").write_text("policy: {trigger_pct: 0.7}")
            >>> config = CompactConfig.load("compact.yaml", model="gpt-4o")
            >>> config.policy.trigger_pct, config.file.name
            (0.7, 'compact.yaml')
        """
        loaded = cls.of(merged(read_file(Path(path)), from_environment(cls), _as_mappings(settings)))
        loaded._origin = _Origin(Path(path))
        return loaded

    @property
    def file(self) -> Path | None:
        """The file that these settings were read from; None if none was."""
        return self._origin.file


def _as_mappings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with sections as what was set in them, so that they merge field by field."""
    return {name: value.given() if isinstance(value, ConfigSection) else value for name, value in settings.items()}


def _with_summary_switch(settings: dict[str, Any]) -> dict[str, Any]:
    """Read `summarizer.enabled`, a former switch: summarising is one of the strategies."""
    summarizer = settings.get("summarizer")
    if not (is_mapping(summarizer) and "enabled" in summarizer):
        return settings
    warn_renamed("summarizer.enabled", "strategies.enabled, a list of names")
    settings["summarizer"] = {name: value for name, value in summarizer.items() if name != "enabled"}
    if _is_on(summarizer["enabled"]):
        return settings
    strategies = dict(settings.get("strategies") or {})
    enabled = strategies.get("enabled", _USUAL_STRATEGIES)
    return {**settings, "strategies": {**strategies, "enabled": tuple(name for name in enabled if name != "summarize")}}


def _is_on(switch: object) -> bool:
    return switch.strip().lower() in ("1", "true", "yes", "on") if isinstance(switch, str) else bool(switch)
