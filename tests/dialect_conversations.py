"""The same random conversation in every dialect: thinking, parallel calls, images, marks, unknown fields and types."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

Wire = dict[str, Any]
# A 1 x 1 image.
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
# A document of one page.
DOCUMENT = base64.b64encode(b"%PDF-1.4\n1 0 obj << /Type /Page >> endobj\n%%EOF").decode()
PROTECTED = {"protected": True, "label": "keep"}
_WORDS = ("alpha", "src/app/main.py", "берег", "漢字", "🧠", "id-4711", "error: no such file", "line\nbreak", "\ud800")
_TOOLS = ("read_file", "edit_file", "bash", "think", "ask_user")


@dataclass(frozen=True)
class Call:
    """A call and what came of it."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    result: str
    has_image: bool = False
    failed: bool = False


@dataclass(frozen=True)
class Step:
    """What one side says: the user, or the model with the calls that it makes and their results."""

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    thinks: str = ""
    serves: bool = False
    has_image: bool = False
    has_document: bool = False
    is_protected: bool = False
    is_marked: bool = False
    is_odd: bool = False
    number: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)


words = st.sampled_from(_WORDS)
texts = st.lists(words, min_size=1, max_size=12).map(" ".join)
long_texts = st.builds(lambda word, count: " ".join([word] * count), words, st.integers(60, 250))
contents = st.one_of(texts, texts, long_texts)
_seldom = st.integers(0, 7).map(lambda number: number == 0)


@st.composite
def _calls(draw: st.DrawFn, number: int) -> tuple[Call, ...]:
    return tuple(
        Call(
            id=f"call_{number}_{index}",
            tool=draw(st.sampled_from(_TOOLS)),
            arguments=draw(st.sampled_from([{}, {"path": "src/a.py"}, {"a": [1, {"b": None}], "text": "x " * 60}])),
            result=draw(st.one_of(contents, contents, st.just(""))),
            has_image=draw(_seldom),
            failed=draw(_seldom),
        )
        for index in range(draw(st.integers(1, 3)))
    )


@st.composite
def conversations(draw: st.DrawFn, *, min_turns: int = 1, max_turns: int = 5) -> list[Step]:
    """What a well-behaved agent has on its hands when it is about to call its model."""
    steps: list[Step] = []
    turns = draw(st.integers(min_turns, max_turns))
    for turn in range(turns):
        user = _drawn_user(draw, len(steps))
        # Where these words join the results before them in one turn, they would protect those too.
        user = replace(user, is_protected=False) if steps and steps[-1].calls else user
        # Providers allow four marks.
        steps.append(replace(user, is_marked=False) if sum(step.is_marked for step in steps) == 4 else user)
        for _ in range(draw(st.integers(0, 4))):
            steps.append(_drawn_model(draw, len(steps), draw(_calls(len(steps)))))
        does_not_wait = steps[-1].calls and draw(_seldom)
        if turn < turns - 1 and not does_not_wait:
            steps.append(_drawn_model(draw, len(steps), ()))
    return steps


def _drawn_user(draw: st.DrawFn, number: int) -> Step:
    return Step(
        role="user",
        text=draw(contents),
        has_image=draw(_seldom),
        has_document=draw(_seldom),
        is_protected=draw(_seldom),
        is_marked=draw(_seldom),
        is_odd=draw(_seldom),
        number=number,
    )


def _drawn_model(draw: st.DrawFn, number: int, calls: tuple[Call, ...]) -> Step:
    return Step(
        role="model",
        text=draw(st.one_of(texts, st.just("")) if calls else contents),
        calls=calls,
        thinks=draw(st.one_of(texts, st.just(""))),
        serves=draw(_seldom),
        is_protected=draw(_seldom),
        is_odd=draw(_seldom),
        number=number,
    )


def document_name(step: Step) -> str:
    """The name of what a user attaches; Converse allows no dot in it."""
    return f"document {step.number}"


def _with_meta(item: Wire, step: Step) -> Wire:
    return {**item, "meta": PROTECTED} if step.is_protected else item


def chat(steps: Sequence[Step]) -> list[Wire]:
    """Chat Completions."""
    return [item for step in steps for item in _chat(step)]


