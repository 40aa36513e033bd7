"""CompactConfig: everything that can be set, in code, in the environment, or in a YAML or JSON file.

Code overrules the environment, the environment overrules the file; fields are merged one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from compact.config_sources import CONFIG_VERSION, explain, from_environment, merged, migrated, read_file
from compact.core.plan.durability import ToolDurability


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CompactPolicy(_Section):
    """When to compact, how far, and what stays verbatim."""

    enabled: bool = Field(default=True, description="False returns every history unchanged.")
    trigger_pct: float = Field(
        default=0.85, ge=0, le=1, description="Share of the window at which a history is compacted."
    )
    prefetch_pct: float = Field(default=0.70, ge=0, le=1, description="Share at which a summary is prepared.")
    target_pct: float = Field(default=0.50, ge=0, le=1, description="Share down to which a compaction goes.")
    hard_cap_buffer: int = Field(default=1500, ge=0, description="Tokens of the window that are never used.")
    output_reserve: int = Field(default=0, ge=0, description="Tokens set aside for the model's answer.")
    injection_reserve: int = Field(default=0, ge=0, description="Tokens set aside for injected content.")
    rehydration_reserve: int = Field(default=0, ge=0, description="Tokens set aside for content brought back.")
    tier_caps: dict[Literal["tool_results", "dialogue"], float] = Field(
        default_factory=dict, description="Largest share of the window for one kind of content."
    )
    keep_recent_turns: int = Field(default=6, ge=1, description="Newest user/assistant pairs kept verbatim.")
    keep_tool_io_pairs: int = Field(default=4, ge=1, description="Newest tool calls with their results kept verbatim.")
    roles_never_prune: tuple[str, ...] = Field(default=("system", "developer"), description="Roles that are pinned.")
    protected_flag: str = Field(default="protected", min_length=1, description="The `meta` key that pins a message.")
    strategy: Literal["task_state", "brief", "decision_log", "code_delta", "session_summary"] = Field(
        default="task_state", description="The form of the summary."
    )
    cadence: Literal["batched", "every_call"] = Field(
        default="batched",
        description="`every_call` runs the free strategies each time: only for providers without a cache.",
    )
    expected_calls: int = Field(
        default=20, ge=0, description="Calls within which a compaction below the trigger must pay for itself."
    )

    @model_validator(mode="after")
    def _thresholds_in_order(self) -> CompactPolicy:
        """Thresholds that are set must make sense together; those left to default move below the trigger."""
        names = [n for n in ("target_pct", "prefetch_pct", "trigger_pct") if n in self.model_fields_set]
        for lower, upper in pairwise(names):
            if getattr(self, lower) > getattr(self, upper):
                raise ValueError(f"{lower} ({getattr(self, lower)}) must not be above {upper} ({getattr(self, upper)})")
        return self


class DeduplicateConfig(_Section):
    """Stubs reads that were repeated later, or whose file was edited since."""

    enabled: bool = True
    min_tokens: int = Field(default=60, ge=0, description="Smaller results stay.")


class ToolConfig(_Section):
    """How the results of one tool (or of all that fit a pattern) are kept."""

    durability: ToolDurability = ToolDurability.REPLAYABLE
    preserve_fields: tuple[str, ...] = ()
    keep_last: int | None = Field(default=None, ge=0)
    keep_turns: int | None = Field(default=None, ge=0)
    never_evict: bool = False


class ClearConfig(_Section):
    """Stubs old tool results."""

    enabled: bool = True
    keep_turns: int = Field(default=0, ge=0, description="Results younger than this many turns stay.")
    keep_last: int = Field(default=0, ge=0, description="The newest results of each tool that stay.")
    min_tokens: int = Field(default=100, ge=0, description="Smaller results stay.")
    keep_lines: int = Field(default=2, ge=0, description="Lines that tell how it went, kept below the stub.")
    never_evict: tuple[str, ...] = Field(default=(), description="Tools whose results are facts.")
    tools: dict[str, ToolConfig] = Field(default_factory=dict, description="Rules by tool name or pattern.")


class ExternalizeConfig(_Section):
    """Moves big results, and those that cannot be had again, into artifacts."""

    enabled: bool = True
    min_tokens: int = Field(default=2000, ge=1, description="Smaller results stay.")
    min_tokens_non_replayable: int = Field(default=200, ge=1, description="The same for what cannot be had again.")
    preview_lines: int = Field(default=6, ge=0, description="Lines of the result that the pointer shows.")
    default_sensitivity: Literal["public", "internal", "confidential", "restricted"] = "internal"


class WindowConfig(_Section):
    """Drops old plain dialogue; off by default."""

    enabled: bool = False
    max_turns: int | None = Field(default=40, ge=1, description="Turns of dialogue that stay.")
    max_tokens: int | None = Field(default=None, ge=1, description="Tokens of dialogue that stay.")


class DropConfig(_Section):
    """Drops ephemeral tool exchanges that were cleared before."""

    enabled: bool = True


class StrategiesConfig(_Section):
    """The strategies, cheapest first; summarising has a section of its own."""

    deduplicate: DeduplicateConfig = DeduplicateConfig()
    clear: ClearConfig = ClearConfig()
    externalize: ExternalizeConfig = ExternalizeConfig()
    window: WindowConfig = WindowConfig()
    drop: DropConfig = DropConfig()


class SummarizerConfig(_Section):
    """Who writes the summary, and how long it may be."""

    enabled: bool = True
    kind: Literal["auto", "extractive", "llm"] = Field(
        default="auto", description="`extractive` needs no model; `auto` asks one if a model or a server is named here."
    )
    provider: Literal["auto", "openai", "anthropic", "litellm"] = Field(
        default="auto", description="Whose dialect the server speaks; `auto` goes by the model's name."
    )
    model: str = Field(default="", description="Who writes it; by default the agent's own model.")
    base_url: str = Field(default="", description="A server of your own.")
    api_key: SecretStr | None = Field(default=None, description="Better kept in a variable.")
    api_key_env: str = Field(default="", description="The variable with the key; by default the provider's own.")
    max_context_tokens: int | None = Field(default=None, ge=1024, description="That model's window, if not known.")
    seed: int | None = Field(default=42, description="Sent until the server rejects it.")
    temperature: float | None = Field(default=0.0, ge=0, description="Sent until the server rejects it.")
    response_format: Literal["json", "text"] = Field(default="json", description="`text` never asks for JSON mode.")
    options: dict[str, Any] = Field(default_factory=dict, description="More parameters of each call.")
    timeout_seconds: float = Field(default=180.0, gt=0, description="For all that one summary needs, retries included.")
    prompts_dir: str = Field(default="", description="A folder with prompts of your own: `brief.md`, `system.md`, …")
    prompts: dict[str, str] = Field(default_factory=dict, description="Single prompt files, by strategy.")
    redact: bool = Field(default=False, description="Takes secrets out of what the summariser's model reads.")
    cache: bool = Field(default=True, description="Uses a summary again that was made of the very same.")
    max_calls_per_session: int | None = Field(default=None, ge=0, description="Calls of the model, at most.")
    max_spend_usd_per_session: float | None = Field(default=None, ge=0, description="Dollars, at most.")
    pause_after_failures: int = Field(default=3, ge=1, description="Failures in a row after which it is left alone.")
    pause_seconds: float = Field(default=30.0, ge=0, description="For how long, at first; doubled up to 15 minutes.")
    max_tokens: int = Field(default=4096, ge=128, description="The most a summary may take.")
    target_token_ratio: float = Field(default=0.5, gt=0, le=1, description="The most, as a share of what it replaces.")
    prepare: Literal["auto", "always", "never"] = Field(
        default="auto", description="Whether summaries are written ahead; `auto` does so if the summariser is slow."
    )
    on_failure: Literal["prune", "keep", "raise"] = Field(
        default="prune",
        description="`prune` leaves out without a summary, `keep` leaves all as it is if it still fits.",
    )

    @property
    def uses_model(self) -> bool:
        """True if a model is asked."""
        return self.kind == "llm" or (self.kind == "auto" and bool(self.model or self.base_url))


class RehydrationSettings(_Section):
    """What of the artifacts an agent names is shown again by itself."""

    enabled: bool = True
    max_artifacts_per_turn: int = Field(default=3, ge=0)
    max_tokens_per_artifact: int = Field(default=4000, ge=1)
    max_total_tokens: int = Field(default=8000, ge=0)
    cooldown_turns: int = Field(default=2, ge=0, description="Turns before the same artifact is shown again.")
    allowed_sensitivities: frozenset[str] = Field(default=frozenset({"public", "internal"}))


class PricingConfig(_Section):
    """What the model costs, in dollars per million tokens; by default what the bundled price list says."""

    input_per_mtok: float | None = Field(default=None, ge=0, description="Fresh input; without it nothing else counts.")
    output_per_mtok: float | None = Field(default=None, ge=0, description="Output; by default five times the input.")
    cache_read_per_mtok: float | None = Field(default=None, ge=0, description="Input read from the provider's cache.")
    cache_write_per_mtok: float | None = Field(default=None, ge=0, description="Input written into it.")


class StateConfig(_Section):
    """Where log and plans live."""

    url: str = Field(
        default="sqlite:///./.compact/state.db",
        pattern=r"^(memory:|sqlite:///.+|postgresql://.+)$",
        description="`memory:`, `sqlite:///path` or `postgresql://user@host/name`.",
    )
    tenant_id: str = Field(default="", description="Whose sessions these are: tenants never see each other's.")


class StorageConfig(_Section):
    """Where transcripts for people are archived."""

    adapter: Literal["fs", "s3", "none"] = Field(default="fs", description="A folder, a bucket, or nowhere.")
    path: str = Field(default="./.compact/archive", min_length=1, description="The folder, for `fs`.")
    bucket: str = Field(default="", description="The bucket, for `s3`; credentials come from AWS's default chain.")
    prefix: str = Field(default="", description="Before every key in the bucket.")
    region: str | None = Field(default=None, description="The bucket's region.")
    endpoint_url: str | None = Field(default=None, description="A server other than AWS.")
    kms_key_id: str | None = Field(default=None, description="Encrypts every object with this key.")

    @model_validator(mode="after")
    def _bucket_is_named(self) -> StorageConfig:
        if self.adapter == "s3" and not self.bucket:
            raise ValueError("bucket must be named for the adapter s3")
        return self


class RedactionConfig(_Section):
    """What is taken out of everything that leaves the process; memory and the state store keep the original."""

    enabled: bool = Field(default=True, description="False lets secrets through, with a warning.")
    patterns: tuple[str, ...] = Field(default=(), description="More patterns, in RE2 syntax.")


class TelemetryConfig(_Section):
    """Where events go."""

    exporter: tuple[Literal["console", "ariadne", "otlp", "agents", "none"], ...] = Field(
        default=("console",), description="One, or several: `console, ariadne`."
    )
    ariadne_url: str = Field(default="http://localhost:5175/ingest", description="Ariadne, or `compact view`.")
    ariadne_token: SecretStr | None = Field(default=None, description="For a viewer that is not on this machine.")
    otlp_endpoint: str = Field(
        default="", description="For traces and metrics; by default what `OTEL_EXPORTER_OTLP_ENDPOINT` says."
    )
    content: bool = Field(
        default=False, description="True lets summaries and questions out by `otlp` and `agents`, redacted."
    )
    console_level: Literal["auto", "debug", "info", "warning"] = Field(
        default="auto", description="What the console shows; `auto` is info on a terminal, warning elsewhere."
    )
    max_queued_events: int = Field(default=4096, ge=1, description="When more wait to be sent, the oldest go.")

    @field_validator("exporter", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = [name.strip() for name in value.split(",") if name.strip()]
        return tuple(dict.fromkeys(value)) if isinstance(value, list | tuple) else value

    def for_exporters(self) -> dict[str, Any]:
        """The same as plain values."""
        names = (self.exporter,) if isinstance(self.exporter, str) else self.exporter
        token = self.ariadne_token.get_secret_value() if self.ariadne_token else ""
        told = self.model_dump(exclude={"exporter", "ariadne_token"})
        return {**told, "exporters": tuple(name for name in names if name != "none"), "ariadne_token": token}


class CompactConfig(_Section):
    """All settings; `CompactConfig()` works as it is."""

    version: str = CONFIG_VERSION
    model: str = Field(default="gpt-4o", min_length=1, description="Decides window and token counter.")
    max_context_tokens: int | None = Field(default=None, ge=256, description="The window; by default the model's own.")
    tokenizer: Literal["auto", "simple"] = Field(
        default="auto", description="`auto` is exact where the vocabulary is known."
    )
    policy: CompactPolicy = CompactPolicy()
    strategies: StrategiesConfig = StrategiesConfig()
    summarizer: SummarizerConfig = SummarizerConfig()
    rehydration: RehydrationSettings = RehydrationSettings()
    pricing: PricingConfig = PricingConfig()
    state: StateConfig = StateConfig()
    storage: StorageConfig = StorageConfig()
    redaction: RedactionConfig = RedactionConfig()
    telemetry: TelemetryConfig = TelemetryConfig()

    def __init__(self, **settings: Any) -> None:
        """Settings given here overrule `COMPACT_*` variables, which overrule the defaults."""
        try:
            super().__init__(**merged(from_environment(CompactConfig), migrated(_plain(settings))))
        except ValidationError as error:
            raise explain(error, CompactConfig) from None

    @classmethod
    def load(cls, path: str | Path, **settings: Any) -> CompactConfig:
        """Read a YAML or JSON file; the environment and the settings given here overrule it."""
        from_file = migrated(read_file(Path(path)))
        return cls(**merged(from_file, from_environment(cls), _plain(settings)))


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with sections given as objects turned into what was set in them, so that they can be merged."""
    return {
        name: value.model_dump(exclude_unset=True) if isinstance(value, BaseModel) else value
        for name, value in settings.items()
    }
