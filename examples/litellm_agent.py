"""LiteLLM with compaction: one callback, and every `acompletion` stays inside its window.

It runs offline: a server on loopback stands for the provider. Leave out `api_base` and name a model of yours.

    pip install "compact-context[litellm]"
    python litellm_agent.py
"""

import asyncio
from typing import Any

import litellm

from compact import CompactConfig, CompactManager
from compact.adapters.litellm import CompactionLogger
from compact.testing import ScriptedModel, say

QUESTIONS = [f"What did you see in town {number}? Spare no detail." for number in range(1, 41)]
ANSWER = "There was a market, and beside it a well, and beside the well a man who sold ropes of every length. " * 12


async def main() -> None:
    manager = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=8_000))
    litellm.callbacks.append(CompactionLogger(manager))
    history: list[Any] = [{"role": "system", "content": "You are a traveller."}]
    with ScriptedModel(say(ANSWER)) as model:
        for question in QUESTIONS:
            history.append({"role": "user", "content": question})
            answer = await litellm.acompletion(
                model="openai/gpt-4o",
                messages=history,
                api_base=model.base_url,
                api_key="none",
                litellm_session_id="travels",
            )
            history.append({"role": "assistant", "content": answer.choices[0].message.content})
        largest = max(request.prompt_tokens for request in model.requests)
    print(f"{len(model.requests)} answers, {len(model.rejections)} rejected")
    print(f"messages in the history: {len(history)}, in the last request: {len(model.requests[-1].body['messages'])}")
    print(f"largest request: {largest:,} tokens, compactions: {len(manager.plans('travels'))}")
    manager.close()


asyncio.run(main())