def _chat(step: Step) -> Iterator[Wire]:
    odd = {"x_unknown": {"deep": [step.number]}} if step.is_odd else {}
    if step.role == "user":
        content: Any = step.text
        if step.has_image or step.has_document:
            url = f"data:image/png;base64,{IMAGE}"
            image = {"type": "image_url", "image_url": {"url": url}}
            data = f"data:application/pdf;base64,{DOCUMENT}"
            file = {"type": "file", "file": {"filename": document_name(step), "file_data": data}}
            attached = [*([image] if step.has_image else []), *([file] if step.has_document else [])]
            content = [{"type": "text", "text": step.text}, *attached]
        yield _with_meta({"role": "user", "content": content, **odd}, step)
        return
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": json.dumps(call.arguments)}}
        for call in step.calls
    ]
    item = {"role": "assistant", "content": step.text or None, **({"tool_calls": calls} if calls else {}), **odd}
    yield _with_meta(item, step)
    yield from ({"role": "tool", "tool_call_id": call.id, "content": call.result} for call in step.calls)


def responses(steps: Sequence[Step]) -> list[Wire]:
    """Responses items."""
    return [item for step in steps for item in _responses(step)]


def _responses(step: Step) -> Iterator[Wire]:
    if step.role == "user":
        yield _with_meta(_responses_user(step), step)
        return
    made: list[Wire] = []
    if step.thinks:
        summary = [{"type": "summary_text", "text": step.thinks}]
        made.append({"type": "reasoning", "id": f"rs_{step.number}", "summary": summary, "encrypted_content": "e" * 40})
    if step.serves:
        action = {"type": "search", "query": "weather"}
        made.append({"type": "web_search_call", "id": f"ws_{step.number}", "status": "completed", "action": action})
    if step.is_odd:
        made.append({"type": "x_unknown", "id": f"x_{step.number}", "deep": [{"y": None}]})
    if step.text or not step.calls:
        part = {"type": "output_text", "text": step.text, "annotations": []}
        message = {"type": "message", "id": f"msg_{step.number}", "status": "completed", "role": "assistant"}
        made.append({**message, "content": [part]})
    made += [_responses_call(call) for call in step.calls]
    yield _with_meta(made[0], step)
    yield from made[1:]
    yield from map(_responses_output, step.calls)


def _responses_user(step: Step) -> Wire:
    if not step.has_image and not step.is_marked and not step.has_document:
        return {"role": "user", "content": step.text}
    parts = [{"type": "input_text", "text": step.text}]
    if step.has_document:
        data = f"data:application/pdf;base64,{DOCUMENT}"
        parts.append({"type": "input_file", "filename": document_name(step), "file_data": data})
    if step.has_image:
        parts.append({"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}", "detail": "auto"})
    return {"type": "message", "role": "user", "content": parts}


def _responses_call(call: Call) -> Wire:
    if call.tool == "bash":
        return {"type": "shell_call", "call_id": call.id, "action": {"commands": ["ls"], **call.arguments}}
    if call.tool == "think":
        return {"type": "custom_tool_call", "call_id": call.id, "name": call.tool, "input": str(call.arguments)}
    item = {"type": "function_call", "call_id": call.id, "name": call.tool, "arguments": json.dumps(call.arguments)}
    return {**item, "id": f"fc_{call.id}", "status": "completed"} if call.failed else item


def _responses_output(call: Call) -> Wire:
    if call.tool == "bash":
        outcome = {"type": "exit", "exit_code": int(call.failed)}
        chunk = {"stdout": call.result, "stderr": "", "outcome": outcome}
        return {"type": "shell_call_output", "call_id": call.id, "output": [chunk]}
    kind = "custom_tool_call_output" if call.tool == "think" else "function_call_output"
    output: Any = call.result
    if call.has_image:
        image = {"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}", "detail": "low"}
        output = [{"type": "input_text", "text": call.result}, image]
    return {"type": kind, "call_id": call.id, "output": output}


def anthropic(steps: Sequence[Step]) -> list[Wire]:
    """Anthropic Messages; results and the user's next words are one turn."""
    items: list[Wire] = []
    for step in steps:
        for item in _anthropic(step):
            if items and items[-1]["role"] == item["role"]:
                content = [*_blocks(items[-1]["content"]), *_blocks(item["content"])]
                items[-1] = {**items[-1], **item, "content": content}
            else:
                items.append(item)
    return items


