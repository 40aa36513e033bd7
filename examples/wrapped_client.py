"""OpenAI's client with compaction: one line, and the loop stays as it is.

It runs offline: a server on loopback stands for the provider. Leave out `base_url` and take a key of yours.

    pip install "compact-context[openai]"
    python wrapped_client.py
"""

from typing import Any

from openai import OpenAI

import compact
from compact import CompactConfig, CompactManager
from compact.testing import ScriptedModel, say

RULE = "Never name the ship's owner."
ANSWER = "The hold was full of salt, the wind came from the north, and the pilot had not slept for two nights. " * 12

manager = CompactManager(CompactConfig(max_context_tokens=8_000))
with ScriptedModel(say(ANSWER)) as model:
    client = compact.wrap(OpenAI(base_url=model.base_url, api_key="none"), manager, session_id="voyage")
    history: list[Any] = [{"role": "system", "content": RULE}]
    for day in range(1, 41):
        history.append({"role": "user", "content": f"Write the log of day {day}."})
        stream = client.chat.completions.create(
            model="gpt-4o", messages=history, stream=True, stream_options={"include_usage": True}
        )
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        history.append({"role": "assistant", "content": text})

print(f"{len(model.requests)} answers, {len(model.rejections)} rejected")
print(f"messages in the history: {len(history)}, in the last request: {len(model.requests[-1].body['messages'])}")
print(f"the rule was in every request: {all(RULE in request.prompt for request in model.requests)}")
reported = [call.tokens_reported for call in manager.model_calls("voyage")]
print(f"usage was taken in: {reported == [request.prompt_tokens for request in model.requests]}")
print(f"compactions: {len(manager.plans('voyage'))}")
manager.close()
