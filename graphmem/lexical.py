"""What is indexed for full text, what is embedded, and how a person's words become an FTS5 expression.

The tokenizer (`porter unicode61 remove_diacritics 2`) sees words between signs. What it does not see
goes to a column `parts`, and a query is cut in the same way:

identifiers       `getUserById` is also `get user by id` (never cut between a letter and a digit)
signed names      `C++` is also `cplusplus`, `C#` `csharp`, `.NET` `dotnet`
other scripts     see `graphmem.scripts`

Everything here is pure. Ordinary ASCII text takes one regular expression and no allocation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from unicodedata import normalize

from graphmem.names import words

MAX_TERMS: Final = 64
"""Terms of one query that are searched; later ones are left out."""

_MAX_QUERY: Final = 20_000
_MAX_PHRASE: Final = 16
_MAX_IDENTIFIER: Final = 128  # longer runs are encoded data, not names
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

# Each alternative consumes the rare character first, so that the scan skips quickly over ordinary text.
_SPECIAL = re.compile(
    r"[A-Z+#.](?:(?<=[a-z][A-Z])|(?<=[A-Z0-9][A-Z])(?=[a-z][A-Za-z0-9])"
    r"|(?<=[A-Za-z0-9][+#])(?![A-Za-z0-9])|(?<=\.)(?<![\w.]\.)(?=[A-Za-z]))"
)
_HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z][A-Za-z0-9])")
_IDENTIFIER = re.compile(r"[A-Za-z0-9]{3,}")
_SIGNED = re.compile(
    r"(?<![A-Za-z0-9])([A-Za-z][A-Za-z0-9]{0,15})(\+\+(?![A-Za-z+#])|[+#](?![A-Za-z0-9+#]))"
    r"|(?<![\w.])\.([A-Za-z][A-Za-z0-9]{1,15})"
)
_SIGN_NAMES: Final = {"+": "plus", "++": "plusplus", "#": "sharp"}


def _cut(word: str) -> str:
    """An ASCII word with spaces at its humps."""
    return _HUMPS.sub(" ", word) if len(word) <= _MAX_IDENTIFIER else word


def _signed_names(text: str) -> Iterator[str]:
    for word, signs, dotted in _SIGNED.findall(text):
        yield (word + _SIGN_NAMES[signs] if word else f"dot{dotted}").lower()


def _ascii_parts(text: str) -> Iterator[str]:
    for word in _IDENTIFIER.findall(text):
        cut = _cut(word)
        if cut != word:
            yield cut.lower()
    yield from _signed_names(text)


def _wide_parts(text: str) -> Iterator[str]:
    from graphmem import scripts

    for chunk in text.split():
        if not chunk.isascii():
            for word in scripts.find_words(chunk):
                if not word.isascii():
                    yield from scripts.extra_forms(word)


def parts(text: str) -> str:
    """The pieces of the text that the tokenizer does not see; "" for ordinary text."""
    special = _SPECIAL.search(text) is not None
    if text.isascii():
        return " ".join(dict.fromkeys(_ascii_parts(text))) if special else ""
    found = list(dict.fromkeys(_ascii_parts(text))) if special else []
    found.extend(_wide_parts(text))
    return " ".join(found)


# ---- rows of the full-text tables -----------------------------------------------------------------


@lru_cache(maxsize=4096)
def _day(date: str) -> str:
    """A date in the words people ask for it: `2026-05-08 8 May 2026`."""
    year, month, day = date.split("-")
    return f"{date} {int(day)} {_MONTHS[int(month) - 1]} {int(year)}"


def memory_row(
    content: str, title: str | None, source: str | None, valid_at: str | None, about: Sequence[str]
) -> tuple[str, str, str, str]:
    """The columns content, title, context and parts of `memory_fts`.

    The context is where, when and about whom: source, date of the canonical time `valid_at`, names.
    """
    if source is None and valid_at is None and not about:
        context = ""
    else:
        around = [source] if source else []
        if valid_at is not None:
            around.append(_day(valid_at[:10]))
        around.extend(about)
        context = "\n".join(around)
    if title:
        return content, title, context, parts(f"{content}\n{title}\n{context}")
    return content, "", context, parts(f"{content}\n{context}" if context else content)


def entity_row(name: str, aliases: Iterable[str], description: str | None) -> tuple[str, str, str]:
    """The columns names, description and parts of `entity_fts`."""
    names = "\n".join((name, *aliases))
    if description:
        return names, description, parts(f"{names}\n{description}")
    return names, "", parts(names)


def relation_row(fact: str | None, subject: str, predicate: str, object_: str) -> tuple[str, str]:
    """The columns fact and parts of `relation_fts`: the sentence, if any, and the triple in words."""
    triple = f"{subject} {words(predicate)} {object_}"
    text = f"{fact}\n{triple}" if fact else triple
    return text, parts(text)


# ---- what is embedded -----------------------------------------------------------------------------


def memory_text(content: str, title: str | None, about: Sequence[str] = ()) -> str:
    """The text of a memory that is embedded: whom it is about, its title, its content.

    Naming the speaker or subject is worth .012 nDCG@10 on conversations.
    """
    text = f"{title}\n{content}" if title else content
    return f"{', '.join(about)}: {text}" if about else text


def entity_text(name: str, kind: str | None, description: str | None) -> str:
    """The text of an entity that is embedded."""
    head = f"{name} ({kind})" if kind else name
    return f"{head}: {description}" if description else head


def relation_text(fact: str | None, subject: str, predicate: str, object_: str) -> str:
    """The text of a relation that is embedded: its sentence, else its triple in words."""
    return fact or f"{subject} {words(predicate)} {object_}"


# ---- queries --------------------------------------------------------------------------------------

STOP_WORDS: Final = frozenset(
    """
    a an and are as at be but by for if in into is it no not of on or such that the their then there
    these they this to was will with what when where who whom which why how did do does has have had he
    she her his him its i you your we our us my me them been being would could should can may might about
    from so than too very just were am
    """.split()  # noqa: SIM905 - a list of a hundred strings is harder to read
)
_CLITICS: Final = frozenset(("s", "d", "m", "t", "ll", "re", "ve"))
_QUOTED = re.compile(r'"([^"]*)"')
_APOSTROPHE = re.compile("['’ʼ＇]")
_NEGATED = re.compile("n['’ʼ＇]t$")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+")
_PUNCTUATION: Final = "\"'`“”„‘’«»()[]{}<>,.;:!?…、。「」『』（）"


class Term(NamedTuple):
    """One thing looked for: words that stand next to each other, or that begin so."""

    text: str
    prefix: bool = False
    stop: bool = False

    @property
    def expression(self) -> str:
        """The term in the query language of FTS5."""
        return f'"{self.text}" *' if self.prefix else f'"{self.text}"'


def _find_words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text)
    from graphmem import scripts

    return scripts.find_words(text)


def _is_spaceless(word: str) -> bool:
    if word.isascii():
        return False
    from graphmem import scripts

    return scripts.is_spaceless(word)


def _word_term(word: str) -> Term:
    return Term(word, stop=word.lower() in STOP_WORDS)


def _word_terms(word: str) -> Iterator[Term]:
    """The terms of one word: itself and what it is indexed under besides."""
    if not word.isascii():
        yield from _wide_terms(word)
        return
    yield _word_term(word)
    cut = _cut(word)
    if cut != word:
        yield from (_word_term(piece) for piece in cut.lower().split(" "))


def _wide_terms(word: str) -> Iterator[Term]:
    from graphmem import scripts

    if not scripts.is_spaceless(word):
        yield Term(word)
        for form in scripts.extra_forms(word):
            yield from (Term(piece) for piece in form.split(" "))
        return
    for spaceless, other in scripts.runs(word):
        if other:
            yield _word_term(other)
        elif len(spaceless) == 1:
            yield Term(scripts.pairs(spaceless)[0], prefix=True)
        else:
            yield from (Term(pair) for pair in scripts.pairs(spaceless)[:-1])


def _compound_terms(chunk: str, found: list[str]) -> Iterator[Term]:
    """A word with signs inside: its words next to each other, and the telling ones of them alone."""
    if found[-1].lower() in _CLITICS and _APOSTROPHE.search(chunk):
        if len(found) == 2 and _NEGATED.search(chunk.lower()):
            yield Term(" ".join(found), stop=True)
            return
        found = found[:-1]
    if 1 < len(found) <= _MAX_PHRASE and not any(map(_is_spaceless, found)):
        yield Term(" ".join(found))
        if all(word.isdecimal() for word in found):  # the single numbers of a date or version say little
            return
        found = [word for word in found if len(word) > 1]
    for word in found:
        yield from _word_terms(word)


def _chunk_terms(chunk: str) -> Iterator[Term]:
    """The terms of what stands between two spaces: `don't`, `GB/s`, `test*`, `C++`, `2026-05-08`."""
    found = _find_words(chunk)
    if not found:
        return
    if chunk.rstrip(_PUNCTUATION).endswith("*") and not _is_spaceless(found[-1]):
        yield Term(" ".join(found[-_MAX_PHRASE:]), prefix=True)
        return
    if len(found) == 1:
        yield from _word_terms(found[0])
    else:
        yield from _compound_terms(chunk.rstrip(_PUNCTUATION), found)
    yield from map(Term, _signed_names(chunk))


def _phrase_terms(phrase: str) -> Iterator[Term]:
    """The term of a quoted phrase; each word of a spaceless script in it is a phrase of its own."""
    found = _find_words(phrase)
    if not any(map(_is_spaceless, found)):
        if found:
            yield Term(" ".join(found[:_MAX_PHRASE]))
        return
    for word in found:
        pieces = list(_word_terms(word))
        yield (
            Term(" ".join(piece.text for piece in pieces))
            if _is_spaceless(word) and pieces[1:]
            else pieces[0]
        )


def _all_terms(query: str) -> Iterator[Term]:
    # Halves of surrogate pairs cannot be bound, and composed text is what most words are indexed as.
    text = normalize("NFC", query[:_MAX_QUERY].encode("utf-8", "ignore").decode("utf-8"))
    for phrase in _QUOTED.findall(text):
        yield from _phrase_terms(phrase)
    for place, chunk in enumerate(_QUOTED.sub(" ", text).split()):
        if place and chunk.strip(_PUNCTUATION) == "May":  # the month, where `may` is a stop word
            yield Term("May")
        else:
            yield from _chunk_terms(chunk)


def query_terms(query: str) -> list[Term]:
    """What a query looks for, in its order: at most `MAX_TERMS`, none twice.

    Any text is a query. Stop words count only where nothing else is left.
    """
    unique: dict[tuple[str, bool], Term] = {}
    for term in _all_terms(query):
        unique.setdefault((term.text.lower(), term.prefix), term)
    telling = [term for term in unique.values() if not term.stop]
    return (telling or list(unique.values()))[:MAX_TERMS]


def expression(terms: Iterable[Term]) -> str | None:
    """The FTS5 expression that finds any of the terms; `None` for no terms."""
    return " OR ".join(term.expression for term in terms) or None


def match_expression(query: str) -> str | None:
    """The FTS5 expression of a person's query; `None` when nothing in it can be searched for."""
    return expression(query_terms(query))
