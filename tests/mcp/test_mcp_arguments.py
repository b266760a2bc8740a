"""Arguments are checked in words that a model can act upon, and small slips of form are mended."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.errors import UsageError
from graphmem.mcp.arguments import checked

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 10},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
        "share": {"type": "number", "minimum": 0.0, "maximum": 1.0},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 2},
        "deep": {"type": "boolean", "default": False},
        "way": {"type": "string", "enum": ["in", "out"]},
        "rows": {
            "type": "array", "maxItems": 3,
            "items": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}},
                      "required": ["name"]},
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}  # fmt: skip


def _refused(**arguments: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        checked(SCHEMA, {"query": "q"} | arguments)
    return caught.value


def test_what_is_left_out_has_its_default() -> None:
    assert checked(SCHEMA, {"query": "q"}) == {"query": "q", "limit": 10, "deep": False}


def test_an_unknown_argument_is_refused_with_the_nearest_name() -> None:
    error = _refused(limt=3)

    assert (error.message, error.hint, error.suggestions) == (
        "there is no argument 'limt'", "it may be 'limit'", ("limit",)
    )  # fmt: skip


def test_an_unknown_argument_near_to_nothing_is_refused_with_all_names() -> None:
    assert "'query', 'limit'" in _refused(zzz=1).hint


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": ""}, "'query' has 0 characters"),
        ({"query": "x" * 11}, "'query' has 11 characters"),
        ({"query": 5}, "'query' is 5, not a text"),
        ({"limit": 0}, "'limit' is 0"),
        ({"limit": 101}, "'limit' is 101"),
        ({"limit": True}, "'limit' is true, not a whole number"),
        ({"limit": 1.5}, "'limit' is 1.5, not a whole number"),
        ({"share": float("nan")}, "'share' is NaN, not a number"),
        ({"deep": "maybe"}, "'deep' is \"maybe\", not true or false"),
        ({"tags": ["a", "b", "c"]}, "'tags' has 3 entries"),
        ({"tags": ["toolong"]}, "'tags'[0] has 7 characters"),
        ({"tags": {"a": 1}}, "'tags' is {\"a\": 1}, not a list"),
        ({"way": "up"}, "'way' is \"up\""),
        ({"rows": [{}]}, "'name' is missing in 'rows'[0]"),
        ({"rows": [{"nam": "x"}]}, "there is no argument 'nam' in 'rows'[0]"),
    ],
)
def test_what_the_schema_does_not_allow_is_refused(arguments: dict[str, Any], message: str) -> None:
    error = _refused(**arguments)

    assert error.message == message
    assert error.hint


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(UsageError, match="'query' is missing"):
        checked(SCHEMA, None)


def test_arguments_that_are_no_object_are_refused() -> None:
    with pytest.raises(UsageError, match="not an object"):
        checked(SCHEMA, ["q"])


@pytest.mark.parametrize(
    ("arguments", "mended"),
    [
        ({"tags": '["a", "b"]'}, {"tags": ["a", "b"]}),
        ({"tags": "a"}, {"tags": ["a"]}),
        ({"limit": "7"}, {"limit": 7}),
        ({"limit": 7.0}, {"limit": 7}),
        ({"deep": "true"}, {"deep": True}),
        ({"share": None}, {}),
        ({"rows": {"name": "a"}}, {"rows": [{"name": "a"}]}),
    ],
)
def test_a_slip_of_form_is_mended(arguments: dict[str, Any], mended: dict[str, Any]) -> None:
    found = checked(SCHEMA, {"query": "q"} | arguments)

    assert {name: found[name] for name in mended} == mended
    assert all(name in mended or found[name] == value for name, value in (("limit", 10), ("deep", False)))


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "other"]), st.recursive(
    st.none() | st.booleans() | st.integers(-5, 105) | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
)))  # fmt: skip
def test_whatever_passes_fits_the_schema(arguments: dict[str, Any]) -> None:
    try:
        found = checked(SCHEMA, arguments)
    except UsageError:
        return

    jsonschema.validate(found, SCHEMA)
