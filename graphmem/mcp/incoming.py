"""What a client sends, looked at before the library sees it, which leaves what it cannot read unanswered.

A message that can be handed on is one that the library reads as what it is: a request with an id is never
taken for a notification. Everything else has an answer here, with the id where one can be told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from typing import Any, Final

from graphmem.lookup import bindable

PARSE_ERROR: Final = -32_700
INVALID_REQUEST: Final = -32_600
BATCHING: Final = ("2024-11-05", "2025-03-26")
"""The revisions of the protocol in which several messages may come as one list."""

NO_BATCH: Final = "messages come one by one: lists of them are part of earlier revisions, and only over pipes"

_Message = dict[str, Any]
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


class Refused(Exception):
    """A message that is not handed on, and the error that answers it."""

    def __init__(self, code: int, message: str, id_: int | str | None = None, *, told: bool = True) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.id = id_
        self.told = told
        """Whether it is answered; what claims to be an answer itself is not."""

    def answer(self) -> _Message:
        """The error as it is sent."""
        return {"jsonrpc": "2.0", "id": self.id, "error": {"code": self.code, "message": self.message}}


def parsed(text: str) -> Any:
    """The JSON of a text. Raises `Refused` for what is none."""
    try:
        return json.loads(text)
    except RecursionError:
        raise Refused(PARSE_ERROR, "values are nested too deep") from None
    except ValueError as error:
        where = f" at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
        raise Refused(PARSE_ERROR, f"this is not JSON{where}") from None


def readable(value: Any, text: str | None = None) -> str:
    """The text of a message that the library can read.

    It is `text`, where the message was sent alone, but for halves of surrogate pairs, which are replaced
    by U+FFFD. Raises `Refused` for what is no message.
    """
    if not isinstance(value, dict):
        raise Refused(
            INVALID_REQUEST, NO_BATCH if value and isinstance(value, list) else "a message is an object"
        )
    is_answer = "method" not in value and ("result" in value or "error" in value)
    if not is_answer:
        _check(value)
    if text is None or _HALF.search(text):
        text = bindable(json.dumps(value, ensure_ascii=False))
    from mcp.types import jsonrpc_message_adapter

    try:
        jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        why = "the message cannot be read; its values may be nested too deep"
        raise Refused(INVALID_REQUEST, why, _id(value), told=not is_answer) from None
    return text


def key(id_: Any) -> Hashable:
    """The id of a request, told apart by type, since `1` is not `"1"`; `None` for what is no id."""
    return (type(id_).__name__, id_) if _is_id(id_) else None


def _check(value: _Message) -> None:
    """Raises `Refused` for what is neither a request nor a notification."""
    for name, sound, wanted in (
        ("id", "id" not in value or _is_id(value["id"]), "is neither a text nor a whole number"),
        ("jsonrpc", value.get("jsonrpc") == "2.0", 'is not "2.0"'),
        ("method", isinstance(value.get("method"), str), "is no text"),
        ("params", value.get("params") is None or isinstance(value["params"], dict), "is no object"),
        # The library would take it for an answer.
        ("result", "result" not in value, "is part of an answer, and this is a request"),
        ("error", "error" not in value, "is part of an answer, and this is a request"),
    ):
        if not sound:
            missing = name not in value
            raise Refused(INVALID_REQUEST, f"'{name}' {'is missing' if missing else wanted}", _id(value))


def _id(value: _Message) -> int | str | None:
    found = value.get("id")
    return found if _is_id(found) else None


def _is_id(id_: Any) -> bool:
    if isinstance(id_, str):
        return bindable(id_) == id_
    return isinstance(id_, int) and not isinstance(id_, bool)


class Batch:
    """The messages of a list, and their answers, which are a list as well."""

    def __init__(self, values: list[Any]) -> None:
        self.lines: list[tuple[str, _Message]] = []
        """What is handed on."""
        self._answers: list[_Message] = []
        self._waiting: set[Hashable] = set()
        for value in values:
            try:
                if isinstance(value, dict) and value.get("method") == "initialize":
                    raise Refused(INVALID_REQUEST, "'initialize' comes alone", _id(value))
                self.lines.append((readable(value), value))
            except Refused as refused:
                if refused.told:
                    self._answers.append(refused.answer())
                continue
            if "method" in value and "id" in value:
                self._waiting.add(key(value["id"]))

    def takes(self, id_: Hashable, answer: _Message | None) -> bool:
        """Keeps the answer to one of its requests, `None` for one that will not come; whether it is one."""
        if id_ not in self._waiting:
            return False
        self._waiting.discard(id_)
        if answer is not None:
            self._answers.append(answer)
        return True

    @property
    def done(self) -> bool:
        """Whether nothing more will come."""
        return not self._waiting

    def text(self) -> str:
        """All answers as one line, "" where there are none."""
        return f"{json.dumps(self._answers, ensure_ascii=False)}\n" if self._answers else ""
