"""A model server that answers by script: real HTTP on loopback, as strict as the providers, and sick on demand.

    with ScriptedModel(fail(429, retry_after=0.1), refuse(), say("A short summary.")) as model:
        client = OpenAI(base_url=model.base_url, api_key="any")

It speaks OpenAI Chat Completions and Anthropic Messages with the same script. A request that the provider would
reject is rejected, takes no step of the script, and is named in `model.rejections`.
"""

from compact.testing_model.server import ScriptedModel
from compact.testing_model.steps import (
    Answer,
    Cut,
    Echo,
    Failure,
    Held,
    ModelRequest,
    Raw,
    Script,
    Slow,
    Step,
    cut,
    echo,
    empty,
    fail,
    held,
    malformed,
    overlong,
    refuse,
    say,
    say_json,
    slow,
    think,
    truncated,
    wrong_type,
)

__all__ = [
    "Answer",
    "Cut",
    "Echo",
    "Failure",
    "Held",
    "ModelRequest",
    "Raw",
    "Script",
    "ScriptedModel",
    "Slow",
    "Step",
    "cut",
    "echo",
    "empty",
    "fail",
    "held",
    "malformed",
    "overlong",
    "refuse",
    "say",
    "say_json",
    "slow",
    "think",
    "truncated",
    "wrong_type",
]
