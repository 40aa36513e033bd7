"""A session that goes on in another framework, because its id is used again or its agent was ported."""

from __future__ import annotations

import json

import pytest

from compact.adapters.agent_framework.messages import AgentFrameworkDialect
from compact.adapters.autogen.messages import AutoGenDialect
from compact.adapters.langchain.messages import LangChainDialect
from compact.adapters.llama_index.messages import LlamaIndexDialect
from compact.adapters.pydantic_ai.messages import PydanticAIDialect
from compact.adapters.smolagents.messages import SmolagentsDialect
from compact.adapters.strands.messages import StrandsDialect
from compact.dialects import DIALECTS, Dialect
from compact.dialects.translation import ShownList, Translator
from dialect_conversations import WRITERS, Call, Step

STEPS = [
    Step(role="user", text="What is on the map?", has_image=True, number=0),
    Step(
        role="model",
        text="I look.",
        thinks="Where is it?",
        calls=(Call("c1", "read_file", {"path": "map.py"}, "a harbour"), Call("c2", "bash", {}, "no", failed=True)),
        number=3,
    ),
    Step(role="model", text="A harbour.", number=4),
]
FRAMEWORKS: list[Dialect] = [
    AgentFrameworkDialect(),
    AutoGenDialect(),
    LangChainDialect(),
    LlamaIndexDialect(),
    PydanticAIDialect(),
    SmolagentsDialect(),
    StrandsDialect(),
]


@pytest.mark.parametrize("before", WRITERS)
@pytest.mark.parametrize("now", FRAMEWORKS, ids=lambda dialect: dialect.name)
def test_what_was_sent_in_another_dialect_is_learned(before: str, now: Dialect) -> None:
    """Another process used the session's id with a provider's client: what it sent is not in the way."""
    entries = json.loads(json.dumps(Translator(DIALECTS[before]).entries(WRITERS[before](STEPS))))
    Translator(now).learn(ShownList(entries, owners=[str(n) for n in range(len(entries))]))
