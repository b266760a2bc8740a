"""Finding inputs, opening them whatever their compression and encoding, and cutting them into lines."""

from __future__ import annotations

import gzip
import io
import os
import random
import sys
import tempfile
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest

from graphmem.errors import InputUnreadable, UsageError
from graphmem.findings import Finding
from graphmem.ignore import Patterns
from graphmem.reading import SIZE_LIMIT, Found, Input, discover, lines, open_input
from graphmem.walk import known_suffixes

if sys.version_info >= (3, 14):
    from compression.zstd import compress as zstd_compress
else:
    import zstandard

    zstd_compress: Callable[[bytes], bytes] = zstandard.ZstdCompressor().compress

FORMATS = (".md", ".jsonl", ".jsonl.gz")
needs_links = pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")


def tree(root: Path, *paths: str) -> Path:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x", encoding="utf-8")
    return root


def names(*paths: Path | str, suffixes: Sequence[str] = FORMATS) -> list[str]:
    """The names of what is found, and the rules of what is wrong."""
    found = discover([str(path) for path in paths], suffixes)
    return [one.rule if isinstance(one, Finding) else one.name for one in found]


def opened(tmp_path: Path, data: bytes, encoding: str | None = None) -> Input:
    path = tmp_path / "input"
    path.write_bytes(data)
    return open_input(Found(path, None, "input", "input"), encoding)


def text_of(source: Input) -> bytes:
    with source:
        return source.stream.read()


# ---- finding inputs ------------------------------------------------------------------------------


def test_a_folder_gives_its_files_of_known_formats_in_a_fixed_order(tmp_path: Path) -> None:
    tree(tmp_path, "b.md", "a.md", "z/c.md", "m/d.JSONL", "m/e.jsonl.gz", "picture.png")

    found = discover([str(tmp_path)], FORMATS)
    inputs = [one for one in found if isinstance(one, Found)]

    assert [one.name for one in inputs] == ["a.md", "b.md", "m/d.JSONL", "m/e.jsonl.gz", "z/c.md"]
    assert {one.root for one in inputs} == {tmp_path}
    assert inputs[2].path == tmp_path / "m" / "d.JSONL"
    assert inputs[2].label == (tmp_path / "m" / "d.JSONL").as_posix()
    assert found.other_files == 1


def test_hidden_and_ignored_things_are_left_out_and_counted(tmp_path: Path) -> None:
    tree(
        tmp_path, "a.md", ".obsidian/x.md", ".trash/old.md", "node_modules/p/readme.md", ".git/y.md",
        ".graphmem/z.md", "logseq/bak/a.md", "logseq/.recycle/b.md", "logseq/pages/c.md", ".hidden.md",
        "a.md~", "#a.md#", ".a.md.swp", "a.md.bak",
    )  # fmt: skip

    found = discover([str(tmp_path)], FORMATS)

    assert [one.name for one in found if isinstance(one, Found)] == ["a.md", "logseq/pages/c.md"]
    assert (found.ignored_folders, found.ignored_files, found.other_files) == (7, 5, 0)


def test_the_ignore_files_of_each_folder_hold_below_it(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "drafts/b.md", "keep/drafts/c.md", "sub/a.md", "sub/secret.md", "sub/in/secret.md")
    (tmp_path / ".gitignore").write_text("/drafts/\r\n", encoding="utf-8")
    (tmp_path / "sub" / ".gmemignore").write_text("# ours\nsecret.md\n!in/secret.md\n", encoding="utf-8")

    assert names(tmp_path) == ["a.md", "keep/drafts/c.md", "sub/a.md", "sub/in/secret.md"]


def test_gmemignore_can_take_back_what_is_hidden_or_what_git_ignores(tmp_path: Path) -> None:
    tree(tmp_path, ".notes/a.md", "private/b.md", ".other/c.md", ".git/d.md")
    (tmp_path / ".gitignore").write_text("private\n!.other\n", encoding="utf-8")
    (tmp_path / ".gmemignore").write_text("!.notes/\n!private/\n!.git\n", encoding="utf-8")

    assert names(tmp_path) == [".notes/a.md", "private/b.md"]


