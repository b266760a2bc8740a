"""From a path to text: an input as a stream of UTF-8 bytes, whatever its compression or encoding.

`discover` finds the inputs, `open_input` opens one, `lines` cuts it. Everything streams, so that a
decompression bomb costs time and not memory. Offsets count from 0 in the stream as an importer sees
it: decompressed, without byte-order mark, and in UTF-8 where the input was in another encoding.
"""

from __future__ import annotations

import codecs
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from graphmem.errors import UsageError
from graphmem.findings import Finding, finding
from graphmem.records import Place
from graphmem.walk import Discovery, Found, discover

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["HEAD_SIZE", "SIZE_LIMIT", "Discovery", "Found", "Input", "discover", "lines", "open_input"]

HEAD_SIZE: Final = 64 * 1024
"""How many bytes `Input.head` gives unless told, enough to recognise any format."""
SIZE_LIMIT: Final = 32 * 1024 * 1024
"""The greatest size in bytes of one line, record or document that importers read as a whole."""

_BLOCK: Final = 256 * 1024
_ZSTD_SLICE: Final = 256  # zstd can expand 32,000-fold, so this bounds what one step can yield
_MARKS: Final = "graphmem-mark"
_UTF8_BOM: Final = codecs.BOM_UTF8

_Blocks = Iterator[bytes]
_Report = Callable[[Finding], None]


class Input:
    """One opened input. Use it as a context manager.

    `stream` gives the text as UTF-8 bytes; where the input is UTF-8 already, bytes that are not pass
    through for the importer to report, and a byte that another encoding cannot decode becomes 0xFF,
    which is never UTF-8. What went wrong below the text stands in `findings` once the stream has ended.
    """

    def __init__(self, found: Found, encoding: str | None = None) -> None:
        self.found = found
        self.findings: list[Finding] = []
        self.compression: str | None = None
        """`gzip`, `zstd` or `None`."""
        self.encoding: str | None = None
        """The encoding the input was decoded from, `None` for UTF-8."""
        self._wished = _codec(encoding)
        self._file: BinaryIO | None = None
        self._hash = sha256()
        self._held_cr = False
        self._raw = _BlockStream(self._blocks())
        self.stream: BinaryIO = cast("BinaryIO", io.BufferedReader(self._raw, _BLOCK))

    @property
    def complete(self) -> bool:
        """Whether nothing went wrong so far in opening, reading and decompressing."""
        return not self.findings

    @property
    def digest(self) -> str:
        """SHA-256 in hex of the text (UTF-8, without byte-order mark, CR LF as LF).

        What was not read yet is read for it.
        """
        while self.stream.read(_BLOCK):
            pass
        final = self._hash.copy()
        final.update(b"\r" if self._held_cr else b"")
        return final.hexdigest()

    def head(self, size: int = HEAD_SIZE) -> bytes:
        """The first bytes of the stream, without consuming them; call it before reading."""
        return self._raw.ahead(size)

    def __enter__(self) -> Input:
        """The input itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file; standard input stays open."""
        if self._file is not None and self.found.path is not None:
            self._file.close()

    # ---- from the file to the text -------------------------------------------------------------------

    def _blocks(self) -> _Blocks:
        yield from self._hashed(self._text(self._decompressed(self._guarded())))

    def _report(self, rule: str, message: str, offset: int = -1) -> None:
        place = Place(0, 0, offset)
        self.findings.append(finding(rule, message, file=self.found.label, place=place))

    def _guarded(self) -> _Blocks:
        """The bytes of the file; a failure ends them with a finding."""
        done = 0
        try:
            self._file = _opened(self.found)
            read: Callable[[int], bytes] = getattr(self._file, "read1", self._file.read)
            while block := read(_BLOCK):
                done += len(block)
                yield block
        except OSError as error:
            self._report("file-unreadable", f"cannot be read: {error.strerror or error}", done or -1)

    def _decompressed(self, blocks: _Blocks) -> _Blocks:
        start, blocks = _ahead(blocks, 4)
        if start[:2] == b"\x1f\x8b":
            self.compression = "gzip"
            return self._unpacked(blocks, _gunzip, zlib.error)
        if start == b"\x28\xb5\x2f\xfd" or (start[1:] == b"\x2a\x4d\x18" and 0x50 <= start[0] <= 0x5F):
            self.compression = "zstd"
            frames, error = _zstd()
            return self._unpacked(blocks, frames, error)
        return blocks

    def _unpacked(
        self, blocks: _Blocks, unpack: Callable[[_Blocks], Iterator[bytes | None]], error: type[Exception]
    ) -> _Blocks:
        """Decompressed blocks; damage and a missing end are findings after what could be read."""
        done = 0
        whole = True
        try:
            for piece in unpack(blocks):
                whole = piece is None
                if piece:
                    done += len(piece)
                    yield piece
        except error as problem:
            self._report("damaged-compression", f"the {self.compression} data is damaged: {problem}", done)
            return
        if not whole and self.complete:
            self._report("truncated-input", f"the {self.compression} data ends too early", done)

    def _text(self, blocks: _Blocks) -> _Blocks:
        """The blocks as UTF-8 without byte-order mark; a mark in the input beats `--encoding`."""
        start, blocks = _ahead(blocks, 4)
        self.encoding = _unicode_encoding(start) or (None if start.startswith(_UTF8_BOM) else self._wished)
        if self.encoding is not None:
            blocks = _transcoded(blocks, self.encoding)
        start, blocks = _ahead(blocks, len(_UTF8_BOM))
        if start.startswith(_UTF8_BOM):
            blocks = chain((next(blocks)[len(_UTF8_BOM) :],), blocks)
        return filter(None, blocks)

    def _hashed(self, blocks: _Blocks) -> _Blocks:
        """The blocks unchanged, while the digest of their text with LF line ends is computed."""
        for block in blocks:
            text = b"\r" + block if self._held_cr else block
            self._held_cr = text.endswith(b"\r")
            if b"\r" in text:
                text = text.removesuffix(b"\r").replace(b"\r\n", b"\n")
            self._hash.update(text)
            yield block