def _blocks(content: str | list[Wire]) -> list[Wire]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _anthropic(step: Step) -> Iterator[Wire]:
    source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
    mark = {"cache_control": {"type": "ephemeral"}} if step.is_marked else {}
    if step.role == "user":
        blocks: list[Wire] = [{"type": "text", "text": step.text, **mark}]
        blocks += [{"type": "image", "source": source}] if step.has_image else []
        pdf = {"type": "base64", "media_type": "application/pdf", "data": DOCUMENT}
        document = {"type": "document", "source": pdf, "title": document_name(step)}
        blocks += [document] if step.has_document else []
        blocks += [{"type": "x_unknown", "deep": [step.number]}] if step.is_odd else []
        is_plain = len(blocks) == 1 and not mark
        yield _with_meta({"role": "user", "content": step.text if is_plain else blocks}, step)
        return
    blocks = [{"type": "thinking", "thinking": step.thinks, "signature": f"s{step.number}"}] if step.thinks else []
    if step.serves:
        own = f"srv_{step.number}"
        blocks.append({"type": "server_tool_use", "id": own, "name": "web_search", "input": {"query": "x"}})
        blocks.append({"type": "web_search_tool_result", "tool_use_id": own, "content": []})
    blocks += [{"type": "text", "text": step.text}] if step.text else []
    blocks += [{"type": "x_unknown", "deep": [step.number]}] if step.is_odd else []
    blocks += [{"type": "tool_use", "id": c.id, "name": c.tool, "input": dict(c.arguments)} for c in step.calls]
    yield _with_meta({"role": "assistant", "content": blocks}, step)
    if step.calls:
        yield {"role": "user", "content": [_anthropic_result(call, source) for call in step.calls]}


def _anthropic_result(call: Call, source: Wire) -> Wire:
    block = {"type": "tool_result", "tool_use_id": call.id, **({"is_error": True} if call.failed else {})}
    if call.has_image:
        text = [{"type": "text", "text": call.result}] if call.result else []
        return {**block, "content": [*text, {"type": "image", "source": source}]}
    return {**block, "content": call.result} if call.result or not call.failed else block


def gemini(steps: Sequence[Step]) -> list[Wire]:
    """Gemini contents, calls with and without ids."""
    return [item for step in steps for item in _gemini(step)]


def _gemini(step: Step) -> Iterator[Wire]:
    snake = step.number % 3 == 0
    if step.role == "user":
        parts: list[Wire] = [{"text": step.text}]
        if step.has_image:
            blob = {"mime_type": "image/png", "data": IMAGE} if snake else {"mimeType": "image/png", "data": IMAGE}
            parts.append({"inline_data" if snake else "inlineData": blob})
        if step.has_document:
            own = {"data": DOCUMENT, "displayName": document_name(step)}
            parts.append({"inlineData": {"mimeType": "application/pdf", **own}})
        yield _with_meta({"role": "user", "parts": parts}, step)
        return
    parts = [{"text": step.thinks, "thought": True}] if step.thinks else []
    if step.serves:
        parts.append({"executableCode": {"language": "PYTHON", "code": "print(1)"}})
        parts.append({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}})
    parts += [{"text": step.text}] if step.text else []
    for index, call in enumerate(step.calls):
        own = {"id": call.id} if step.is_odd else {}
        made: Wire = {"function_call" if snake else "functionCall": {"name": call.tool, "args": call.arguments, **own}}
        signature = "thought_signature" if snake else "thoughtSignature"
        parts.append({**made, signature: "c2ln"} if step.thinks and not index else made)
    yield _with_meta({"role": "model", "parts": parts}, step)
    if step.calls:
        yield {"role": "user", "parts": [_gemini_response(call, snake, step.is_odd) for call in step.calls]}


def _gemini_response(call: Call, snake: bool, has_ids: bool) -> Wire:
    said = {"error" if call.failed else "result": call.result}
    response: Wire = {"name": call.tool, "response": {**said, "size": [1, None]} if call.has_image else said}
    return {"function_response" if snake else "functionResponse": {**response, **({"id": call.id} if has_ids else {})}}


def converse(steps: Sequence[Step]) -> list[Wire]:
    """Bedrock Converse; results and the user's next words are one message."""
    items: list[Wire] = []
    for step in steps:
        for item in _converse(step):
            if items and items[-1]["role"] == item["role"]:
                items[-1] = {**items[-1], **item, "content": [*items[-1]["content"], *item["content"]]}
            else:
                items.append(item)
    return items


def _converse(step: Step) -> Iterator[Wire]:
    image = {"image": {"format": "png", "source": {"bytes": base64.b64decode(IMAGE)}}}
    odd = [{"x_unknown": {"deep": [step.number]}}] if step.is_odd else []
    if step.role == "user":
        mark = [{"cachePoint": {"type": "default"}}] if step.is_marked else []
        source = {"bytes": base64.b64decode(DOCUMENT)}
        document = {"document": {"format": "pdf", "name": document_name(step), "source": source}}
        attached = [*([image] if step.has_image else []), *([document] if step.has_document else [])]
        blocks: list[Wire] = [{"text": step.text}, *attached, *mark, *odd]
        yield _with_meta({"role": "user", "content": blocks}, step)
        return
    thought = {"reasoningText": {"text": step.thinks, "signature": f"s{step.number}"}}
    blocks = [{"reasoningContent": thought}] if step.thinks else []
    blocks += [{"text": step.text}] if step.text else []
    blocks += odd
    blocks += [{"toolUse": {"toolUseId": c.id, "name": c.tool, "input": dict(c.arguments)}} for c in step.calls]
    yield _with_meta({"role": "assistant", "content": blocks}, step)
    if step.calls:
        yield {"role": "user", "content": [block for call in step.calls for block in _converse_result(call, image)]}