def test_a_file_given_by_name_is_taken_whatever_it_is_called(tmp_path: Path) -> None:
    tree(tmp_path, ".hidden.txt", "node_modules/a.md")
    (tmp_path / ".gitignore").write_text("*\n", encoding="utf-8")

    given = [tmp_path / ".hidden.txt", tmp_path / "node_modules" / "a.md"]

    assert names(*given) == [".hidden.txt", "a.md"]


def test_a_hidden_folder_given_by_name_is_walked(tmp_path: Path) -> None:
    tree(tmp_path, ".claude/a.md", ".claude/.cache/b.md")

    assert names(tmp_path / ".claude") == ["a.md"]


def test_each_real_file_is_found_once(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "sub/b.md")

    assert names(tmp_path / "sub", tmp_path, tmp_path / "a.md", tmp_path) == ["b.md", "a.md"]


def test_globs_are_expanded_like_the_shell_does(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "b.txt", "sub/c.md", "sub/in/d.md", ".x/e.md", "node_modules/f.md", "sub2/g.md")

    assert names(tmp_path / "*.md") == ["a.md"]
    assert names(tmp_path / "**/*.md") == ["a.md", "c.md", "d.md", "g.md"]
    assert names(tmp_path / "sub*/[a-c].md") == ["c.md"]
    assert names(tmp_path / "sub?") == ["g.md"]
    assert names(tmp_path / "node_modules/*.md") == ["f.md"]
    assert names(tmp_path / ".x/*.md") == ["e.md"]
    assert names(tmp_path / "b.*") == ["b.txt"]


def test_a_relative_glob_starts_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, "a.md", "sub/b.md")
    monkeypatch.chdir(tmp_path)

    assert [one.label for one in discover(["*.md", "sub/*"], FORMATS) if isinstance(one, Found)] == [
        "a.md",
        "sub/b.md",
    ]
    assert names(".") == ["a.md", "sub/b.md"]


def test_a_file_whose_name_looks_like_a_glob_is_a_file(tmp_path: Path) -> None:
    tree(tmp_path, "notes [old].md", "notes o.md")

    assert names(tmp_path / "notes [old].md") == ["notes [old].md"]


@pytest.mark.parametrize(
    "given", ["missing.md", "missing/", "a.md/b.md", "*.nothing", "missing/**/*.md", "", "a\0b"]
)
def test_a_path_that_does_not_exist_is_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    tree(tmp_path, "a.md")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InputUnreadable) as raised:
        discover([given], FORMATS)

    assert raised.value.exit_status == 2


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"\xef\xbb\xbfhello\n")))

    (found,) = discover(["-", "-"], FORMATS)

    assert isinstance(found, Found)
    assert (found.path, found.name, found.label) == (None, "", "<stdin>")
    assert text_of(open_input(found)) == b"hello\n"


@needs_links
def test_a_link_loop_ends_and_no_file_is_found_twice(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "sub/b.md")
    (tmp_path / "sub" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "AA.md").symlink_to(tmp_path / "a.md")
    (tmp_path / "self.md").symlink_to(tmp_path / "self.md")

    assert names(tmp_path) == ["a.md", "sub/b.md", "self.md"]


@needs_links
def test_a_link_out_of_the_folder_is_reported_and_not_followed(tmp_path: Path) -> None:
    tree(tmp_path, "vault/a.md", "elsewhere/b.md", "vault-2/c.md")
    (tmp_path / "vault" / "out").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (tmp_path / "vault" / "c.md").symlink_to(tmp_path / "vault-2" / "c.md")
    (tmp_path / "vault" / "c.png").symlink_to(tmp_path / "vault-2" / "c.md")

    assert names(tmp_path / "vault") == ["a.md", "link-outside", "link-outside"]


