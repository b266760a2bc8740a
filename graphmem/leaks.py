"""Whether a text seems to hold a secret: a private key, an access token, a password.

Only for a warning: what looks like one may be none, and a secret without a shape is not seen. It is asked
of every record of an import, so that ordinary text must cost nearly nothing: each shape has a few letters
that it cannot be without, and is looked for only where these are; none is looked for without a bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# By a sign or a few letters that each of the shapes has.
_DASHED: Final = (
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")),
    ("an access token", re.compile(r"\b(?:glpat-[\w-]{20}|xox[abprs]-[A-Za-z0-9-]{20})")),
    ("an API key", re.compile(r"\bsk-(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{20}")),
)
_UNDERLINED: Final = (
    ("an access token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{22}|npm_[A-Za-z0-9]{36})")),
    ("an API key", re.compile(r"\b[rs]k_live_[A-Za-z0-9]{16}")),
)
_AMAZON: Final = (("an AWS access key", re.compile(r"\bA[KS]IA[0-9A-Z]{16}\b")),)
_GOOGLE: Final = (("an API key", re.compile(r"\bAIza[\w-]{35}")),)
_WEB: Final = (("an access token", re.compile(r"\beyJ[\w-]{10,512}\.eyJ[\w-]{10,2048}\.[\w-]{10}")),)
# A value, and before it the sign that gives it to the name on its left.
_GIVEN: Final = re.compile(r"(?:=>?|:)\s{0,3}[\"'`]?([^\s\"'`,;=:<>(){}\[\]$%*]{6,128})")
_NAMES: Final = ("password", "passwd", "passphrase", "pwd", "secret", "api_key", "apikey", "api-key", "secret_key",
                 "access_token", "auth_token", "access_key", "token")  # fmt: skip
_BEFORE: Final = 24
_PLACEHOLDER: Final = re.compile(r"x{3}|example|changeme|your|placeholder|redacted|\.{3}|://", re.IGNORECASE)
_URL: Final = re.compile(
    r"[a-z][a-z0-9+.-]{1,20}://[^\s/:@<>{}$]{1,64}:([^\s/:@<>{}$*]{4,128})@", re.IGNORECASE
)


def likely_secret(text: str) -> str | None:
    """What secret a text seems to hold, in words that do not tell it; `None` for ordinary text."""
    if "-" in text and (what := _shaped(text, _DASHED)):
        return what
    if "_" in text and (what := _shaped(text, _UNDERLINED)):
        return what
    if ("AKIA" in text or "ASIA" in text) and (what := _shaped(text, _AMAZON)):
        return what
    if "AIza" in text and (what := _shaped(text, _GOOGLE)):
        return what
    if "eyJ" in text and (what := _shaped(text, _WEB)):
        return what
    return _given(text) if "=" in text or ":" in text else None


def _shaped(text: str, shapes: Iterable[tuple[str, re.Pattern[str]]]) -> str | None:
    return next((what for what, shape in shapes if shape.search(text)), None)


def _given(text: str) -> str | None:
    """A password or the like that is given to a name, or that stands in a URL."""
    for found in _GIVEN.finditer(text):
        before = text[max(0, found.start() - _BEFORE) : found.start()].rstrip(" \t\"'`*_").lower()
        if before.endswith(_NAMES) and _is_secret(found[1]):
            return "a password or token"
    if "@" in text and "://" in text:
        url = _URL.search(text)
        if url is not None and not _PLACEHOLDER.search(url[1]):
            return "a password in a URL"
    return None


def _is_secret(value: str) -> bool:
    """Whether a value is more than a word: it has a digit beside letters or signs, and is no placeholder."""
    has_digit = any(sign.isdigit() for sign in value)
    return has_digit and not value.replace(".", "").isdigit() and not _PLACEHOLDER.search(value)