def _converse_result(call: Call, image: Wire) -> Iterator[Wire]:
    said: list[Wire] = [{"text": call.result}] if call.result.strip() else []
    if call.tool == "bash" and not call.has_image:
        said.insert(0, {"json": {"codes": [0, None]}})
    content = [*said, *([image] if call.has_image else [])]
    status = {"status": "error"} if call.failed and content else {"status": "success"} if call.has_image else {}
    yield {"toolResult": {"toolUseId": call.id, "content": content, **status}}


def vercel(steps: Sequence[Step]) -> list[Wire]:
    """Vercel AI SDK, in the form of versions 4 and 5; the results of a step are one message, or one for each."""
    return [item for step in steps for item in _vercel(step)]


def _vercel(step: Step) -> Iterator[Wire]:
    is_old = step.number % 4 == 3
    odd = [{"type": "x_unknown", "deep": [step.number]}] if step.is_odd else []
    mark = {"providerOptions": {"anthropic": {"cacheControl": {"type": "ephemeral"}}}} if step.is_marked else {}
    if step.role == "user":
        parts: list[Wire] = [{"type": "text", "text": step.text}]
        parts += [{"type": "image", "image": IMAGE, "mediaType": "image/png"}] if step.has_image else []
        if step.has_document:
            own = {"filename": document_name(step), "mediaType": "application/pdf"}
            parts.append({"type": "file", "data": DOCUMENT, **own})
        content: Any = [*parts, *odd] if len(parts) > 1 or odd else step.text
        yield _with_meta({"role": "user", "content": content, **mark}, step)
        return
    thought = {"type": "reasoning", "text": step.thinks, "providerOptions": {"anthropic": {"signature": "s"}}}
    parts = [thought] if step.thinks else []
    if step.serves:
        own = {"toolCallId": f"srv_{step.number}", "toolName": "web_search"}
        parts.append({"type": "tool-call", **own, "input": {"query": "x"}, "providerExecuted": True})
        parts.append({"type": "tool-result", **own, "output": {"type": "json", "value": []}})
    parts += [{"type": "text", "text": step.text}] if step.text else []
    parts += odd
    for call in step.calls:
        given = {"args" if is_old else "input": dict(call.arguments)}
        parts.append({"type": "tool-call", "toolCallId": call.id, "toolName": call.tool, **given})
    yield _with_meta({"role": "assistant", "content": parts}, step)
    results = [_vercel_result(call, is_old) for call in step.calls]
    if step.number % 2:
        yield from ({"role": "tool", "content": [result]} for result in results)
    elif results:
        yield {"role": "tool", "content": results}


def _vercel_result(call: Call, is_old: bool) -> Wire:
    part = {"type": "tool-result", "toolCallId": call.id, "toolName": call.tool}
    if is_old:
        return {**part, "result": call.result, **({"isError": True} if call.failed else {})}
    if call.has_image:
        image = {"type": "image-data", "data": IMAGE, "mediaType": "image/png"}
        return {**part, "output": {"type": "content", "value": [{"type": "text", "text": call.result}, image]}}
    return {**part, "output": {"type": "error-text" if call.failed else "text", "value": call.result}}


def ollama(steps: Sequence[Step]) -> list[Wire]:
    """Messages of Ollama's own API; only some results name their tool, and no call has an id."""
    return [item for step in steps for item in _ollama(step)]


def _ollama(step: Step) -> Iterator[Wire]:
    odd = {"x_unknown": {"deep": [step.number]}} if step.is_odd else {}
    if step.role == "user":
        images = {"images": [IMAGE]} if step.has_image else {}
        yield _with_meta({"role": "user", "content": step.text, **images, **odd}, step)
        return
    thinks = {"thinking": step.thinks} if step.thinks else {}
    calls = [{"function": {"name": call.tool, "arguments": dict(call.arguments)}} for call in step.calls]
    item = {"role": "assistant", "content": step.text, **thinks, **({"tool_calls": calls} if calls else {}), **odd}
    yield _with_meta(item, step)
    is_named = step.number % 2 == 0
    for call in step.calls:
        yield {"role": "tool", "content": call.result, **({"tool_name": call.tool} if is_named else {})}


WRITERS: Mapping[str, Callable[[Sequence[Step]], list[Wire]]] = {
    "chat": chat,
    "responses": responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "converse": converse,
    "vercel": vercel,
    "ollama": ollama,
}
