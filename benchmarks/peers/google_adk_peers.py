"""Google ADK: the compaction of events and `ContextFilterPlugin`, as its flow runs them before every model call."""

from __future__ import annotations

import json
import warnings
from collections.abc import AsyncGenerator, Sequence

from google.adk.agents import LlmAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps.app import EventsCompactionConfig
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from google.adk.events.event import Event
from google.adk.flows.llm_flows import compaction, contents
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.adk.sessions import InMemorySessionService
from google.genai import types

from compact.measuring.histories import SessionHistory
from compact.measuring.policies import Policy, PolicyLimits, PolicyPrompt
from compact.measuring.recordings import Wire, content_text
from peers.conversion import StandIn, arguments_of, pinned, run, spoken

# Neither has a default. The events are those of the example in ADK's documentation of compaction; the turns: chosen.
KEPT_EVENTS, KEPT_INVOCATIONS = 5, 3
_AGENT, _USER = "agent", "user"
# Content is known again by what it says: ADK copies it for each request.
_Look = tuple[str, ...]


class _Flow:
    """A session of ADK that grows with the history; its own request processors make the prompts."""

    def __init__(self, history: SessionHistory, limits: PolicyLimits) -> None:
        self._history, self._limits = history, limits
        self._wires: dict[_Look, Wire] = {}
        self._tools: dict[str, str] = {}
        self._prompt_tokens: dict[int, int] = {}
        self._taken, self._turn = 0, 0
        self._service = InMemorySessionService()
        self._session = run(self._service.create_session(app_name="peers", user_id=_USER))
        self._agent = LlmAgent(name=_AGENT, model=_Summaries(model="stand-in"))

    def __call__(self, end: int) -> PolicyPrompt:
        return run(self._prompt(end))

    def config(self) -> EventsCompactionConfig | None:
        """What the app is set to."""
        return None

    async def _prompt(self, end: int) -> PolicyPrompt:
        self._extend(end)
        context = InvocationContext(
            session_service=self._service,
            invocation_id=f"turn-{self._turn}",
            agent=self._agent,
            session=self._session,
            events_compaction_config=self.config(),
        )
        request = LlmRequest()
        for processor in (compaction.request_processor, contents.request_processor):
            async for _ in processor.run_async(context, request):
                pass
        await self.before_model(context, request)
        sent = [*pinned(self._history, end), *(wire for one in request.contents for wire in self.wires_of(one))]
        # The usage that a provider would report with the reply: ADK compares it with its threshold.
        self._prompt_tokens[end] = self._history.fixed_tokens + sum(map(self._history.sizes, sent))
        return PolicyPrompt(sent, *self.spent())

    async def before_model(self, context: InvocationContext, request: LlmRequest) -> None:
        """What plugins do with a request."""

    def spent(self) -> tuple[int, int]:
        """What a model read and wrote for this prompt."""
        return 0, 0

    def _extend(self, end: int) -> None:
        """Append what is new; results that follow each other are one event, as ADK merges them."""
        responses: list[types.Part] = []
        for place in spoken(self._history, self._taken, end):
            wire = self._history.messages[place]
            if wire["role"] == "tool":
                responses.append(self._part_of_result(wire))
                continue
            self._flush(responses, place - 1)
            self._turn += wire["role"] == "user"
            role = "model" if wire["role"] == "assistant" else _USER
            content = types.Content(role=role, parts=self._parts_of(wire))
            self._wires[_look(content.parts or (), role)] = wire
            self._append(content, place, _AGENT if role == "model" else _USER)
        self._flush(responses, end - 1)
        self._taken = end

    def _flush(self, responses: list[types.Part], place: int) -> None:
        if responses:
            self._append(types.Content(role=_USER, parts=list(responses)), place, _AGENT)
            responses.clear()

    def _append(self, content: types.Content, place: int, author: str) -> None:
        count = self._prompt_tokens.get(place) if author == _AGENT else None
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=count) if count else None
        event = Event(
            author=author,
            content=content,
            invocation_id=f"turn-{self._turn}",
            timestamp=float(place + 1),
            usage_metadata=usage,
        )
        # As in a session that was stored: to append one event after the other looks at all that are there.
        self._session.events.append(event)

    def _part_of_result(self, wire: Wire) -> types.Part:
        identity, text = wire["tool_call_id"], content_text(wire)
        response = types.FunctionResponse(
            id=identity, name=self._tools.get(identity, "tool"), response={"result": text}
        )
        part = types.Part(function_response=response)
        self._wires[_look([part], _USER)] = wire
        return part

    def _parts_of(self, wire: Wire) -> list[types.Part]:
        text = content_text(wire)
        parts = [types.Part(text=text)] if text else []
        for call in wire.get("tool_calls") or ():
            name, arguments = call["function"]["name"], arguments_of(call)
            self._tools[call["id"]] = name
            parts.append(types.Part(function_call=types.FunctionCall(id=call["id"], name=name, args=arguments)))
        return parts

    def wires_of(self, content: types.Content) -> list[Wire]:
        """The messages of a content: as they were, if the session has them."""
        parts = content.parts or []
        results = [part for part in parts if part.function_response]
        if results:
            return [self._wires[_look([part], _USER)] for part in results]
        found = self._wires.get(_look(parts, content.role or _USER))
        if found is not None:
            return [found]
        role = "assistant" if content.role == "model" else "user"
        return [{"role": role, "content": "\n".join(part.text or "" for part in parts)}]