@needs_links
def test_a_link_to_an_ignored_folder_inside_is_followed(tmp_path: Path) -> None:
    tree(tmp_path, ".store/x/a.md", "b.md")
    (tmp_path / "shown").symlink_to(tmp_path / ".store", target_is_directory=True)

    assert names(tmp_path) == ["b.md", "shown/x/a.md"]


def test_a_folder_that_vanishes_during_the_walk_is_an_error_and_not_silence(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "gone/b.md", "stays/c.md")
    found = discover([str(tmp_path)], FORMATS)

    first = next(found)
    (tmp_path / "gone" / "b.md").unlink()
    (tmp_path / "gone").rmdir()
    problem, last = list(found)

    assert isinstance(first, Found)
    assert isinstance(problem, Finding)
    assert (problem.rule, problem.severity.word) == ("file-unreadable", "error")
    assert problem.file == (tmp_path / "gone").as_posix()
    assert isinstance(last, Found)


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder that another user may read, while permissions bind this process even when root runs it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        user = os.geteuid()
        yield Path(folder)
        os.seteuid(user)


@pytest.mark.skipif(os.name == "nt", reason="permissions are POSIX")
def test_a_folder_without_permission_is_an_error_and_not_silence(unprivileged: Path) -> None:
    tree(unprivileged, "a.md", "closed/b.md", "closed.md")
    (unprivileged / "closed").chmod(0)
    (unprivileged / "closed.md").chmod(0)
    if os.geteuid() == 0:
        os.seteuid(65534)

    found = list(discover([str(unprivileged)], FORMATS))
    shut = open_input(Found(unprivileged / "closed.md", unprivileged, "closed.md", "closed.md"))

    assert [one.rule if isinstance(one, Finding) else one.name for one in found] == [
        "a.md",
        "closed.md",
        "file-unreadable",
    ]
    assert text_of(shut) == b""
    assert [one.rule for one in shut.findings] == ["file-unreadable"]


def test_without_suffixes_those_of_the_installed_formats_count() -> None:
    assert {".jsonl", ".jsonl.gz", ".yml.zst"} <= set(known_suffixes())


# ---- patterns of ignore files --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path", "ignored"),
    [
        ("a.md", "x/y/a.md", True),
        ("/a.md", "x/a.md", None),
        ("/a.md", "a.md", True),
        ("x/a.md", "y/x/a.md", None),
        ("x/*.md", "x/a.md", True),
        ("x/*.md", "x/y/a.md", None),
        ("**/a.md", "a.md", True),
        ("**/x/a.md", "w/x/a.md", True),
        ("x/**", "x/y/a.md", True),
        ("x/**", "x", None),
        ("x/**/a.md", "x/a.md", True),
        ("x/**/a.md", "x/y/z/a.md", True),
        ("a?.md", "ab.md", True),
        ("a?.md", "a/.md", None),
        ("[a-c].md", "b.md", True),
        ("[!a-c].md", "b.md", None),
        ("[!a-c].md", "d.md", True),
        ("[]-]x", "-x", True),
        ("[[:digit:]]*", "7x", True),
        ("[ab", "a", None),
        ("[z-a]", "z", None),
        (r"\#a", "#a", True),
        (r"\!a", "!a", True),
        ("#a", "#a", None),
        ("a  ", "a", True),
        (r"a\ ", "a ", True),
        ("!a", "a", False),
        ("", "", None),
        ("/", "a", None),
        ("A.md", "a.md", None if os.name != "nt" else True),
        ("ä*", "äb", True),
    ],
)
def test_a_pattern_means_what_it_means_to_git(pattern: str, path: str, ignored: bool | None) -> None:
    assert Patterns([pattern + "\n"]).ignores(path, is_folder=False) is ignored


def test_a_pattern_with_a_slash_at_its_end_matches_folders_only() -> None:
    assert Patterns(["a/"]).ignores("a", is_folder=True) is True
    assert Patterns(["a/"]).ignores("a", is_folder=False) is None


