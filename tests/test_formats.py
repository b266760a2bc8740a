"""Picking the format of an input when a format of another package does not behave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmem import formats
from graphmem.errors import UnknownFormat

PLUGIN = """
class Fragile:
    name = "fragile"
    suffixes = (".frag",)

    def sniff(self, head, name):
        raise RuntimeError("no such luck")

    def read(self, stream, source):
        return iter(())
"""


@pytest.fixture
def _fragile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package with a format that fails on whatever it looks at."""
    (tmp_path / "fragile_format.py").write_text(PLUGIN, encoding="utf-8")
    info = tmp_path / "fragile_format-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fragile-format\nVersion: 1\n", "utf-8")
    (info / "entry_points.txt").write_text(
        "[graphmem.importers]\nfragile = fragile_format:Fragile\n", "utf-8"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    formats.importer_points.cache_clear()
    assert "fragile" in formats.importer_points()
    yield
    formats.importer_points.cache_clear()
    formats.importer.cache_clear()


@pytest.mark.usefixtures("_fragile")
def test_a_format_that_fails_on_an_input_does_not_keep_another_from_claiming_it() -> None:
    assert formats.pick(b'["A","knows","B"]\n', "x")[0].name == "jsonl"


@pytest.mark.usefixtures("_fragile")
def test_a_format_that_fails_on_an_input_that_nobody_claims_is_named() -> None:
    with pytest.raises(UnknownFormat) as caught:
        formats.pick(b"plain", "x.frag")
    assert caught.value.message == (
        "no format recognises this input: it is text that starts with 'plain'; "
        "the format 'fragile' failed on it: RuntimeError: no such luck"
    )
