"""Text for terminals: nothing is obeyed, everything can be printed."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.terminal import to_json, visible, write, write_json

HOSTILE = "\x1b[31mred\x07 \x9b2J \u202etxt.exe \u2028 \ud800 \ufffe"


def stream(encoding: str) -> tuple[io.TextIOWrapper, io.BytesIO]:
    raw = io.BytesIO()
    return io.TextIOWrapper(raw, encoding=encoding, newline="\n"), raw


def test_controls_and_reordering_marks_are_shown_as_escapes() -> None:
    expected = r"\x1b[31mred\x07 \x9b2J \u202etxt.exe \u2028 \ud800 \ufffe"
    assert visible(HOSTILE) == expected


def test_line_ends_and_tabs_stay_where_lines_are_wanted() -> None:
    assert visible("a\n\tb\r") == r"a\n\tb\r"
    assert visible("a\n\tb\r", lines=True) == "a\n\tb\\r"


def test_ordinary_text_of_every_script_stays_as_it_is() -> None:
    text = "Größe 大きさ 👩‍👩‍👧 {0} %s %(x)s [red] C:\\x עברית ‌"
    assert visible(text) == text


@given(st.text(st.characters()))
def test_what_is_visible_can_be_printed_and_stays_as_it_is(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert all(sign.isprintable() or sign.isspace() or ord(sign) > 0x9F for sign in shown)
    shown.encode()


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1", "utf-8", "cp932"])
def test_a_character_that_the_encoding_lacks_is_written_as_an_escape(encoding: str) -> None:
    out, raw = stream(encoding)
    write("done ✔ 😀 é\n", out)
    out.flush()
    said = raw.getvalue().decode(encoding)
    assert said.startswith("done ")
    assert said == "done ✔ 😀 é\n" or "\\U0001f600" in said


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_json_stays_json_in_every_encoding(encoding: str) -> None:
    value = {"text": "✔ 😀 é \x7f\x9b\u2028\u202e {0} %s", "list": [1, None]}
    out, raw = stream(encoding)
    write_json(value, out)
    out.flush()
    said = raw.getvalue().decode(encoding)
    assert json.loads(said) == value
    assert not set("\x7f\x9b\u2028\u202e") & set(said)


def test_json_shows_what_the_encoding_can_show() -> None:
    assert to_json({"name": "Größe 😀"}, indent=None) == '{"name": "Größe 😀"}'


@given(st.recursive(st.text(st.characters()) | st.integers() | st.none(), st.lists, max_leaves=5))
def test_any_value_survives_as_json_in_ascii(value: object) -> None:
    out, raw = stream("ascii")
    write_json(value, out, indent=None)
    out.flush()
    assert json.loads(raw.getvalue()) == value
