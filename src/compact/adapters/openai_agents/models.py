"""Models that learn from what a provider says of a prompt: a refusal as too long, and the tokens that it counted.

The SDK's filter for the input of a call sees neither the answer nor the error, and hooks are not handed on to agents
that run as tools. A model sees both, in every run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents import Model, ModelProvider, MultiProvider
from agents.items import ModelResponse, TResponseStreamEvent

from compact.adapters.openai_agents.filter import current_session


class CompactionModel(Model):
    """A model whose calls are made once more, smaller, if the provider refuses their input as too long.

    It works beside `compaction_filter`, for the sessions of that filter's manager, and takes in reported usage as
    `CompactionHooks` do: also of agents that run as tools, to which the SDK hands on no hooks.

    Args:
        model: The model that is called.

    Example:
        >>> from agents import Agent
        >>> from agents.testing import ScriptedModel
        >>> from compact.adapters.openai_agents import CompactionModel
        >>> agent = Agent(name="Reader", model=CompactionModel(ScriptedModel(())))
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        """Return the answer of the model."""
        current = current_session()
        try:
            response = await self._model.get_response(system_instructions, input, *args, **kwargs)
        except Exception as error:
            smaller = await current.smaller_input(error) if current else None
            if smaller is None:
                raise
            response = await self._get_again(current, system_instructions, smaller, *args, **kwargs)
        if current:
            await current.observe(response.usage)
        return response

    async def _get_again(self, current: Any, instructions: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        try:
            return await self._model.get_response(instructions, *args, **kwargs)
        except Exception as error:
            await current.learn(error)
            raise

    async def stream_response(
        self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Yield the events of the model's answer; a refusal comes before the first of them."""
        current = current_session()
        is_started = False
        try:
            async for event in self._model.stream_response(system_instructions, input, *args, **kwargs):
                is_started = True
                await _observe_event(current, event)
                yield event
            return
        except Exception as error:
            smaller = await current.smaller_input(error) if current and not is_started else None
            if smaller is None:
                raise
        try:
            async for event in self._model.stream_response(system_instructions, smaller, *args, **kwargs):
                await _observe_event(current, event)
                yield event
        except Exception as error:
            if current:
                await current.learn(error)
            raise

    async def close(self) -> None:
        """Release what the model holds."""
        await self._model.close()

    def get_retry_advice(self, request: Any) -> Any:
        """Return what the model advises about a failed request."""
        return self._model.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._model._cleanup_on_run_end(owner)


async def _observe_event(current: Any, event: Any) -> None:
    usage = getattr(getattr(event, "response", None), "usage", None)
    if current and usage is not None:
        await current.observe(usage)


class CompactionModelProvider(ModelProvider):
    """Finds models by name, as the SDK does, each as a `CompactionModel`: for `RunConfig(model_provider=…)`.

    Args:
        provider: Finds the models; by default the SDK's own.

    Example:
        >>> from agents import RunConfig
        >>> from compact import CompactManager
        >>> from compact.adapters.openai_agents import CompactionModelProvider, compaction_filter
        >>> config = RunConfig(
        ...     call_model_input_filter=compaction_filter(CompactManager()), model_provider=CompactionModelProvider()
        ... )
    """

    def __init__(self, provider: ModelProvider | None = None) -> None:
        self._provider = provider or MultiProvider()

    def get_model(self, model_name: str | None) -> Model:
        """Return the model of a name.

        Args:
            model_name: The name; None is the SDK's default model.

        Example:
            >>> from agents.testing import ScriptedModel
            >>> from agents import ModelProvider
            >>> class OneModel(ModelProvider):
            ...     def get_model(self, model_name):
            ...         return ScriptedModel(())
            >>> type(CompactionModelProvider(OneModel()).get_model("any")).__name__
            'CompactionModel'
        """
        return CompactionModel(self._provider.get_model(model_name))

    async def aclose(self) -> None:
        """Release what the provider holds."""
        await self._provider.aclose()
