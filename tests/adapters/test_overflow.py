"""Real error texts of providers: those that refuse a prompt as too long, with their figures, and those that do not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compact.adapters.support.overflow import find_overflow, read_overflow
from compact.model_engines import ReportedOverflow


def window(
    limit: int | None = None, prompt: int | None = None, output: int | None = None, *, for_input: bool = False
) -> ReportedOverflow:
    return ReportedOverflow(limit_tokens=limit, prompt_tokens=prompt, output_tokens=output, limits_input=for_input)


OVERFLOWS = {
    "openai, the messages alone": (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. "
        "Please reduce the length of the messages.",
        window(128_000, 204_308),
    ),
    "openai, with the answer": (
        "This model's maximum context length is 4096 tokens. However, you requested 4726 tokens (3726 in the messages, "
        "1000 in the completion). Please reduce the length of the messages or completion.",
        window(4_096, 3_726, 1_000),
    ),
    "openai, with functions": (
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (7000 in the messages, "
        "800 in the functions, and 1200 in the completion). Please reduce the length.",
        window(8_192, 7_800, 1_200),
    ),
    "openai, the first wording": (
        "This model's maximum context length is 4097 tokens, however you requested 4116 tokens (3860 in your prompt; "
        "256 for the completion). Please reduce your prompt; or completion length.",
        window(4_097, 3_860, 256),
    ),
    "openai, gpt-5": (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300007 tokens. Please "
        "reduce the length of the messages.",
        window(272_000, 300_007, for_input=True),
    ),
    "openai, responses": (
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        window(),
    ),
    "openai, the code alone": ('{"error":{"code":"context_length_exceeded","message":"too long"}}', window()),
    "azure": (
        "This model's maximum context length is 16385 tokens. However, your messages resulted in 17000 tokens.",
        window(16_385, 17_000),
    ),
    "anthropic": ("prompt is too long: 202095 tokens > 200000 maximum", window(200_000, 202_095)),
    "anthropic, with the answer": (
        "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length or "
        "`max_tokens` and try again",
        window(200_000, 199_759, 8_192),
    ),
    "gemini": (
        "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
        window(1_048_576, 1_200_293, for_input=True),
    ),
    "gemini, without a count": (
        "The input token count exceeds the maximum number of tokens allowed (1048576).",
        window(1_048_576, for_input=True),
    ),
    "vertex": (
        "Unable to submit request because the input token count is 40000 but model only supports up to 32768. Reduce "
        "the input token count and try again.",
        window(32_768, 40_000, for_input=True),
    ),
    "bedrock": (
        "An error occurred (ValidationException) when calling the ConverseStream operation: Input is too long for "
        "requested model.",
        window(),
    ),
    "bedrock, claude": (
        "An error occurred (ValidationException) when calling the Converse operation: The model returned the following "
        "errors: prompt is too long: 217000 tokens > 200000 maximum",
        window(200_000, 217_000),
    ),
    "vllm": (
        "This model's maximum context length is 131072 tokens. However, you requested 156632 tokens (152536 in the "
        "messages, 4096 in the completion). Please reduce the length of the messages or completion.",
        window(131_072, 152_536, 4_096),
    ),
    "vllm since 2026": (
        "This model's maximum context length is 262144 tokens. However, you requested 32000 output tokens and your "
        "prompt contains at least 230145 input tokens, for a total of at least 262145 tokens. Please reduce the length "
        "of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=230145)",
        window(262_144, 230_145, 32_000),
    ),
    "vllm, the room for the answer": (
        "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 16384 "
        "tokens and your request has 10000 input tokens (8192 > 16384 - 10000).",
        window(16_384, 10_000, 8_192),
    ),
    "vllm, context length is only": (
        "You passed 40961 input tokens and requested 0 output tokens. However, the model's context length is only "
        "40960 tokens, resulting in a maximum input length of 40960 tokens. Please reduce the length of the input.",
        window(40_960, 40_961, 0),
    ),
    "vllm, decoder prompt": (
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.",
        window(4_096, 5_000),
    ),
    "vllm, total length": (
        "The prompt (total length 25938) is too long to fit into the model (context length 4096). Make sure that "
        "`max_model_len` is no smaller than the number of text tokens plus multimodal tokens.",
        window(4_096, 25_938),
    ),
    "sglang": (
        "Requested token count exceeds the model's maximum context length of 40960 tokens. You requested a total of "
        "41000 tokens: 33000 tokens from the input messages and 8000 tokens for the completion.",
        window(40_960, 33_000, 8_000),
    ),
    "llama.cpp": (
        '{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context '
        'size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}',
        window(8_192, 14_429),
    ),
    "llama.cpp, newer": (
        "request (14429 tokens) exceeds the available context size (8192 tokens), try increasing it",
        window(8_192, 14_429),
    ),
    "llama-cpp-python": ("Requested tokens (516) exceed context window of 512", window(512, 516)),
    "lm studio": (
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the "
        "model with a larger context length, or provide a shorter input",
        window(),
    ),
    "ollama": ("prompt too long; exceeded max context length by 100918 tokens", window()),
    "mistral": (
        "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        window(32_768, 65_673),
    ),
    "groq": (
        "{'error': {'message': 'Please reduce the length of the messages or completion.', 'type': "
        "'invalid_request_error', 'param': 'messages', 'code': 'context_length_exceeded'}}",
        window(),
    ),
    "openrouter": (
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 140010 tokens (100000 "
        "of text input, 10010 of tool input, 30000 in the output). Please reduce the length of either one, or use the "
        '"middle-out" transform to compress your prompt automatically.',
        window(131_072, 110_010, 30_000),
    ),
    "together": (
        "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
        window(262_144, 516_368),
    ),
    "deepseek": (
        "This model's maximum context length is 131072 tokens. However, you requested 133000 tokens (129000 in the "
        "messages, 4000 in the completion). Please reduce the length of the messages or completion.",
        window(131_072, 129_000, 4_000),
    ),
    "xai": (
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        window(131_072, 537_812, for_input=True),
    ),
    "cohere": (
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter "
        "prompt, or enabling prompt truncating.",
        window(4_081, 4_292, for_input=True),
    ),
    "cohere, prompt and prediction": (
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try using "
        "a shorter prompt or a smaller max_tokens value.",
        window(2_048, 6_354),
    ),
    "cohere, chat": (
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs. The limit for this "
        "model is 288000 tokens.",
        window(288_000, 299_326, for_input=True),
    ),
    "moonshot": (
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
        window(262_144, 291_351),
    ),
    "copilot": ("prompt token count of 200000 exceeds the limit of 128000", window(128_000, 200_000, for_input=True)),
    "minimax": ("invalid params, context window exceeds limit (2013)", window()),
    "alibaba": (
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
        window(129_024, for_input=True),
    ),
    "z.ai": ('{"error":{"code":"1261","message":"Prompt exceeds max length"}}', window()),
    "cerebras": (
        "Please reduce the length of the messages or completion. Current length is 10107 while limit is 8192",
        window(8_192, 10_107),
    ),
    "fireworks": (
        "The prompt is too long: 267657, model maximum context length: 262143",
        window(262_143, 267_657),
    ),
    "hugging face": (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32768. Given: 32001 `inputs` tokens and "
        "1024 `max_new_tokens`",
        window(32_768, 32_001, 1_024),
    ),
    "litellm": (
        "litellm.BadRequestError: litellm.ContextWindowExceededError: OpenAIException - This model's maximum context "
        "length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        window(8_192, 9_001),
    ),
    "figures with commas": ("prompt is too long: 1,200,000 tokens > 1,000,000 maximum", window(1_000_000, 1_200_000)),
}

LOOK_ALIKES = {
    "groq, a rate": (
        413,
        "Request too large for model `llama-3.3-70b-versatile` in organization `org_1` service tier `on_demand` on "
        "tokens per minute (TPM): Limit 12000, Requested 14137, please reduce your message size and try again.",
    ),
    "openai, a rate": (
        429,
        "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 342389. The input or output "
        "tokens must be reduced in order to run successfully.",
    ),
    "anthropic, a rate": (
        429,
        "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
    ),
    "bedrock, a rate": (400, "Too many tokens, please wait before trying again. (ThrottlingException)"),
    "gemini, a quota": (
        429,
        "You exceeded your current quota. Quota exceeded for metric: generate_content_free_tier_input_token_count, "
        "limit: 250000",
    ),
    "openai, the answer": (
        400,
        "max_tokens is too large: 20000. This model supports at most 16384 completion tokens, whereas you provided "
        "20000.",
    ),
    "anthropic, the answer": (
        400,
        "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5",
    ),
    "bedrock, the answer": (
        400,
        "The maximum tokens you requested exceeds the model limit of 8192. Try again with a maximum tokens value that "
        "is lower than 8192.",
    ),
    "anthropic, bytes": (
        413,
        '{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}',
    ),
    "nginx, bytes": (413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
    "gemini, bytes": (400, "Request payload size exceeds the limit: 20971520 bytes."),
    "openai, characters": (
        400,
        "Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760, but got a "
        "string with length 20000000 instead. (string_above_max_length)",
    ),
    "openai, a tool's name": (400, "Invalid 'tools[0].function.name': string too long. Expected maximum length 64."),
    "anthropic, an image": (400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6 MB > 5 MB"),
    "anthropic, credit": (400, "Your credit balance is too low to access the Anthropic API."),
    "a wrong key": (401, "prompt is too long: 202095 tokens > 200000 maximum"),
    "overloaded": (529, "Overloaded"),
    "orphaned result": (400, "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"),
}


@pytest.mark.parametrize("provider", OVERFLOWS)
def test_an_overflow_is_recognised_and_its_figures_are_read(provider: str) -> None:
    """Each provider's own words."""
    text, expected = OVERFLOWS[provider]
    assert read_overflow(text, 400) == expected


