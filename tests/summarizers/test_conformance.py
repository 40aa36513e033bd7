"""Every summariser passes the suite that we give to others."""

from __future__ import annotations

import pytest

from compact.core.summary.summarizer import SummaryRequest
from compact.core.summary.summary import StructuredSummary
from compact.summarizers.clients.openai_client import OpenAIClient
from compact.summarizers.clients.retrying import RetryPolicy
from compact.summarizers.extractive import extractive_summary
from compact.summarizers.llm import LlmSummarizer
from compact.testing import ScriptedModel, WordTokenizer, check_model_summarizer, check_summarizer, say_json


def test_the_summary_by_code_conforms() -> None:
    check_summarizer(extractive_summary)


def test_a_coroutine_conforms() -> None:
    async def summarize(request: SummaryRequest) -> StructuredSummary:
        return StructuredSummary(narrative=f"{len(request.messages)} messages about the parser")

    check_summarizer(summarize)


def test_the_summary_by_a_model_conforms() -> None:
    pytest.importorskip("openai", reason="pip install 'compact-context[openai]'")
    answer = say_json({"facts": ["The ticket is PARSE-4711."], "open_items": ["mend tests/test_parser.py"]})
    with ScriptedModel(answer) as server:
        client = OpenAIClient("gpt-4o-mini", base_url=server.base_url, api_key="any")
        count = WordTokenizer().count_text
        retries = RetryPolicy(total_seconds=20)
        summarizer = LlmSummarizer(client, model="gpt-4o-mini", window_tokens=32_000, count_text=count, retries=retries)
        check_model_summarizer(summarizer)
        assert server.rejections == ()
