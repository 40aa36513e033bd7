"""Exports of platforms and tracing tools: a file for each of them.

langsmith  LangSmith's runs
openai     OpenAI's stored completions, stored responses and evals
otel       OpenTelemetry's spans
"""
