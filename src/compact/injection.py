"""Injection: content that is added to one prompt, stands at its very end, and is gone with the next.

Reduction and injection know nothing of each other. They share the budget: a compaction leaves room for the sum of the
reserves, injectors run after it, and whatever they bring, no compaction follows.

Where it stands: behind everything, in messages of its own.
- Providers cache a prompt from its beginning, and injected content is another one at every call. At the end it costs
  itself; anywhere before, it would have all that follows it written again.
- If the prompt ends with the user's message, that is right beside it, and behind it rather than before it: the next
  call has the user's message where it was, and reads it from the cache.
- In the middle of a turn the prompt ends with tool results, and the user's message is far back. Content beside that one
  would cost the whole turn with every change, so it stands behind the last result; between a call and its results no
  provider would take it. The model reads it last in both cases.
- A text becomes a `user` message, the only role that every provider takes behind a user message, a reply and a tool
  result alike; it says that it is not the user speaking. For another role, inject a message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, TypeAlias, cast

from compact.core.audit.records import AddedMessage
from compact.core.engine.emitter import EventEmitter
from compact.core.errors import CompactError, ConfigError, InjectionTooLarge
from compact.core.messages.entries import read_entry
from compact.core.messages.message import Message
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.core.plan.turn import added_label
from compact.core.session.session import Session
from compact.core.steps import SlowStep, Steps

Piece: TypeAlias = str | Message | Mapping[str, Any]
Answer: TypeAlias = Piece | Sequence[Piece] | None

# An assistant message at the end is the beginning of the reply, and a tool result needs a call.
ROLES = ("user", "system", "developer")


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionContext:
    """What an injector may look at: the prompt as it will be sent, to be read only, and the room there is.

    An injector's function gets it; see `Injector`.

    Attributes:
        session_id: The conversation.
        turn_number: The turn of the conversation, from 1.
        messages: The prompt.
        reserve_tokens: The most tokens that the injector may return.
        count_text: Counts the tokens of a text.

    Example:
        >>> from compact import InjectionContext, Message
        >>> def notes(context: InjectionContext) -> str:
        ...     return f"Notes on: {context.latest_ask}"
        >>> context = InjectionContext(  # as a test of an injector makes one
        ...     session_id="chat-1",
        ...     turn_number=1,
        ...     messages=(Message("user", "the harbour"),),
        ...     reserve_tokens=100,
        ...     count_text=len,
        ... )
        >>> notes(context)
        'Notes on: the harbour'
    """

    session_id: str
    turn_number: int
    messages: tuple[Message, ...]
    reserve_tokens: int
    count_text: Callable[[str], int]

    @property
    def latest_ask(self) -> str:
        """The newest words of the user."""
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")


@dataclass(frozen=True, slots=True)
class Injector:
    """A source of content for prompts, such as a search in your own documents.

    It is asked before every model call and may answer with nothing. What it returns stands at the very end of one
    prompt, and is gone with the next. If it fails, the prompt goes out without it and an event says so.

    Args:
        name: Stands in errors and events.
        reserve_tokens: The most tokens that its content may take; a compaction leaves room for them.
        inject: A function of an `InjectionContext`, async or not, that returns a text, a message, several of them or
            None.
        once_per_turn: Ask it at the first call of a turn only, and show what it said until the turn is over.

    Raises:
        ConfigError: It has no name, or reserves no tokens.

    Example:
        >>> from compact import CompactManager, Injector
        >>> clock = Injector("clock", reserve_tokens=50, inject=lambda context: "It is noon.")
        >>> manager = CompactManager(injectors=[clock])
        >>> prompt = manager.preflight("chat-1", [{"role": "user", "content": "What time is it?"}])
        >>> print(prompt[-1]["content"])
        [clock: added for this call, not a message from the user]
        It is noon.
    """

    name: str
    reserve_tokens: int
    inject: Callable[[InjectionContext], Answer | Awaitable[Answer]]
    _: KW_ONLY
    once_per_turn: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ConfigError("an injector has no name", field="injectors", hint="its name stands in errors and events")
        if self.reserve_tokens <= 0:
            raise ConfigError(
                f"the injector {self.name!r} reserves {self.reserve_tokens:,} tokens",
                field=f"injectors.{self.name}.reserve_tokens",
                hint="reserve what its content takes at most",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """Asks all injectors, in their order, for one prompt."""

    injectors: tuple[Injector, ...]
    tokenizer: ProviderAwareTokenizer
    emitter: EventEmitter

    def __post_init__(self) -> None:
        names = [injector.name for injector in self.injectors]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            hint = "give each a name of its own: errors and events go by it"
            raise ConfigError(f"several injectors are named {', '.join(twice)}", field="injectors", hint=hint)

    def __call__(self, session: Session) -> Steps[tuple[AddedMessage, ...]]:
        """Return what all of them add; one that fails adds nothing, one that takes more than its reserve raises."""
        added: list[AddedMessage] = []
        for injector in self.injectors:
            if injector.once_per_turn and injector.name in session.turn.injected_once:
                added += session.turn.injected_once[injector.name]
                continue
            try:
                own = tuple((yield from self._ask(injector, session)))
            except InjectionTooLarge as error:
                self.emitter.error(session, error, fallback="none: this cannot be sent")
                raise
            except Exception as error:  # noqa: BLE001 - an injector is a plug-in
                self._report_failure(session, injector.name, error)
                continue
            if injector.once_per_turn:
                session.remember_injection(injector.name, own)
            added += own
        return tuple(added)

    def _report_failure(self, session: Session, injector: str, error: Exception) -> None:
        # The error may quote what the injector was about to inject, so only its kind is reported.
        message, fallback = f"the injector {injector!r} failed", "continued without what it would have added"
        self.emitter.error(session, error, message=message, fallback=fallback)

    def _ask(self, injector: Injector, session: Session) -> Steps[list[AddedMessage]]:
        context = InjectionContext(
            session_id=session.session_id,
            turn_number=session.turn_number,
            messages=session.prompt.messages,
            reserve_tokens=injector.reserve_tokens,
            count_text=self.tokenizer.count_text,
        )
        answer: object = yield SlowStep(lambda: injector.inject(context), f"the injector {injector.name!r}")
        messages = self._messages(injector.name, answer)
        added = [AddedMessage("injected", message, self.tokenizer.count_message(message)) for message in messages]
        tokens = sum(entry.tokens for entry in added)
        if tokens > injector.reserve_tokens:
            raise InjectionTooLarge(
                injector=injector.name, reserve_tokens=injector.reserve_tokens, actual_tokens=tokens
            )
        return added

    def _messages(self, name: str, answer: object) -> Iterator[Message]:
        """Yield the messages that an answer stands for, each with an id of ours."""
        pieces = cast(Sequence[object], answer) if isinstance(answer, list | tuple) else [answer]
        number = 0
        for piece in pieces:
            message = self._message(name, piece)
            if message is None:
                continue
            number += 1
            own_id = f"compact-injected-{name}" + (f"-{number}" if number > 1 else "")
            yield replace(message, id=own_id, meta={**message.meta, "ephemeral": True, "injector": name})

    def _message(self, name: str, piece: object) -> Message | None:
        if piece is None or (isinstance(piece, str) and not piece.strip()):
            return None
        if isinstance(piece, str):
            return Message("user", f"{added_label(name)}\n{piece}")
        message = read_entry(piece, f"injector {name}")
        if isinstance(piece, Message):
            message = replace(message, original=None)  # it is written like the rest of the caller's list
        if message.role not in ROLES or message.tool_calls or message.is_empty:
            raise CompactError(
                f"the injector {name!r} gave a message that cannot stand at the end of a prompt",
                hint=f"give a text, or a message with content whose role is one of {', '.join(ROLES)}",
            )
        return message
