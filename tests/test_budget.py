"""An answer fits into the tokens that it may have, and says what that cost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmem.budget import MARK, bound, bound_json, cut, in_json, tokens
from graphmem.recall import Answer
from graphmem.terminal import to_json

FIXTURES = Path(__file__).parent.parent / "fixtures"


def hit(id_: str, content: str, **fields: Any) -> dict[str, Any]:
    return {"id": id_, "content": content, "properties": {}, **fields}


def answer(*hits: dict[str, Any], **lists: Any) -> Answer:
    return Answer("lexical", list(hits), totals={"hits": len(hits), "entities": 0, "facts": 0}, **lists)


def by_text(key: str, item: dict[str, Any]) -> int:
    return tokens(item.get("content") or item.get("fact") or item.get("description") or "")


# ---- counting ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (" \n\t ", 0),
        ("word", 1),
        ("words", 2),
        ("two words", 3),
        ("2026-05-08", 6),
        ("don't", 3),
        ("検索は速い", 5),
        ("getUserById", 3),
        ("{}", 2),
    ],
)
def test_tokens_are_counted_without_a_model(text: str, count: int) -> None:
    assert tokens(text) == count


@given(st.text(max_size=80), st.text(max_size=80))
def test_two_texts_have_about_as_many_tokens_together_as_alone(one: str, other: str) -> None:
    assert tokens(f"{one} {other}") == tokens(one) + tokens(other)
    assert tokens(one) <= tokens(one + other) <= tokens(one) + tokens(other)


def _tokenizer() -> Any:
    """The tokenizer of the default model, as it lies in the user's folder or in its package."""
    tokenizers = pytest.importorskip("tokenizers")
    folders = [Path(os.environ.get("GRAPHMEM_HOME", Path.home() / ".graphmem")) / "models"]
    for path in (path for folder in folders for path in sorted(folder.glob("*MiniLM-L6-v2*/tokenizer.json"))):
        found = tokenizers.Tokenizer.from_file(str(path))
        found.no_truncation()
        found.no_padding()
        return found
    return pytest.skip("the default model is not on this machine")


def test_no_text_is_counted_far_below_what_the_tokenizer_of_the_model_says() -> None:
    tokenizer = _tokenizer()
    paths = [*FIXTURES.glob("vault/**/*.md"), *FIXTURES.glob("jsonl/*"), *FIXTURES.glob("notes/*.md")]
    texts = [path.read_bytes().decode("utf-8", "ignore") for path in paths]
    texts += [
        Path(__file__).read_text(encoding="utf-8"),
        "Привет, мир",
        "01J9ZK4T7M3X8Q2W5V6B3f2a9c81d0",
        "🚀 ok ✅",
    ]

    ratios = [tokens(text) / len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]

    assert len(ratios) > 40
    assert min(ratios) > 0.8
    assert sum(ratios) / len(ratios) < 1.5


# ---- cutting ----------------------------------------------------------------------------------------


def test_a_text_is_cut_between_two_words_with_a_mark() -> None:
    assert cut("one two three four", 99) == "one two three four"
    assert cut("one two three four", 3) == "one two" + MARK
    assert cut("one two, getUserById please", 5) == "one two," + MARK


def test_a_text_without_spaces_is_cut_between_two_characters() -> None:
    assert cut("全文検索は速い", 4) == "全文検" + MARK
    assert cut("internationalization", 3) == ""
    assert cut("กำลังทำ", 3) in ("ก" + MARK, "กำ" + MARK)


def test_where_nothing_fits_there_is_nothing() -> None:
    assert cut("one two", 0) == cut("one two", 1) == ""


@given(
    st.text(max_size=120) | st.text(alphabet="ab 9.猫ก\u0e33é\u0301\u200d🚀\n", max_size=60),
    st.integers(0, 60),
)
def test_a_cut_text_fits_and_is_a_beginning(text: str, limit: int) -> None:
    kept = cut(text, limit)

    assert tokens(kept) <= limit
    assert text.startswith(kept.removesuffix(MARK))
    assert kept == text or kept == "" or kept.endswith(MARK)
    assert (kept == text) is (tokens(text) <= limit) or kept == text == ""


# ---- bounding ---------------------------------------------------------------------------------------


def test_what_fits_stays_as_it_is() -> None:
    found = answer(hit("a", "one two"), facts=[{"id": "f", "fact": "three"}])
    before = [*found.hits], [*found.facts]

    bound(found, 100, measure=by_text)

    assert (found.hits, found.facts) == before
    assert not found.truncated
    assert found.budget == {
        "max_tokens": 100, "tokens": 4, "left_out": {"hits": 0, "facts": 0, "entities": 0}, "cut": None,
    }  # fmt: skip


def test_whole_memories_come_first_and_the_last_is_cut() -> None:
    long = "many words " * 40
    found = answer(
        hit("a", "one two"), hit("b", long, properties={"k": 1}, tags=["t"]), hit("c", "x"),
        facts=[{"id": "f", "fact": "x"}], entities=[{"id": "e", "description": "x"}],
    )  # fmt: skip

    bound(found, 40, around=5, measure=by_text)

    assert [one["id"] for one in found.hits] == ["a", "b"]
    assert found.hits[0] == hit("a", "one two")
    assert found.hits[1]["cut"] is True
    assert (found.hits[1]["properties"], found.hits[1]["tags"]) == ({}, [])
    assert found.hits[1]["content"].endswith("many words many" + MARK)
    assert found.facts == found.entities == []
    assert found.truncated
    assert found.budget is not None
    assert found.budget["tokens"] <= 40
    assert (found.budget["left_out"], found.budget["cut"]) == ({"hits": 1, "facts": 1, "entities": 1}, "b")


def test_next_to_nothing_of_a_memory_is_not_shown() -> None:
    found = answer(hit("a", "many words " * 40))

    bound(found, 5, measure=by_text)

    assert found.hits == []
    assert found.truncated
    assert found.budget is not None
    assert (found.budget["left_out"]["hits"], found.budget["cut"]) == (1, None)


@given(
    st.lists(st.text(max_size=200) | st.just('"\\\u202e\n' * 20), max_size=6),
    st.lists(st.none() | st.text(max_size=80), max_size=3),
    st.integers(1, 900),
)
def test_an_answer_in_json_fits_wherever_its_frame_does(
    contents: list[str], facts: list[str | None], limit: int
) -> None:
    found = answer(
        *(hit(f"m{number}", text, tags=["t"]) for number, text in enumerate(contents)),
        facts=[{"id": f"f{number}", "fact": text, "properties": {}} for number, text in enumerate(facts)],
    )

    bound_json(found, limit, {"query": "what"})

    size = tokens(to_json({"query": "what"} | found.as_dict()))
    assert size <= limit or not (found.hits or found.facts)
    assert found.budget is not None
    left = found.budget["left_out"]
    assert (len(found.hits) + left["hits"], len(found.facts) + left["facts"]) == (len(contents), len(facts))
    assert found.truncated is bool(any(left.values()) or found.budget["cut"])


def test_json_is_measured_with_its_escapes() -> None:
    assert in_json("hits", {"content": "\x1b" * 10}) > in_json("hits", {"content": "a" * 10})
