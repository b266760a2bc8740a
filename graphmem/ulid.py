"""ULIDs whose random part is a digest, so that the same item made at the same instant has the same id.

The first 48 bits are the time in milliseconds, as in the ULID specification; the other 80 are taken from
a BLAKE2b digest of the item's natural key instead of a random source. Ids stay unique, sort by time, and
the outcome of an import does not depend on the order of its records.
"""

from __future__ import annotations

from base64 import b32encode
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Final

_TO_CROCKFORD: Final = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)
# 26 digits of 5 bits are 130 bits; with 30 bits of zeros in front they are whole bytes.
_PADDING: Final = b"\0\0\0\0"


@lru_cache(maxsize=64)
def _milliseconds(time: str) -> bytes:
    return round(datetime.fromisoformat(time).timestamp() * 1000).to_bytes(6, "big", signed=False)


def mint(time: str, *key: str) -> str:
    """The ULID of a natural key at a canonical time."""
    digest = blake2b("\0".join(key).encode("utf-8", "surrogatepass"), digest_size=10).digest()
    return b32encode(_PADDING + _milliseconds(time) + digest)[6:].translate(_TO_CROCKFORD).decode()
