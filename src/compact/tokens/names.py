"""A model's own name, found in the names that hosts and routers give it.

The same model is `claude-sonnet-4-5` at its maker, `us.anthropic.claude-sonnet-4-5-20250929-v1:0` at Bedrock (or the
end of an ARN), `publishers/anthropic/models/claude-sonnet-4-5@20250929` at Vertex, `anthropic/claude-sonnet-4.5:free`
at OpenRouter and `bedrock/anthropic.claude-…` for LiteLLM. Open models are `Qwen/Qwen3-32B` for vLLM and `qwen3:32b`
for Ollama. The name of a deployment at Azure is free text, and says nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# provider:model, as several frameworks write it; `mistral:7b` is a model of Ollama's.
_ROUTER = re.compile(
    r"(azure(?:[_-]ai|[_-]openai)?|openai(?:-chat|-responses)?|anthropic|google(?:[_-](?:gla|vertex|genai|vertexai))?"
    r"|gemini|bedrock(?:[_-]converse)?|vertex_ai|openrouter|litellm|ollama(?:[_-]chat)?|(?:hosted_)?vllm|groq|cerebras"
    r"|together(?:[_-]ai)?|fireworks(?:[_-]ai)?|novita|databricks|deepseek|cohere|moonshot(?:ai)?|xai|zai|dashscope"
    r"|mistralai|mistral(?=:(?:open-)?\w*stral)):(?=.)"
)
# us.anthropic.claude-…, openai.gpt-oss-120b-1:0: a region, who made the model, and a revision.
_REGION = re.compile(r"(?:us|eu|apac|jp|au|ca|sa|us-gov|global|regional)\.(?=[a-z0-9]+\.)")
_MAKER = re.compile(
    r"(anthropic|openai|google|meta|amazon|mistral|cohere|deepseek|qwen|moonshot(?:ai)?|zai|minimax|nvidia|ai21|writer)\."
    r"(?=[a-z])"
)
_REVISION = re.compile(r"(?:-v?\d)?:\d+(?::\d+k)?$|-v\d$")
_OLLAMA = frozenset({"ollama", "ollama_chat", "ollama-chat"})
_OLLAMA_TAG = re.compile(r"latest$|.*cloud$|\d+(?:\.\d+)?(?:x\d+(?:\.\d+)?)?[bmt](?:$|-)|e\d+b(?:$|-)|(?:.*-)?q\d")
# llama3.1 and gemma3 are what Ollama calls Llama-3.1 and gemma-3.
_OLLAMA_SPELLING = re.compile(r"(?:llama|gemma|phi)\d(?:\.\d)?(?:n|-vision|-mini)?$")


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model's own name in lower case (`bare`), the tag after it, and all parts of the name as it was given."""

    bare: str
    tag: str
    parts: tuple[str, ...]
    routes: frozenset[str]

    @property
    def is_ollama(self) -> bool:
        """True if the name is written as Ollama does."""
        if self.routes & _OLLAMA or (self.tag and _OLLAMA_TAG.match(self.tag)):
            return True
        return len(self.parts) == 1 and bool(_OLLAMA_SPELLING.match(self.bare))

    @property
    def is_cloud(self) -> bool:
        """True if Ollama runs it on its own servers, where it has its whole window."""
        return self.tag.endswith("cloud")


def parse_name(model: str) -> ModelName:
    """Take a name apart; what is not understood stays in `bare`."""
    text = model.strip().lower()
    if routed := _ROUTER.match(text):
        text = f"{routed[1]}/{text[routed.end() :]}"
    parts = tuple(text.split("/"))
    routes, last = set(parts[:-1]), parts[-1]
    if last.startswith("ft:"):
        # ft:<base model>:<organisation>:<name>:<id>
        return ModelName(last.split(":")[1], "", parts, frozenset(routes))
    if any(part.startswith("arn:") for part in parts):
        routes.add("bedrock")
    bare = _REGION.sub("", last, count=1)
    if made := _MAKER.match(bare):
        routes.add("bedrock")
        bare = _REVISION.sub("", bare[made.end() :])
        # deepseek.v3.2 is the only maker whose models do not say their family.
        bare = f"deepseek-{bare}" if made[1] == "deepseek" and not bare.startswith("deepseek") else bare
    bare = bare.removeprefix("databricks-").partition("@")[0]
    bare, _, tag = bare.partition(":")
    if any(part.startswith("fireworks") for part in routes):
        bare = re.sub(r"(?<=\d)p(?=\d)", ".", bare)  # glm-4p6
    return ModelName(bare, tag, parts, frozenset(routes))
