"""Contents as Gemini's API has them, which Gemini CLI and Qwen Code write into their logs."""

from __future__ import annotations

from compact.core.json_data import is_list, is_mapping
from compact.transcripts.builder import Call, LogBuilder
from compact.transcripts.parts import Content, Fields, content_of, mapping_of, text_field

_ONLY_TEXT = frozenset({"output", "error", "llmContent"})


def add_parts(log: LogBuilder, parts: object, *, is_model: bool, place: str) -> None:
    """Add the parts of one content: results to their calls, what is said, and the calls that are made."""
    shown: list[object] = []
    calls: list[Call] = []
    for part in parts if is_list(parts) else [parts]:
        fields = mapping_of(part)
        if fields.get("thought"):
            log.thinking += 1
        elif is_mapping(fields.get("functionCall")):
            call = fields["functionCall"]
            calls.append(Call(text_field(call, "id", "name"), text_field(call, "name"), call.get("args", {})))
        elif is_mapping(fields.get("functionResponse")):
            response = fields["functionResponse"]
            log.result(text_field(response, "id", "name"), response_content(response.get("response")), place=place)
        elif part is not None:
            shown.append(part)
    content = content_of(shown) if shown else None
    if is_model:
        log.answer(content, calls)
    else:
        log.say("user", content)


def response_content(response: object) -> Content:
    """Return what a tool answered: the text alone where the response has nothing else."""
    fields: Fields = mapping_of(response)
    key = next(iter(fields), "")
    return content_of(fields[key]) if len(fields) == 1 and key in _ONLY_TEXT else content_of(response)