def test_the_last_pattern_that_matches_decides() -> None:
    patterns = Patterns(["*.md", "!keep.md", "k*"])

    assert patterns.ignores("keep.md", is_folder=False) is True
    assert Patterns(["*.md", "!keep.md"]).ignores("keep.md", is_folder=False) is False


# ---- opening -------------------------------------------------------------------------------------


def test_the_head_is_not_consumed(tmp_path: Path) -> None:
    with opened(tmp_path, b"\xef\xbb\xbf" + b"ab" * 500_000) as source:
        assert source.head(3) == b"aba"
        assert len(source.head()) == 65536
        assert source.stream.read() == b"ab" * 500_000


@pytest.mark.parametrize("compress", [gzip.compress, zstd_compress], ids=["gzip", "zstd"])
def test_compression_is_recognised_by_content(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    data = b"\xef\xbb\xbf" + random.Random(1).randbytes(700_000) + b"\n"

    source = opened(tmp_path, compress(data))

    assert text_of(source) == data[3:]
    assert source.complete
    assert source.compression in ("gzip", "zstd")


@pytest.mark.parametrize("compress", [gzip.compress, zstd_compress], ids=["gzip", "zstd"])
def test_parts_compressed_one_after_the_other_are_one_text(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    source = opened(tmp_path, compress(b"one\n") + compress(b"") + compress(b"two\n"))

    assert text_of(source) == b"one\ntwo\n"
    assert source.complete


def test_zeros_behind_gzip_data_are_padding(tmp_path: Path) -> None:
    source = opened(tmp_path, gzip.compress(b"one\n") + b"\0" * 700)

    assert text_of(source) == b"one\n"
    assert source.complete


@pytest.mark.parametrize("compress", [gzip.compress, zstd_compress], ids=["gzip", "zstd"])
def test_what_a_cut_compressed_file_still_holds_is_read_and_the_cut_reported(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    data = random.Random(2).randbytes(900_000)

    source = opened(tmp_path, compress(data)[:-100_000])
    text = text_of(source)

    assert data.startswith(text)
    assert len(text) > 500_000
    assert [(one.rule, one.place.offset) for one in source.findings] == [("truncated-input", len(text))]
    assert not source.complete


@pytest.mark.parametrize("compress", [gzip.compress, zstd_compress], ids=["gzip", "zstd"])
def test_damaged_compressed_data_is_an_error(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    damaged = bytearray(compress(b"some text that is long enough to be damaged in its middle " * 3))
    damaged[8:20] = b"\xff" * 12

    source = opened(tmp_path, bytes(damaged))
    text_of(source)

    assert [one.rule for one in source.findings] == ["damaged-compression"]


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("gzip", lambda: b"".join(_gzip_of_zeros(100))),
        ("zstd", lambda: zstd_compress(bytes(100_000_000))),
    ],
)
def test_a_decompression_bomb_is_streamed(tmp_path: Path, name: str, pack: Callable[[], bytes]) -> None:
    path = tmp_path / name
    path.write_bytes(pack())
    tracemalloc.start()
    try:
        with open_input(Found(path, None, name, name)) as source:
            size = 0
            while block := source.stream.read(1 << 20):
                size += len(block)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert size >= 100_000_000
    assert peak < 50_000_000


def _gzip_of_zeros(megabytes: int) -> list[bytes]:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = bytes(1_000_000)
    return [*(packer.compress(block) for _ in range(megabytes)), packer.flush()]


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be", "utf-32", "utf-16-le"])
def test_utf_16_and_utf_32_are_recognised(tmp_path: Path, codec: str) -> None:
    text = '{"name":"Zoë 😀"}\n' * 50_000
    bom = "\ufeff" if codec == "utf-16-be" else ""

    assert text_of(opened(tmp_path, (bom + text).encode(codec))) == text.encode()


def test_an_encoding_that_is_named_is_decoded(tmp_path: Path) -> None:
    source = opened(tmp_path, ("北京\r\n" * 100_000).encode("gbk"), "gbk")

    assert text_of(source) == ("北京\r\n" * 100_000).encode()
    assert source.encoding == "gbk"


def test_a_byte_order_mark_beats_the_encoding_that_is_named(tmp_path: Path) -> None:
    assert text_of(opened(tmp_path, "\ufeffä".encode(), "cp1252")) == "ä".encode()
    assert text_of(opened(tmp_path, "\ufeffä".encode("utf-16-le"), "cp1252")) == "ä".encode()


def test_what_a_named_encoding_cannot_decode_becomes_a_byte_that_is_no_text(tmp_path: Path) -> None:
    source = opened(tmp_path, b"a\x81b\nc\n", "cp1252")

    assert text_of(source) == b"a\xffb\nc\n"
    assert source.complete


def test_a_character_cut_at_the_end_of_a_named_encoding_is_marked(tmp_path: Path) -> None:
    assert text_of(opened(tmp_path, "aé".encode("utf-16")[:-1])) == b"a\xff"


def test_bytes_that_are_not_utf_8_pass_through(tmp_path: Path) -> None:
    assert text_of(opened(tmp_path, b"a\xc4\xe3\n", "utf-8")) == b"a\xc4\xe3\n"


@pytest.mark.parametrize("encoding", ["klingon", "base64", "rot13", ""])
def test_an_encoding_that_is_none_is_a_usage_error(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(UsageError):
        opened(tmp_path, b"x", encoding)


def test_the_digest_is_of_the_text_without_mark_and_with_plain_line_ends(tmp_path: Path) -> None:
    wanted = sha256("ä\nb\r\rc\n".encode()).hexdigest()
    plain = "ä\nb\r\rc\n".encode()
    for data in (
        plain,
        b"\xef\xbb\xbf" + plain,
        gzip.compress(plain),
        "\ufeffä\r\nb\r\rc\r\n".encode("utf-16-le"),
    ):
        source = opened(tmp_path, data)
        text_of(source)

        assert source.digest == wanted


def test_the_digest_does_not_depend_on_where_blocks_end(tmp_path: Path) -> None:
    text = b"\r\n" * 400_000 + b"\r"
    for shift in (0, 1):
        data = b"x" * shift + text
        with opened(tmp_path, data) as source:
            assert source.digest == sha256(data.replace(b"\r\n", b"\n")).hexdigest()


def test_a_file_that_cannot_be_opened_is_a_finding(tmp_path: Path) -> None:
    source = open_input(Found(tmp_path / "gone", None, "gone", "notes/gone"))

    assert text_of(source) == b""
    assert [(one.rule, one.file) for one in source.findings] == [("file-unreadable", "notes/gone")]
    assert not source.complete


# ---- lines ---------------------------------------------------------------------------------------


def test_lines_are_cut_at_line_feeds_only() -> None:
    text = "a\r\nb\u2028\u2029\x85c\x0b\x0c\rd\n\nlast".encode()

    cut = list(lines(io.BytesIO(text)))

    assert [line.decode() for _, _, line in cut] == ["a", "b\u2028\u2029\x85c\x0b\x0c\rd", "", "last"]
    assert [number for number, _, _ in cut] == [1, 2, 3, 4]
    assert [text[offset : offset + len(line)] for _, offset, line in cut] == [line for _, _, line in cut]


def test_a_line_beyond_the_limit_comes_in_pieces_of_one_number() -> None:
    cut = [
        (number, offset, len(line))
        for number, offset, line in lines(io.BytesIO(b"x" * (SIZE_LIMIT + 5) + b"\ny"))
    ]

    assert cut == [(1, 0, SIZE_LIMIT), (1, SIZE_LIMIT, 5), (2, SIZE_LIMIT + 6, 1)]