def open_input(found: Found, encoding: str | None = None) -> Input:
    """The input, ready to be read. Nothing is opened before the first byte is asked for.

    An unreadable or damaged file is a finding in `Input.findings`. Raises `UsageError` when `encoding`
    is not the name of a text encoding.
    """
    return Input(found, encoding)


def lines(stream: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """The lines as (number from 1, byte offset, content without LF or CR LF), cut at LF only.

    A line longer than `SIZE_LIMIT` comes in pieces of that length, each with the number of the line.
    """
    number, offset = 1, 0
    readline = stream.readline
    while line := readline(SIZE_LIMIT):
        if line.endswith(b"\n"):
            yield number, offset, line[:-2] if line.endswith(b"\r\n") else line[:-1]
            number += 1
        else:
            yield number, offset, line
        offset += len(line)


class _BlockStream(io.RawIOBase):
    """Blocks of bytes as a raw stream, with a look ahead."""

    def __init__(self, blocks: _Blocks) -> None:
        self._source = blocks
        self._block = b""
        self._at = 0

    def ahead(self, size: int) -> bytes:
        """The first `size` bytes, or all there are, without consuming them."""
        start, self._source = _ahead(chain((self._block[self._at :],), self._source), size)
        self._block, self._at = b"", 0
        return start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        while self._at >= len(self._block):
            self._at = 0
            self._block = next(self._source, b"")
            if not self._block:
                return 0
        size = min(len(view), len(self._block) - self._at)
        view[:size] = self._block[self._at : self._at + size]
        self._at += size
        return size


def _ahead(blocks: _Blocks, size: int) -> tuple[bytes, _Blocks]:
    """The first `size` bytes, or all there are, and the same blocks again from the start."""
    taken = b""
    for block in blocks:
        taken += block
        if len(taken) >= size:
            break
    return taken[:size], chain((taken,), blocks) if taken else iter(())


def _opened(found: Found) -> BinaryIO:
    if found.path is not None:
        return found.path.open("rb", buffering=0)
    if sys.stdin is None:
        raise OSError("there is no standard input")
    return cast("BinaryIO", sys.stdin.buffer)


# ---- compression: generators that yield pieces, and `None` at the end of each complete part ----------


def _gunzip(blocks: _Blocks) -> Iterator[bytes | None]:
    decoder = zlib.decompressobj(31)
    ended = False
    for block in blocks:
        data = block
        while True:
            if ended:
                data = data.lstrip(b"\0")  # members may be followed by padding
                if not data:
                    break
                decoder, ended = zlib.decompressobj(31), False
            piece = decoder.decompress(data, _BLOCK)
            yield piece
            if decoder.eof:
                yield None
                data, ended = decoder.unused_data, True
                continue
            data = decoder.unconsumed_tail
            if not data and len(piece) < _BLOCK:
                break


def _zstd() -> tuple[Callable[[_Blocks], Iterator[bytes | None]], type[Exception]]:
    """A decompressor of zstd frames and the error it raises for damage."""
    make: Callable[[], Any]
    error: type[Exception]
    if sys.version_info >= (3, 14):
        from compression import zstd

        make, error = zstd.ZstdDecompressor, zstd.ZstdError
    else:
        import zstandard

        make, error = lambda: zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError
    return lambda blocks: _unzstd(blocks, make), error


def _unzstd(blocks: _Blocks, make: Callable[[], Any]) -> Iterator[bytes | None]:
    decoder = make()
    for block in blocks:
        for at in range(0, len(block), _ZSTD_SLICE):
            data = block[at : at + _ZSTD_SLICE]
            while data:
                if decoder.eof:
                    decoder = make()
                yield decoder.decompress(data)
                data = b""
                if decoder.eof:
                    yield None
                    data = decoder.unused_data


# ---- encodings ---------------------------------------------------------------------------------------


def _codec(encoding: str | None) -> str | None:
    """The encoding to decode from, `None` for UTF-8; `UsageError` when it is no text encoding."""
    if encoding is None:
        return None
    try:
        "a".encode(encoding)  # also refuses codecs that are not of text, such as base64
        name = codecs.lookup(encoding).name
    except (LookupError, ValueError):
        hint = "for example utf-8, utf-16, cp1252, gbk or shift_jis"
        raise UsageError(f"there is no text encoding '{encoding}'", hint) from None
    return None if name in ("utf-8", "utf-8-sig") else encoding


def _unicode_encoding(start: bytes) -> str | None:
    """UTF-32 or UTF-16 as its byte-order mark says, or as the zeros around two ASCII characters do."""
    if start in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        return "utf-32"
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    zeros = [byte == 0 for byte in start]
    if zeros == [False, True, False, True]:
        return "utf-16-le"
    return "utf-16-be" if zeros == [True, False, True, False] else None


def _mark(error: UnicodeError) -> tuple[str | bytes, int]:
    """What stands for text that cannot be decoded: a byte that is never UTF-8."""
    if isinstance(error, UnicodeDecodeError):
        return "\udcff", error.end
    if isinstance(error, UnicodeEncodeError):
        return b"\xff", error.end
    raise error


codecs.register_error(_MARKS, _mark)


def _transcoded(blocks: _Blocks, encoding: str) -> _Blocks:
    decoder = codecs.getincrementaldecoder(encoding)(_MARKS)
    for block in blocks:
        yield decoder.decode(block).encode("utf-8", _MARKS)
    yield decoder.decode(b"", True).encode("utf-8", _MARKS)
