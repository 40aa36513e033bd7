"""Attachments in the messages of frameworks: moved with a pointer, and back as objects of the framework."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from pydantic_ai import BinaryContent
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

from compact.adapters.agent_framework import AgentFrameworkDialect
from compact.adapters.langchain.messages import LangChainDialect
from compact.adapters.pydantic_ai.messages import PydanticAIDialect
from core.messages.pdf_files import plain_pdf
from dialects.test_attachments import manager_for

PDF = plain_pdf(3)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def langchain(text: str, attached: bytes | None) -> HumanMessage:
    if not attached:
        return HumanMessage(text)
    media_type = "application/pdf" if attached is PDF else "image/png"
    block = {
        "type": "file" if attached is PDF else "image",
        "base64": base64.b64encode(attached).decode(),
        "mime_type": media_type,
    }
    return HumanMessage([{"type": "text", "text": text}, block])


def pydantic_ai(text: str, attached: bytes | None) -> ModelRequest:
    media_type = "application/pdf" if attached is PDF else "image/png"
    content: Any = [text, BinaryContent(attached, media_type=media_type)] if attached else text
    return ModelRequest(parts=[UserPromptPart(content)])


def agent_framework(text: str, attached: bytes | None) -> dict[str, Any]:
    media_type = "application/pdf" if attached is PDF else "image/png"
    contents: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if attached:
        uri = f"data:{media_type};base64,{base64.b64encode(attached).decode()}"
        contents.append({"type": "data", "uri": uri, "media_type": media_type})
    return {"role": "user", "contents": contents}


FRAMEWORKS: dict[str, tuple[Any, Callable[[str, bytes | None], Any], Callable[[str], Any]]] = {
    "langchain": (LangChainDialect(), langchain, AIMessage),
    "pydantic_ai": (PydanticAIDialect(), pydantic_ai, lambda text: ModelResponse(parts=[TextPart(text)])),
    "agent_framework": (
        AgentFrameworkDialect(),
        agent_framework,
        lambda text: {"role": "assistant", "contents": [{"type": "text", "text": text}]},
    ),
}


@pytest.mark.parametrize("attached", [PDF, PNG], ids=["document", "image"])
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_an_attachment_comes_back_as_the_framework_has_it(name: str, attached: bytes) -> None:
    dialect, asks, answers = FRAMEWORKS[name]
    history = [asks("Please read this.", attached)]
    for turn in range(12):
        history += [answers(f"answer {turn} " + "word " * 100), asks(f"question {turn} " + "about it " * 20, None)]
    manager = manager_for(1_000)
    out = manager.preflight("s", history, dialect=dialect)
    (moved,) = manager.current_plan("s").artifacts
    shown = repr(history[0]).partition("Please read this.")[2][:200]
    assert shown not in repr(out)
    assert moved.artifact_id in repr(out)
    history += [answers("What next?"), asks(f"Show me {moved.artifact_id}.", None)]
    back = manager.preflight("s", history, dialect=dialect)[-1]
    assert "retrieved artifact" in repr(back)
    assert payload_in(back) == attached


def payload_in(message: Any) -> bytes:
    """The bytes in the last part of a message."""
    if isinstance(message, ModelRequest):
        return message.parts[-1].content[-1].data  # type: ignore[union-attr]
    if isinstance(message, HumanMessage):
        return base64.b64decode(message.content[-1]["base64"])  # type: ignore[index]
    return base64.b64decode(message["contents"][-1]["uri"].partition(";base64,")[2])
