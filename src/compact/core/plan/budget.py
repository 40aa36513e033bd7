"""How much fits, when to act, and how far to go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import floor

from compact.core.short_repr import short_repr

# The default of `policy.trigger_pct`, from the specification; the other defaults below are the settings' own.
_USUAL_TRIGGER_PCT = 0.85
# Chosen: an estimate that is wrong by more than this is a mistake, of ours or in the report.
_MAX_SLOPE = 4.0
# A window above LARGE_WINDOW_TOKENS is compacted at DEFAULT_TRIGGER_TOKENS unless another trigger is set. Chosen: what
# the largest models cost is doubled from 200,000 tokens on (Gemini, Grok) or from 272,000 (OpenAI), each call reads the
# whole prompt, and answers get worse long before such a window is full.
LARGE_WINDOW_TOKENS = 256_000
DEFAULT_TRIGGER_TOKENS = 200_000
# Chosen: a buffer that was set for a large window takes no more than this share of a smaller one.
_MOST_BUFFER_SHARE = 0.1
# Chosen: a prompt that was answered is not counted at more than the whole window and twice our estimate.
_MOST_RATIO_ABOVE_WINDOW = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """One window, what is set aside in it, and the thresholds; all in tokens.

    A manager makes one of its settings for each call; make one yourself to see where the thresholds lie.

    Args:
        max_context_tokens: The window.
        safety_buffer: Tokens of the window that are never used.
        output_reserve: Tokens set aside for the model's answer.
        injection_reserve: Tokens set aside for injectors.
        rehydration_reserve: Tokens set aside for artifacts that are shown again.
        system_tokens: The tokens of the instructions that are sent beside the messages.
        tool_schema_tokens: The tokens of the tool schemas that are sent beside the messages.
        formatting_overhead: What primes the reply.
        trigger_pct: The share of the largest input at which a history is compacted.
        prefetch_pct: The share at which a summary is prefetched.
        target_pct: The share down to which a compaction goes.
        part_caps: The most tokens of one part of the prompt: `tool_results`, `dialogue`, `summary`.
        largest_input_tokens: The most that the provider takes as input, if that is less than the window.
        trigger_limit_tokens: Tokens at which a history is compacted, if the share is more.
        trigger_limit_source: Who set that limit, in words.
        target_limit_tokens: Tokens down to which a compaction goes, in place of the share.

    Example:
        >>> from compact import TokenBudget
        >>> budget = TokenBudget(max_context_tokens=128_000)
        >>> budget.prefetch_tokens, budget.trigger_tokens, budget.target_tokens, budget.ceiling_tokens
        (89600, 108800, 64000, 126500)
    """

    max_context_tokens: int
    safety_buffer: int = 1500
    output_reserve: int = 0
    injection_reserve: int = 0
    rehydration_reserve: int = 0
    system_tokens: int = 0
    tool_schema_tokens: int = 0
    formatting_overhead: int = 3
    trigger_pct: float = _USUAL_TRIGGER_PCT
    prefetch_pct: float = 0.70
    target_pct: float = 0.50
    part_caps: Mapping[str, int] = field(default_factory=dict[str, int])
    largest_input_tokens: int | None = None
    trigger_limit_tokens: int | None = None
    trigger_limit_source: str = "policy.trigger_tokens"
    target_limit_tokens: int | None = None
    __repr__ = short_repr

    @property
    def input_tokens(self) -> int:
        """The most that the provider takes as input."""
        return min(self.max_context_tokens, self.largest_input_tokens or self.max_context_tokens)

    @property
    def available_tokens(self) -> int:
        """The hard ceiling for everything that is sent: 126,500 of 128,000 by default.

        The answer has to fit into the window, and need not fit into the largest input.
        """
        return min(self.max_context_tokens - self.output_reserve, self.input_tokens) - self.safety_buffer

    @property
    def fixed_tokens(self) -> int:
        """What is sent beside the messages: instructions, tool schemas, and what primes the reply."""
        return self.system_tokens + self.tool_schema_tokens + self.formatting_overhead

    @property
    def ceiling_tokens(self) -> int:
        """The hard ceiling for what compaction may leave, injected and rehydrated content still to come."""
        return self.available_tokens - self.injection_reserve - self.rehydration_reserve

    @property
    def trigger_tokens(self) -> int:
        """From here on the history is compacted."""
        return _trigger(self.trigger_pct, self.input_tokens, self.ceiling_tokens, self.trigger_limit_tokens)

    @property
    def share_tokens(self) -> int:
        """The trigger by its share alone."""
        return round(self.trigger_pct * self.input_tokens)

    @property
    def trigger_reason(self) -> str:
        """Why the trigger is where it is; empty where it is the plain share of the window."""
        share, trigger = self.share_tokens, self.trigger_tokens
        if trigger < share and trigger == self.trigger_limit_tokens:
            return self.trigger_limit_source
        if trigger < share:
            what = f"the buffer of {self.safety_buffer:,}" if self.is_buffer_large else "what is reserved"
            return f"{what} leaves no more; {self.trigger_pct:.0%} of {self.input_tokens:,} would be {share:,}"
        if self.input_tokens < self.max_context_tokens:
            return f"{self.trigger_pct:.0%} of the largest input, {self.input_tokens:,}"
        return ""

    @property
    def is_buffer_large(self) -> bool:
        """True if the buffer alone leaves less than the share at which a history is compacted."""
        return self.input_tokens - self.safety_buffer < self.share_tokens

    @property
    def prefetch_tokens(self) -> int:
        """From here on a summary is prefetched; a compaction ends below it, or the next one would start at once."""
        return _below_trigger(self.prefetch_pct, self.trigger_pct, self.input_tokens, self.trigger_tokens)

    @property
    def target_tokens(self) -> int:
        """Down to here a compaction goes."""
        limit = self.target_limit_tokens
        if limit is None:
            limit = _below_trigger(self.target_pct, self.trigger_pct, self.input_tokens, self.trigger_tokens)
        return min(limit, self.prefetch_tokens)

    def lowered(self, limit_tokens: int, *, limits_input: bool = False) -> TokenBudget:
        """Return the budget for a limit below the known one: of the window, or of the input alone.

        Args:
            limit_tokens: The most that the provider takes.
            limits_input: The limit is for the prompt alone, and the answer comes beside it.

        Example:
            >>> budget.lowered(32_768).trigger_tokens
            27853
        """
        buffer = min(self.safety_buffer, int(_MOST_BUFFER_SHARE * limit_tokens))
        largest = min(self.input_tokens, limit_tokens)
        window = self.max_context_tokens if limits_input else min(self.max_context_tokens, limit_tokens)
        caps = {part: round(cap * window / self.max_context_tokens) for part, cap in self.part_caps.items()}
        return replace(
            self, max_context_tokens=window, largest_input_tokens=largest, safety_buffer=buffer, part_caps=caps
        )

    def believes(self, *, reported_tokens: int, estimated_tokens: int) -> bool:
        """Return False for a report that cannot be about one prompt: its tokens are those of a whole run, say.

        What a provider adds unseen is believed as long as it leaves half of the room for the prompt.

        Args:
            reported_tokens: What the provider is said to have counted.
            estimated_tokens: Our own estimate of the same prompt.

        Example:
            >>> budget.believes(reported_tokens=30_000, estimated_tokens=5_000)
            True
            >>> budget.believes(reported_tokens=500_000, estimated_tokens=50_000)
            False
        """
        unseen = reported_tokens - estimated_tokens
        if reported_tokens > _MAX_SLOPE * estimated_tokens and unseen > self.ceiling_tokens // 2:
            return False
        return reported_tokens <= max(self.max_context_tokens, _MOST_RATIO_ABOVE_WINDOW * estimated_tokens)

    def is_triggered(self, used_tokens: int) -> bool:
        """Return True once usage has reached the trigger.

        Args:
            used_tokens: All tokens of the request.

        Example:
            >>> budget.is_triggered(108_799), budget.is_triggered(108_800)
            (False, True)
        """
        return used_tokens >= self.trigger_tokens

    def usage_pct(self, used_tokens: int) -> float:
        """Return usage as a share of the whole window.

        Args:
            used_tokens: All tokens of the request.

        Example:
            >>> budget.usage_pct(64_000)
            0.5
        """
        return used_tokens / self.max_context_tokens


# These are asked for a dozen times in a call, and are the same from call to call.
@lru_cache(maxsize=1024)
def _trigger(trigger_pct: float, input_tokens: int, ceiling_tokens: int, limit_tokens: int | None) -> int:
    limit = ceiling_tokens if limit_tokens is None else limit_tokens
    return min(round(trigger_pct * input_tokens), ceiling_tokens, limit)


@lru_cache(maxsize=1024)
def _below_trigger(share: float, trigger_pct: float, input_tokens: int, trigger_tokens: int) -> int:
    """Return a share of the input, moved down in proportion where reserves or a low trigger leave less.

    Thresholds that fell together would have the history compacted at every call.
    """
    if share >= trigger_pct:
        share = min(share * trigger_pct / _USUAL_TRIGGER_PCT, trigger_pct)
    full_trigger = trigger_pct * input_tokens
    scale = trigger_tokens / full_trigger if full_trigger else 0.0
    return round(share * input_tokens * scale)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the provider's own counts say about ours: a line through its last reports, never below our estimate.

    `anchor` is the newest (estimated, reported) pair of the prompt as it stands, `earlier` the one before the last
    compaction. One point cannot tell a constant (a system prompt we do not see) from a factor (another vocabulary);
    two can, and without the distinction each compaction would make the next one look more urgent.
    """

    anchor: tuple[int, int] | None = None
    earlier: tuple[int, int] | None = None

    def observe(self, *, estimated_tokens: int, reported_tokens: int) -> Calibration:
        """Take in what the provider reported for a prompt that we estimated."""
        return Calibration((estimated_tokens, reported_tokens), self.earlier) if estimated_tokens > 0 else self

    def after_compaction(self) -> Calibration:
        """Forget the usage of a prompt that is no longer sent; only its slope is remembered."""
        return Calibration(None, self.anchor or self.earlier)

    @property
    def slope(self) -> float:
        """Reported tokens per estimated token, at least 1."""
        if self.anchor and self.earlier and self.anchor[0] != self.earlier[0]:
            rise = (self.anchor[1] - self.earlier[1]) / (self.anchor[0] - self.earlier[0])
        elif self.anchor:
            rise = self.anchor[1] / self.anchor[0]
        else:
            rise = 1.0
        return min(max(rise, 1.0), _MAX_SLOPE)

    def upper_bound(self, estimated_tokens: int) -> int:
        """Return the most that a prompt we estimate at this size may count for the provider."""
        if not self.anchor:
            return estimated_tokens
        line = self.anchor[1] + self.slope * (estimated_tokens - self.anchor[0])
        return max(estimated_tokens, round(line))

    def largest_estimate(self, limit_tokens: int) -> int:
        """Return the largest estimate whose upper bound stays within a limit: the inverse of `upper_bound`."""
        if not self.anchor:
            return limit_tokens
        line = self.anchor[0] + (limit_tokens - self.anchor[1]) / self.slope
        return min(limit_tokens, floor(line))
