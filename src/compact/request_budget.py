"""The budget of one request: the window, less what is sent beside the messages, which is counted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias

from compact.core.log.messages import copy_plain
from compact.core.log.tokenizer import ProviderAwareTokenizer
from compact.core.plan.budget import TokenBudget

Tools: TypeAlias = Sequence[Mapping[str, Any]]
# One process may run several agents, each with tools of its own.
_REMEMBERED_TOOLS = 8


class RequestBudget:
    """Knows the budget of a window, and what tool schemas and instructions take of it.

    Of a window that is assumed (`is_assumed`), because its model is not known, an answer is given half at most: a
    request for more says that the window is larger.
    """

    def __init__(self, window: TokenBudget, tokenizer: ProviderAwareTokenizer, *, is_assumed: bool = False) -> None:
        self.window = window
        self._is_assumed = is_assumed
        self._tokenizer = tokenizer
        self._count_instructions = lru_cache(maxsize=64)(tokenizer.count_text)
        self._counted: list[tuple[object, int]] = []

    def of_request(self, tools: Tools, instructions: str, output_tokens: int = 0) -> TokenBudget:
        """Return the budget of a request with these tools and instructions, and an answer of up to so many tokens."""
        if not tools and not instructions and not output_tokens:
            return self.window
        if self._is_assumed:
            output_tokens = min(output_tokens, self.window.max_context_tokens // 2)
        system = self._count_instructions(instructions) if instructions else 0
        return replace(
            self.window,
            tool_schema_tokens=self._count_tools(list(tools)) if tools else 0,
            system_tokens=system,
            output_reserve=max(self.window.output_reserve, output_tokens),
        )

    def _count_tools(self, tools: list[Mapping[str, Any]]) -> int:
        """Count schemas, which are the same from call to call: they are compared, in C, and not counted again."""
        known = next((tokens for counted, tokens in self._counted if counted == tools), None)
        if known is not None:
            return known
        tokens = self._tokenizer.count_tools(tools)
        self._counted = [(copy_plain(tools), tokens), *self._counted[: _REMEMBERED_TOOLS - 1]]
        return tokens
