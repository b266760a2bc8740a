"""What clients are shown of the tools: short, flat, bounded, and nothing that some clients refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from graphmem.mcp.tools import TOOLS, Tool

NAMES = [tool.name for tool in TOOLS]
REFUSED = {"anyOf", "oneOf", "allOf", "not", "$ref", "$defs", "definitions", "if", "patternProperties"}
BOUNDS = {
    "string": {"maxLength"}, "integer": {"minimum", "maximum"}, "number": {"minimum", "maximum"},
    "array": {"items", "maxItems"},
}  # fmt: skip


def _walked(schema: dict[str, Any], at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """A schema and every schema in it, with where it stands."""
    yield at, schema
    for name, one in schema.get("properties", {}).items():
        yield from _walked(one, f"{at}.{name}")
    if "items" in schema:
        yield from _walked(schema["items"], f"{at}[]")


@pytest.mark.parametrize("tool", TOOLS, ids=NAMES)
def test_no_schema_uses_what_some_clients_refuse(tool: Tool) -> None:
    for at, schema in (*_walked(tool.input), *_walked(tool.output)):
        assert schema.keys() & REFUSED == set(), at
        assert isinstance(schema.get("type"), str), at


@pytest.mark.parametrize("tool", TOOLS, ids=NAMES)
def test_every_argument_is_bounded(tool: Tool) -> None:
    for at, schema in _walked(tool.input):
        if "enum" not in schema:
            assert BOUNDS.get(schema["type"], set()) <= schema.keys(), at


@pytest.mark.parametrize("tool", TOOLS, ids=NAMES)
def test_schemas_are_json_schemas(tool: Tool) -> None:
    jsonschema.Draft202012Validator.check_schema(tool.input)
    jsonschema.Draft202012Validator.check_schema(tool.output)
    for at, schema in _walked(tool.input):
        if "default" in schema:
            jsonschema.validate(schema["default"], schema), at


def test_descriptions_and_input_schemas_of_all_tools_are_short() -> None:
    shown = [(tool.description, json.dumps(tool.input, separators=(",", ":"))) for tool in TOOLS]

    assert sum(len(description) + len(schema) for description, schema in shown) < 6_000


def test_output_schemas_are_lean() -> None:
    assert sum(len(json.dumps(tool.output, separators=(",", ":"))) for tool in TOOLS) < 6_000


@pytest.mark.parametrize("tool", TOOLS, ids=NAMES)
def test_a_description_is_one_sentence(tool: Tool) -> None:
    assert tool.description.endswith(".")
    assert tool.description[:-1].count(". ") == 0