def _look(parts: Sequence[types.Part], role: str) -> _Look:
    said: list[str] = [role]
    for part in parts:
        if part.function_call:
            said += ["call", str(part.function_call.id)]
        elif part.function_response:
            said += ["result", str(part.function_response.id), json.dumps(part.function_response.response)]
        else:
            said += ["text", part.text or ""]
    return tuple(said)


class _Summaries(BaseLlm):
    """The model that ADK's summariser asks; what it answers was written by code from the same events."""

    answer: str = ""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer every request with the same text."""
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=self.answer)]))


class _Summarizer(LlmEventSummarizer):
    """ADK's summariser, which asks a stand-in: it reads the same events, tool results cut as ADK cuts them."""

    def __init__(self, flow: _Compacted, stand_in: StandIn) -> None:
        self._answers = _Summaries(model="stand-in")
        super().__init__(llm=self._answers)
        self._flow, self._stand_in = flow, stand_in

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        wires = [wire for event in events if event.content for wire in self._flow.wires_of(event.content)]
        self._answers.answer = self._stand_in.write([self._as_read(wire) for wire in wires])
        return await super().maybe_summarize_events(events=events)

    def _as_read(self, wire: Wire) -> Wire:
        return {**wire, "content": self._truncate(content_text(wire))} if wire["role"] == "tool" else wire


class _Compacted(_Flow):
    """Events are summarised from the trigger on; the newest stay."""

    def __init__(self, history: SessionHistory, limits: PolicyLimits) -> None:
        super().__init__(history, limits)
        self._stand_in = StandIn(history)
        with warnings.catch_warnings():
            # It says that it is experimental.
            warnings.simplefilter("ignore", UserWarning)
            self._config = EventsCompactionConfig(
                token_threshold=limits.trigger_tokens,
                event_retention_size=KEPT_EVENTS,
                summarizer=_Summarizer(self, self._stand_in),
            )

    def config(self) -> EventsCompactionConfig | None:
        return self._config

    def spent(self) -> tuple[int, int]:
        return self._stand_in.take()


class _Filtered(_Flow):
    """Only the newest invocations are sent."""

    def __init__(self, history: SessionHistory, limits: PolicyLimits) -> None:
        super().__init__(history, limits)
        self._plugin = ContextFilterPlugin(num_invocations_to_keep=KEPT_INVOCATIONS)

    async def before_model(self, context: InvocationContext, request: LlmRequest) -> None:
        await self._plugin.before_model_callback(callback_context=CallbackContext(context), llm_request=request)


POLICIES = (
    Policy(
        "google-adk EventsCompactionConfig",
        f"summarises from the trigger on, keeps the newest {KEPT_EVENTS} events",
        _Compacted,
    ),
    Policy("google-adk ContextFilterPlugin", f"newest {KEPT_INVOCATIONS} invocations, whatever their size", _Filtered),
)
