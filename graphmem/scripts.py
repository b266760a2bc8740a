"""Words with characters beyond ASCII, cut and folded where the tokenizer of the full-text index does not.

Text written without spaces becomes its overlapping pairs of characters. A word that folds further than
the tokenizer folds (`Straße`, `Łódź`, full-width letters, pointed Hebrew and Arabic) gets its folded
form. Loaded only where such a word is met: its regular expressions take a while to compile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from unicodedata import category, normalize

from graphmem.names import words

# Marks that belong to their word although neither Python nor the tokenizer counts them as letters.
_MARKS: Final = (
    r"\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640"
    r"\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u0900-\u0963\u0970-\u0dff\u0e31-\u0e3a"
    r"\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064"
    r"\u1067-\u106d\u1071-\u1074\u1082-\u108d\u17b4-\u17d3\u1a55-\u1a7f\u1ab0-\u1aff\u1dc0-\u1dff"
    r"\u200c\u200d\u3099\u309a"
)
# Han, kana, hangul, bopomofo, Thai, Lao, Myanmar, Khmer and their relatives.
_SPACELESS: Final = (
    r"\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u2e80-\u2fdf"
    r"\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3040-\u309a\u309d-\u30fa\u30fc-\u30ff\u3105-\u312f"
    r"\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f"
    r"\uac00-\ud7af\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_MAX_IDENTIFIER: Final = 128
_WORD = re.compile(rf"(?:[^\W_]|[{_MARKS}])*[^\W_](?:[^\W_]|[{_MARKS}])*")
_SPACELESS_CHAR = re.compile(f"[{_SPACELESS}]")
_RUNS = re.compile(f"([{_SPACELESS}]+)|([^{_SPACELESS}]+)")

# Letters that the tokenizer keeps apart from their plain forms, and points that it cuts words at.
_GREEK: Final = (*range(0x0370, 0x0400), *range(0x1F00, 0x2000))
_PLAIN: Final = {
    **{code: normalize("NFD", chr(code))[0] for code in _GREEK},
    **{ord(letter): plain for letter, plain in zip("łøđðħŧıĸ", "loddhtik", strict=True)},
    **{ord(letter): plain for letter, plain in (("æ", "ae"), ("œ", "oe"), ("þ", "th"))},
    **dict.fromkeys(range(0x0591, 0x05C8)),
    **dict.fromkeys(range(0x0610, 0x061B)),
    **dict.fromkeys(range(0x064B, 0x0660)),
    **dict.fromkeys((0x0640, 0x0670, 0x200C, 0x200D)),
}
# Vowel signs of spaceless scripts become private-use letters, which the tokenizer does not cut at.
_PRIVATE_USE: Final = 0xE000
_KEPT_MARKS: Final = {
    code: chr(_PRIVATE_USE + code)
    for block in (range(0x0E00, 0x0F00), range(0x1000, 0x10A0), range(0x1780, 0x1800))
    for code in block
    if category(chr(code)) in ("Mn", "Mc")
}


def find_words(text: str) -> list[str]:
    """The runs of letters, digits and the marks that belong to them."""
    return _WORD.findall(text)


def is_spaceless(word: str) -> bool:
    """Whether the word holds characters of a script that is written without spaces."""
    return _SPACELESS_CHAR.search(word) is not None


def fold(word: str) -> str:
    """The word without case, compatibility forms, pointing and the letters' strokes and ligatures."""
    return normalize("NFKC", normalize("NFKC", word).casefold()).translate(_PLAIN)


def runs(word: str) -> list[tuple[str, str]]:
    """The folded word in runs, each as (spaceless, other) of which one is empty."""
    return _RUNS.findall(fold(word))


def pairs(run: str) -> list[str]:
    """The overlapping pairs of the run, then its last character, so that a prefix finds any character."""
    return [run[i : i + 2].translate(_KEPT_MARKS) for i in range(len(run))]


def extra_forms(word: str) -> Iterator[str]:
    """What the word adds to `parts`: pairs, glued words of other scripts, folded form, pieces at humps."""
    folded = fold(word)
    if is_spaceless(folded):
        for spaceless, other in _RUNS.findall(folded):
            if spaceless:
                yield from pairs(spaceless)
            else:
                yield other
        return
    if folded != word.lower():
        yield folded
    if len(word) <= _MAX_IDENTIFIER and not (word.islower() or word.isupper() or word[1:].islower()):
        cut = words(word)
        if " " in cut:
            yield cut
