"""What is indexed and what is searched fit together, for any text a person may write."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphmem import lexical
from graphmem.lexical import MAX_TERMS, match_expression, query_terms

Find = Callable[[Sequence[str], str], list[str]]


@pytest.fixture
def find() -> Find:
    """The texts that a query finds among some, best first."""

    def search(texts: Sequence[str], query: str) -> list[str]:
        db = apsw.Connection(":memory:")
        db.execute(
            "CREATE VIRTUAL TABLE t USING fts5 (content, title, context, parts, content = '', "
            "contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        for number, text in enumerate(texts):
            row = lexical.memory_row(text, None, None, None, ())
            db.execute(
                "INSERT INTO t (rowid, content, title, context, parts) VALUES (?, ?, ?, ?, ?)", (number, *row)
            )
        match = match_expression(query)
        if match is None:
            return []
        return [
            texts[n]
            for (n,) in db.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank, rowid", (match,))
        ]

    return search


# ---- rows -------------------------------------------------------------------------------------------


def test_ordinary_text_has_no_extra_pieces() -> None:
    text = "The service retries (three times) a failed request; see https://example.org. Don't wait!"

    assert lexical.memory_row(text, None, None, None, ()) == (text, "", "", "")


def test_the_context_of_a_memory_is_where_when_and_about_whom() -> None:
    row = lexical.memory_row("text", "Title", "notes/a.md", "2026-05-08T10:00:00.000Z", ["Ann", "Bob"])

    assert row == ("text", "Title", "notes/a.md\n2026-05-08 8 May 2026\nAnn\nBob", "")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("getUserById", "get user by id"),
        ("parseHTTPResponse", "parse http response"),
        ("BENCH100821 and sha256", ""),
        ("APIs and IDs", ""),
        ("C++ and C# and F#", "cplusplus csharp fsharp"),
        (".NET", "dotnet"),
        ("wait... and so on", ""),
        ("a+b #tag issue#12", ""),
        ("C++17", "cplusplus"),
        ("東京都", "東京 京都 都"),
        ("API設計", "api 設計 計"),
        ("Straße", "strasse"),
        ("Łódź", "lódź"),
        ("über café", ""),
        ("ＡＢＣ", "abc"),
        ("größeÄndern", "grösseändern grösse ändern"),
    ],
)
def test_parts_are_what_the_tokenizer_does_not_see(text: str, parts: str) -> None:
    assert lexical.parts(text) == parts


def test_encoded_data_is_not_cut_into_pieces() -> None:
    assert lexical.parts("aB" * 100) == ""


def test_names_in_title_source_and_entities_are_cut_too() -> None:
    row = lexical.memory_row("text", "getUser", "src/authService.ts", None, ["PostgresDB"])

    assert row[3] == "get user auth service postgres db"


def test_an_entity_is_indexed_by_name_aliases_and_description() -> None:
    assert lexical.entity_row("AuthService", ["auth"], "Signs in.") == (
        "AuthService\nauth",
        "Signs in.",
        "auth service",
    )
    assert lexical.entity_row("Ann", (), None) == ("Ann", "", "")


def test_a_relation_is_indexed_by_its_sentence_and_its_triple_in_words() -> None:
    assert lexical.relation_row("It needs it.", "Auth", "DEPENDS_ON", "DB") == (
        "It needs it.\nAuth depends on DB",
        "",
    )
    assert lexical.relation_row(None, "Auth", "dependsOn", "DB")[0] == "Auth depends on DB"


def test_embedded_texts_read_as_language() -> None:
    assert lexical.memory_text("text", None) == "text"
    assert lexical.memory_text("text", "Title") == "Title\ntext"
    assert lexical.entity_text("Ann", "person", "Runs it.") == "Ann (person): Runs it."
    assert lexical.entity_text("Ann", None, None) == "Ann"
    assert lexical.relation_text(None, "Auth", "depends_on", "DB") == "Auth depends on DB"
    assert lexical.relation_text("It needs it.", "Auth", "depends_on", "DB") == "It needs it."


# ---- expressions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("auth service", '"auth" OR "service"'),
        ("what is the auth service", '"auth" OR "service"'),
        ("what is this", '"what" OR "is" OR "this"'),
        ("auth AUTH auth", '"auth"'),
        ("don't", '"don t"'),
        ("I don't know", '"know"'),
        ("Anna's dog", '"Anna" OR "dog"'),
        ("who’s there", '"who" OR "there"'),
        ("pre-edit", '"pre edit" OR "pre" OR "edit"'),
        ("GB/s", '"GB s" OR "GB"'),
        ("2026-05-08", '"2026 05 08"'),
        ("OC-41252", '"OC 41252" OR "OC" OR "41252"'),
        ("x-ray", '"x ray" OR "ray"'),
        ("NEAR", '"NEAR"'),
        ("AND OR", '"AND" OR "OR"'),
        ("test*", '"test" *'),
        ("user_na*", '"user na" *'),
        ('"exact phrase" more', '"exact phrase" OR "more"'),
        ('unclosed "quote here', '"unclosed" OR "quote" OR "here"'),
        ("C++", '"C" OR "cplusplus"'),
        ("getUserById", '"getUserById" OR "get" OR "user" OR "id"'),
        ("in May 2026", '"May" OR "2026"'),
        ("may I go", '"go"'),
        ("a\x00b", '"a b"'),
        ("検索", '"検索"'),
        ("日本語", '"日本" OR "本語"'),
        ("猫", '"猫" *'),
        ('"東京都"', '"東京 京都"'),
        ("ПРИВЕТ", '"ПРИВЕТ"'),
    ],
)
def test_a_query_becomes_an_expression(query: str, expected: str) -> None:
    assert match_expression(query) == expected


@pytest.mark.parametrize("query", ["", " ", '"', '""', "*", "...", "+ - ( ) ^ :", "🚀", "\ud800", "\x00"])
def test_a_query_without_words_has_no_expression(query: str) -> None:
    assert match_expression(query) is None


def test_the_number_of_terms_is_bounded() -> None:
    assert len(query_terms(" ".join(f"word{n}" for n in range(5000)))) == MAX_TERMS
    assert len(query_terms("x" * 10_000)) == 1


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60) | st.text(alphabet="aB9\"'*+#.-_/ :(){}^猫の", max_size=30))
def test_any_text_is_a_legal_query(query: str) -> None:
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5 (a, tokenize = 'porter unicode61 remove_diacritics 2')")
    match = match_expression(query)

    if match is not None:
        assert db.execute("SELECT count(*) FROM t WHERE t MATCH ?", (match,)).get == 0


# ---- both together ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("getUserById is slow", "user by id"),
        ("get the user by its id", "getUserById"),
        ("getUserById is slow", "getuserbyid"),
        ("user_id is a number", "user id"),
        ("the user id", "user_id"),
        ("über alles", "uber"),
        ("uber alles", "über"),
        ("un café noir", "cafe"),
        ("un cafe\u0301 noir", "café"),
        ("Straße", "STRASSE"),
        ("STRASSE", "Straße"),
        ("Łódź", "lodz"),
        ("привет мир", "ПРИВЕТ"),
        ("ΟΔΟΣ", "οδός"),
        ("ＡＢＣ", "abc"),
        ("東京都の黒猫である", "黒猫"),
        ("東京都の黒猫である", "猫"),
        ("これは黒猫", "猫"),
        ("これは猫", "猫"),
        ("API設計の話", "API"),
        ("API設計の話", "設計"),
        ("가방을 들고", "가방"),
        ("ｶﾞｷﾞ", "ガギ"),
        ("ที่นี่สวยมาก", "สวย"),
        ("हिन्दी भाषा", "हिन्दी"),
        ("كِتاب", "كتاب"),
        ("the retries failed", "retry failing"),
        ("don't worry", "don't"),
        ("don’t worry", "don't"),
        ("10 GB/s", "GB/s"),
        ("on 2026-05-08 it broke", "2026-05-08"),
        ("see OC-41252", "OC-41252"),
        ("see OC 41252", "OC-41252"),
        ("testing it", "test*"),
        ("NEAR the end", "NEAR"),
    ],
)
def test_a_text_is_found_by_other_spellings_of_its_words(find: Find, text: str, query: str) -> None:
    assert find([text, "nothing of the kind"], query) == [text]


def test_signed_names_rank_above_their_letter_alone(find: Find) -> None:
    texts = ["we write C here", "we write C++ here", "we write C# here"]

    assert find(texts, "C++")[0] == "we write C++ here"
    assert find(texts, "C#")[0] == "we write C# here"
    assert find(["a net for fish", "the .NET runtime"], ".NET")[0] == "the .NET runtime"


def test_a_phrase_finds_words_only_next_to_each_other(find: Find) -> None:
    assert find(["red green blue", "red blue green"], '"red green"') == ["red green blue"]
    assert find(["東京都に住む", "京都の東"], '"東京都"') == ["東京都に住む"]
