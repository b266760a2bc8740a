"""What a call was given, checked against the input schema that the client was shown.

The schemas use few words of JSON Schema, so that every client reads them: `type`, `enum`, `items`,
`properties`, `required`, and the bounds. Models write arguments, so small slips of form are mended: a list
or a number written as text, one text where a list is wanted, `null` for what is left out. Anything else is
refused in words that a model can act upon.

Where more is accepted than shown, a schema that is not shown has three words more: `also`, the schema of an
object that may stand in the place of a text, `number`, which lets a number stand there, and `triple`, which
allows the short form of a relation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, NoReturn

from graphmem.errors import UsageError

Schema = Mapping[str, Any]

_MOST_TOLD: Final = 80
_TRIPLE: Final = ("subject", "predicate", "object")
_NAMES: Final = {
    "string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "array": "a list", "object": "an object",
}  # fmt: skip


def checked(schema: Schema, given: Any) -> dict[str, Any]:
    """The arguments with the defaults of those that are left out.

    Raises `UsageError` for what the schema does not allow, with the nearest name for an unknown argument.
    """
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise UsageError("the arguments are not an object", f"give {_listed(schema['properties'])}")
    return _object(schema, given, "")


def _value(schema: Schema, value: Any, at: str) -> Any:
    if "also" in schema and isinstance(value, dict):
        return _object(schema["also"], value, at)
    if "number" in schema and _is("number", value):
        return value
    kind = schema["type"]
    value = _mended(kind, schema, value)
    if "triple" in schema and isinstance(value, list):
        return value
    if not _is(kind, value):
        raise UsageError(f"{at} is {_short(value)}, not {_NAMES[kind]}", _allowed(schema))
    if kind == "object":
        return _object(schema, value, at) if "properties" in schema else value
    if kind == "array":
        _bounded(len(value), schema, "minItems", "maxItems", f"{at} has {len(value):,} entries")
        return [_value(schema["items"], one, f"{at}[{place}]") for place, one in enumerate(value)]
    if kind == "string":
        if "enum" in schema and value not in schema["enum"]:
            close = tuple(get_close_matches(value, schema["enum"], 1, 0.5))
            raise UsageError(f"{at} is {_short(value)}", f"use one of {', '.join(schema['enum'])}", close)
        _bounded(len(value), schema, "minLength", "maxLength", f"{at} has {len(value):,} characters")
    elif kind in ("integer", "number"):
        _bounded(value, schema, "minimum", "maximum", f"{at} is {value}")
    return value


def _object(schema: Schema, given: dict[str, Any], at: str) -> dict[str, Any]:
    """An object with its keys checked and its defaults filled in; what is not named is refused."""
    properties = schema["properties"]
    found = {}
    for name, value in given.items():
        if name in properties:
            if value is not None:
                found[name] = _value(properties[name], value, f"{at}.{name}" if at else f"'{name}'")
        else:
            _unknown(name, properties, at)
    for name, one in properties.items():
        if name not in found and "default" in one:
            found[name] = one["default"]
    missing = [name for name in schema.get("required", ()) if name not in found]
    if missing:
        where = f" in {at}" if at else ""
        raise UsageError(
            f"'{missing[0]}' is missing{where}", f"it is {_NAMES[properties[missing[0]]['type']]}"
        )
    return found


def _unknown(name: str, properties: Iterable[str], at: str) -> NoReturn:
    close = get_close_matches(name, properties, 1, 0.5)
    where = f" in {at}" if at else ""
    hint = f"it may be '{close[0]}'" if close else f"there are {_listed(properties)}"
    raise UsageError(f"there is no argument '{name[:_MOST_TOLD]}'{where}", hint, tuple(close))


def _mended(kind: str, schema: Schema, value: Any) -> Any:
    """A value in the form that is wanted, where its meaning is plain."""
    if isinstance(value, str) and kind in ("array", "object", "integer", "number", "boolean"):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            parsed = None
        if _is(kind, parsed):
            value = parsed
    if kind == "array" and not isinstance(value, list):
        items = schema["items"]
        if _is(items["type"], value) or ("also" in items and isinstance(value, dict)):
            return [value]
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if "triple" in schema:
        return _relation(value)
    return value


def _relation(value: Any) -> Any:
    """A relation as an object with its type, where it is one by its form: three texts, or its three keys."""
    if isinstance(value, list) and len(value) == len(_TRIPLE):
        return {"type": "relation"} | dict(zip(_TRIPLE, value, strict=True))
    if isinstance(value, dict) and value.get("type") is None and all(key in value for key in _TRIPLE):
        return value | {"type": "relation"}
    return value


def _is(kind: str, value: Any) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, list if kind == "array" else dict)


def _bounded(size: float, schema: Schema, least: str, most: str, told: str) -> None:
    if not schema.get(least, -math.inf) <= size <= schema.get(most, math.inf):
        raise UsageError(told, _allowed(schema))


def _allowed(schema: Schema) -> str:
    """What a schema allows, in words."""
    for least, most, unit in (
        ("minLength", "maxLength", " characters"), ("minItems", "maxItems", " entries"),
        ("minimum", "maximum", ""),
    ):  # fmt: skip
        if most in schema:
            return f"give {_NAMES[schema['type']]}, from {schema.get(least, 0):,} to {schema[most]:,}{unit}"
    return f"give {_NAMES[schema['type']]}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MOST_TOLD else f"{text[:_MOST_TOLD]}…"
