"""Records over MCP are those of the record format, also in the forms that the schema does not show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_client import RECORDS, Conversation, connected, fill, serving

FAR = "01KJ5J3QG0ABCDEFGHJKMNPQRS"
NOBODY = "01KJ5J3QG0ABCDEFGHJKMNPQRT"


@pytest.fixture
def client(store_path: Path) -> Iterator[Conversation]:
    """A client of the small store, which has an entity of another scope as well."""
    far = {"type": "entity", "name": "Far", "kind": "place", "id": FAR, "scope": "project:other"}
    with connected(serving(fill(store_path, [*RECORDS, far]))) as opened:
        yield opened


def _stored(client: Conversation, record: Any) -> Any:
    """An item as it is after one record was remembered."""
    (row,) = client.call("remember", records=[record])["records"]
    assert row["status"] == "created", row
    return client.call("inspect", id=row["id"], type=row["type"], scope="*")


@pytest.mark.parametrize(
    "about",
    [
        [{"name": "Mercury", "kind": "planet"}], [{"id": "planet"}], {"id": "planet"}, "planet",
        '[{"name": "Mercury", "kind": "planet"}]', [{"name": "Mercury", "kind": "planet", "scope": "global"}],
    ],
)  # fmt: skip
def test_a_reference_may_be_an_object(client: Conversation, about: Any) -> None:
    held = _stored(client, {"content": "It is hot.", "about": about, "mentions": [{"name": "AuthService"}]})

    assert [one["id"] for one in held["about"]] == ["planet"]
    assert [one["id"] for one in held["mentions"]] == ["auth"]


def test_ends_of_relations_may_be_objects(client: Conversation) -> None:
    record = {"type": "relation", "subject": {"id": "project"}, "predicate": "named_after",
              "object": {"name": "Mercury", "kind": "planet"}}  # fmt: skip
    held = _stored(client, record)
    again = client.call(
        "relate", subject={"name": "Mercury"}, subject_kind="project", predicate="named_after",
        object={"id": "planet"},
    )  # fmt: skip

    assert (held["subject"]["id"], held["object"]["id"]) == ("project", "planet")
    assert (again["status"], again["id"]) == ("unchanged", held["id"])


@pytest.mark.parametrize(
    "record",
    [
        ["AuthService", "calls", "PostgresDB"],
        ["AuthService", "calls", {"id": "pg"}],
        {"subject": "AuthService", "predicate": "calls", "object": "PostgresDB"},
        '{"subject": "AuthService", "predicate": "calls", "object": "PostgresDB"}',
    ],
)
def test_a_short_triple_is_a_relation(client: Conversation, record: Any) -> None:
    held = _stored(client, record)

    assert (held["subject"]["id"], held["predicate"], held["object"]["id"]) == ("auth", "calls", "pg")


@pytest.mark.parametrize("bad", [["A", "b"], [], ["A", "b", "C", "d"], ["A", None, "C"]])
def test_a_list_that_is_no_triple_is_rejected_alone(client: Conversation, bad: list[Any]) -> None:
    told = client.call("remember", records=[bad, {"content": "A good one."}])

    assert [row["status"] for row in told["records"]] == ["rejected", "created"]


def test_a_record_may_have_its_own_scope(client: Conversation) -> None:
    assert _stored(client, {"content": "Theirs.", "scope": "project:other"})["scopes"] == ["project:other"]
    entity = {"type": "entity", "name": "Near Far", "kind": "place", "scope": "project:other"}
    assert _stored(client, entity)["scope"] == "project:other"
    relation = {"type": "relation", "subject": FAR, "predicate": "near", "object": "Near Far",
                "scope": "project:other"}  # fmt: skip
    assert _stored(client, relation)["subject"]["name"] == "Far"


def test_a_scope_that_is_none_costs_its_record_alone(client: Conversation) -> None:
    told = client.call("remember", records=[{"content": "x", "scope": "nonsense"}, {"content": "y"}])

    assert [row["status"] for row in told["records"]] == ["rejected", "created"]
    assert "[bad-scope]" in told["records"][0]["problems"][0]


def test_all_keys_that_people_write_are_taken(client: Conversation) -> None:
    held = _stored(client, {
        "id": "mine", "content": "x", "title": "T", "importance": 0.5, "created_at": "2026-01-01",
        "updated_at": "2026-01-02", "valid_at": "2026-01-01", "invalid_at": "2027-01-01",
        "expired_at": "2027-01-02", "state": "active", "source": {"uri": "notes.md", "position": 3},
    })  # fmt: skip

    assert (held["id"], held["title"]) == ("mine", "T")
    assert held["source"] == {"uri": "notes.md", "position": 3}
    assert held["expired_at"].startswith("2027-01-02")


def test_ids_and_times_may_be_numbers(client: Conversation) -> None:
    held = _stored(client, {"id": 17, "content": "x", "valid_at": 1_767_225_600})

    assert (held["id"], held["valid_at"]) == ("17", "2026-01-01T00:00:00.000Z")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"content": "x", "about": [{"nam": "A"}]}, "there is no argument 'nam' in 'records'[0].about[0]"),
        ({"content": "x", "about": [5]}, "'records'[0].about[0] is 5, not a text"),
        ({"content": "x", "source": {"position": 1}}, "'uri' is missing in 'records'[0].source"),
        ("text", "'records'[0] is \"text\", not an object"),
    ],
)
def test_what_no_record_can_have_is_refused(client: Conversation, record: Any, message: str) -> None:
    error = client.refused("remember", records=[record])

    assert (error["code"], error["message"]) == ("usage", message)


# ---- ids ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("id_", "why"), [(FAR, "is an entity of another scope"), (NOBODY, "no entity has the id")]
)
def test_what_looks_like_an_id_is_never_made_a_name(client: Conversation, id_: str, why: str) -> None:
    before = client.call("stats", scope="*")["entities"]
    error = client.refused("relate", subject=id_, predicate="calls", object="PostgresDB")
    told = client.call("remember", records=[{"content": "x", "about": [id_]}, {"content": "y"}])

    assert error["code"] == "nothing-usable"
    assert why in error["message"]
    assert "by name, or by an id" in error["hint"]
    assert [row["status"] for row in told["records"]] == ["rejected", "created"]
    assert client.call("stats", scope="*")["entities"] == before


def test_an_entity_whose_name_has_the_form_of_an_id_is_found_by_it(client: Conversation) -> None:
    client.call("remember", records=[{"type": "entity", "name": NOBODY, "kind": "lot"}])
    told = client.call("relate", subject=NOBODY, predicate="calls", object="PostgresDB")

    assert client.call("inspect", id=told["id"], type="relation")["subject"]["name"] == NOBODY
