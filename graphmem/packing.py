"""Compressed files with a label: zstd, and before it a frame that other programs skip, which says what it is.

`zstd -d` gives what is in such a file; the label is for us.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

MAGIC: Final = b"\x28\xb5\x2f\xfd"
"""How zstd begins."""

_LABEL_MAGIC: Final = b"\x53\x2a\x4d\x18"  # one of the sixteen frames that are skipped
_MAX_LABEL: Final = 1 << 20
_LEVEL: Final = 3
_BLOCK: Final = 1 << 20
_SLICE: Final = 4096  # zstd can expand 32,000-fold, so this bounds what one step can yield


class DamagedError(Exception):
    """The compressed data is not whole."""


def pack(source: BinaryIO, target: BinaryIO, label: dict[str, Any]) -> None:
    """Writes a label and, compressed, all that the source holds from here on."""
    data = json.dumps(label, ensure_ascii=False, sort_keys=True).encode()
    target.write(_LABEL_MAGIC + struct.pack("<I", len(data)) + data)
    press = _compressor()
    while block := source.read(_BLOCK):
        target.write(press.compress(block))
    target.write(press.flush())


def read_label(source: BinaryIO) -> dict[str, Any] | None:
    """The label at the place where the source stands, which is read; `None` where there is none.

    Raises `DamagedError` for one that cannot be read.
    """
    start = source.read(8)
    if start[:4] != _LABEL_MAGIC:
        source.seek(-len(start), 1)
        return None
    size = struct.unpack("<I", start[4:])[0] if len(start) == 8 else 0
    data = source.read(size) if size <= _MAX_LABEL else b""
    try:
        label = json.loads(data)
    except ValueError:
        label = None
    if not isinstance(label, dict):
        raise DamagedError("its label cannot be read")
    return label


def unpack(source: BinaryIO) -> Iterator[bytes]:
    """What is compressed from where the source stands to its end, block by block.

    Raises `DamagedError` where it is damaged or ends too early.
    """
    make, error = _decompressor()
    decoder: Any = None
    try:
        while block := source.read(_SLICE):
            while block:
                if decoder is None or decoder.eof:
                    decoder = make()
                yield decoder.decompress(block)
                block = decoder.unused_data if decoder.eof else b""
    except error as problem:
        raise DamagedError(str(problem)) from problem
    if decoder is None or not decoder.eof:
        raise DamagedError("it ends too early")


def _compressor() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd

        options = {
            zstd.CompressionParameter.compression_level: _LEVEL,
            zstd.CompressionParameter.checksum_flag: 1,
        }
        return zstd.ZstdCompressor(options=options)
    import zstandard

    return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compressobj()


def _decompressor() -> tuple[Callable[[], Any], type[Exception]]:
    """What makes a decompressor of one frame, and the error it raises for damage."""
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.ZstdDecompressor, zstd.ZstdError
    import zstandard

    return lambda: zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError
