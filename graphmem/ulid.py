"""ULIDs whose random part is a digest, so that the same item made at the same instant has the same id.

The first 48 bits are the time in milliseconds, as in the ULID specification; the other 80 are taken from
a BLAKE2b digest of the item's natural key instead of a random source. Ids stay unique, sort by time, and
the outcome of an import does not depend on the order of its records.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Final

_DIGITS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32
_PAIRS: Final = tuple(high + low for high in _DIGITS for low in _DIGITS)


@lru_cache(maxsize=64)
def _time_part(time: str) -> str:
    number = round(datetime.fromisoformat(time).timestamp() * 1000)
    return "".join(_PAIRS[(number >> shift) & 1023] for shift in (40, 30, 20, 10, 0))


def seed(*key: str) -> bytes:
    """The 16-byte digest of a natural key, told apart part by part."""
    text = "".join([f"{len(part)}:{part}" for part in key])
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def from_seed(time: str, key: bytes) -> str:
    """The ULID of a natural key's digest at a canonical time."""
    n = int.from_bytes(key[:10])
    p = _PAIRS
    return (
        f"{_time_part(time)}{p[n >> 70]}{p[n >> 60 & 1023]}{p[n >> 50 & 1023]}{p[n >> 40 & 1023]}"
        f"{p[n >> 30 & 1023]}{p[n >> 20 & 1023]}{p[n >> 10 & 1023]}{p[n & 1023]}"
    )


def mint(time: str, *key: str) -> str:
    """The ULID of a natural key at a canonical time."""
    return from_seed(time, seed(*key))


def memory_key(content: str, about: Iterable[str], scopes: Iterable[str]) -> bytes:
    """The natural key of a memory without an id: content, ids of the entities it is about, scopes.

    Entity ids outlive renaming and the completion of a kind, and so does the key.
    """
    return seed("memory", content, *sorted(about), "", *sorted(scopes))