@pytest.mark.parametrize("provider", OVERFLOWS)
def test_it_is_read_in_a_body_of_json_too(provider: str) -> None:
    """As a proxy and a client's exception have it: escaped, inside of an object."""
    text, expected = OVERFLOWS[provider]
    if not text.startswith("{"):
        assert read_overflow(json.dumps({"error": {"message": text, "type": "invalid_request_error"}})) == expected


@pytest.mark.parametrize("trouble", LOOK_ALIKES)
def test_other_limits_are_not_taken_for_an_overflow(trouble: str) -> None:
    """Rates, quotas, bytes, the length of an answer: nothing that a shorter history would help."""
    status, text = LOOK_ALIKES[trouble]
    assert read_overflow(text, status) is None


class _ClientError(Exception):
    """As SDKs have them: a short text, the body beside it."""

    def __init__(self, text: str, *, body: Any = None, status_code: int = 400) -> None:
        super().__init__(text)
        self.body, self.status_code = body, status_code


def test_the_body_that_a_client_keeps_is_read() -> None:
    """Some clients' text is the status alone."""
    text = "the request exceeds the available context size"
    error = _ClientError("Error code: 400", body={"n_prompt_tokens": 14_429, "n_ctx": 8_192, "message": text})
    assert find_overflow(error) == window(8_192, 14_429)
    error = _ClientError("Error code: 400", body={"message": "prompt is too long: 9000 tokens > 8000 maximum"})
    assert find_overflow(error) == window(8_000, 9_000)


def test_the_error_that_a_framework_wrapped_is_found() -> None:
    """Frameworks raise their own from a client's."""
    wrapped = RuntimeError("the model call failed")
    wrapped.__cause__ = _ClientError("prompt is too long: 9000 tokens > 8000 maximum")
    assert find_overflow(wrapped) == window(8_000, 9_000)


def test_the_status_of_an_exception_counts() -> None:
    """A client's error for a rate that quotes the limit of the model is about the rate."""
    assert find_overflow(_ClientError("prompt is too long: 9 tokens > 8 maximum", status_code=429)) is None


def test_the_names_of_frameworks_own_exceptions_are_known() -> None:
    """LiteLLM and Strands have classes for it."""

    class ContextWindowOverflowException(Exception):
        """Strands' own."""

    assert find_overflow(ContextWindowOverflowException("too many total text bytes")) == window()


def test_a_prompt_behind_the_error_is_not_read() -> None:
    """Some servers quote the request: what a user wrote there is no error."""
    assert (
        read_overflow("messages.4: invalid role\n" + "x" * 5_000 + "prompt is too long: 9 tokens > 8 maximum") is None
    )
