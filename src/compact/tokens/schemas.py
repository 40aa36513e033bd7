"""What tool schemas cost, by OpenAI's published function-schema formula.

The formula covers flat parameters; nested objects, arrays and alternatives are counted with the same figures at
each level. A tool that is no function (a built-in with settings) costs its JSON text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compact.core.json_data import is_list, is_mapping
from compact.tokens.framing import CountText, json_text

# The published figures: per function, per object with properties, per property, per enumeration, once at the end.
FUNCTION_TOKENS = 7
OLD_FUNCTION_TOKENS = 10  # gpt-4 and gpt-3.5
PROPERTIES_TOKENS = 3
PROPERTY_TOKENS = 3
ENUM_TOKENS = -3
ENUM_ITEM_TOKENS = 3
TOOLS_END_TOKENS = 12

_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")
_DECLARATION_KEYS = ("functionDeclarations", "function_declarations")
_LIST_KEYS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAP_KEYS = ("$defs", "definitions", "patternProperties")
# Schemas of others may be absurdly deep; below this their text is counted instead.
_MAX_DEPTH = 32


def tools_tokens(
    tools: Sequence[Mapping[str, Any]], count_text: CountText, *, function_tokens: int = FUNCTION_TOKENS
) -> int:
    """Return the tokens of all tool schemas of a prompt, in the chat, Responses, Anthropic or Gemini form."""
    listed = [one for tool in tools for one in _declared(tool)]
    if not listed:
        return 0
    return TOOLS_END_TOKENS + sum(function_tokens + _tool_tokens(tool, count_text) for tool in listed)


def _declared(tool: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the functions that one tool of Gemini declares; any other tool is one by itself."""
    key = next((key for key in _DECLARATION_KEYS if isinstance(tool.get(key), list | tuple)), None)
    if key is None:
        return [tool]
    rest = {name: value for name, value in tool.items() if name != key and value is not None}
    return [*(_mapping(one) or {"name": json_text(one)} for one in tool[key]), *([rest] if rest else [])]


def _tool_tokens(tool: Mapping[str, Any], count_text: CountText) -> int:
    function = _mapping(tool.get("function")) or tool
    name = function.get("name")
    schema = next((found for key in _SCHEMA_KEYS if (found := _mapping(function.get(key))) is not None), None)
    described = schema is not None or tool.get("type") in (None, "function", "custom")
    if not isinstance(name, str) or not described:
        return count_text(json_text(tool))
    tokens = count_text(f"{name}:{_sentence(function)}")
    if tool.get("type") == "custom":
        tokens += count_text(json_text(tool.get("format", "")))
    return tokens + (_object_tokens(schema, count_text, 0) if schema else 0)


def _object_tokens(schema: Mapping[str, Any], count_text: CountText, depth: int) -> int:
    """Return the tokens of everything below a schema: its properties, items, alternatives and definitions."""
    if depth > _MAX_DEPTH:
        return count_text(json_text(schema))
    tokens = 0
    properties = _mapping(schema.get("properties")) or {}
    if properties:
        tokens += PROPERTIES_TOKENS
        for name, value in properties.items():
            tokens += PROPERTY_TOKENS + _value_tokens(str(name), value, count_text, depth)
    for inner in _inner_schemas(schema):
        tokens += _value_tokens("", inner, count_text, depth)
    return tokens


def _value_tokens(name: str, value: object, count_text: CountText, depth: int) -> int:
    """Return the tokens of one property or nested schema: its line, its enumeration, and what is below it."""
    schema = _mapping(value)
    if schema is None:
        return count_text(f"{name}:{json_text(value)}")
    kind = schema.get("type", schema.get("$ref", ""))
    written = kind if isinstance(kind, str) else json_text(kind)
    tokens = count_text(f"{name}:{written}:{_sentence(schema)}")
    choices = schema.get("enum")
    if is_list(choices) and choices:
        tokens += ENUM_TOKENS
        for choice in choices:
            tokens += ENUM_ITEM_TOKENS + count_text(choice if isinstance(choice, str) else json_text(choice))
    return tokens + _object_tokens(schema, count_text, depth + 1)


def _inner_schemas(schema: Mapping[str, Any]) -> Iterator[object]:
    items = schema.get("items")
    yield from items if isinstance(items, list | tuple) else (items,) if isinstance(items, Mapping) else ()
    if isinstance(extra := schema.get("additionalProperties"), Mapping):
        yield extra
    for key in _LIST_KEYS:
        alternatives = schema.get(key)
        yield from alternatives if isinstance(alternatives, list | tuple) else ()
    for key in _MAP_KEYS:
        yield from (_mapping(schema.get(key)) or {}).values()


def _sentence(schema: Mapping[str, Any]) -> str:
    """Return the description as the formula counts it: without its final full stop."""
    description = schema.get("description")
    return description.removesuffix(".") if isinstance(description, str) else ""


def _mapping(value: object) -> Mapping[str, Any] | None:
    return value if is_mapping(value) else None
