"""What a batch changed, read back from what was kept of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from editing import RECORDS
from hash_encoder import HashEncoder
from importing import take_records

from graphmem import log
from graphmem.edit.update import Update, update
from graphmem.store import Store


def _last(store: Store, limit: int = 50) -> dict[str, Any]:
    return log.batch(store, log.batches(store, 1)["batches"][0]["id"], limit)


def test_several_segments_of_a_batch_are_told_as_one_change(
    store: Store, tmp_path: Path, encoder: HashEncoder
) -> None:
    """An atomic run commits in chunks, each of which may change the same item."""
    changed = [
        RECORDS[0] | {"description": text, "aliases": [text], "updated_at": f"2027-01-0{day}T00:00:00Z"}
        for day, text in enumerate(("first", "second", "third"), start=1)
    ]
    take_records(store, tmp_path, changed, name="more", encoder=encoder, atomic=True, batch_size=1)
    (one,) = _last(store)["changed"]
    fields = {field["field"]: field for field in one["fields"]}

    assert fields["description"]["before"] == "Signs people in."
    assert fields["description"]["after"] == "third"
    assert fields["aliases"] == {"field": "aliases", "removed": [], "added": ["first", "second", "third"]}


def test_what_came_and_went_again_within_a_batch_is_not_told(store: Store, encoder: HashEncoder) -> None:
    update(
        store,
        "m1",
        Update(set={"about": ["auth"]}, add={"tags": ["x"]}, remove={"tags": ["x"]}),
        None,
        encoder=encoder,
    )

    assert log.batches(store, 5)["total"] == 1


def test_lists_are_bounded_and_say_so(store: Store, tmp_path: Path, encoder: HashEncoder) -> None:
    take_records(
        store, tmp_path, [one | {"properties": {"n": 1}} for one in RECORDS], name="more", encoder=encoder
    )
    short, whole = _last(store, 2), _last(store)

    assert (len(short["changed"]), short["truncated"], whole["truncated"]) == (2, True, False)
    assert (
        whole["totals"]["changed"] == short["totals"]["changed"] == {"entity": 4, "memory": 2, "relation": 1}
    )
    assert whole["records"] == 7


def test_a_relation_tells_its_ends_by_name(store: Store, encoder: HashEncoder) -> None:
    from graphmem.edit.identity import merge

    merge(store, "pg", "metal", None, encoder=encoder)
    by_id = {one["id"]: one for one in _last(store)["changed"]}

    assert {"field": "object", "before": "PostgresDB", "after": "Mercury"} in by_id["r1"]["fields"]
    assert by_id["r1"]["label"] == "AuthService depends_on Mercury"
