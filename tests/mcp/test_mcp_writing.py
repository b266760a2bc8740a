"""The writing tools: what they store, what they say of it, and what they never touch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hash_encoder import HashEncoder
from mcp_client import ERAS, Conversation, connected, fill, serving

from graphmem.embed import Availability
from graphmem.errors import ModelUnavailable
from graphmem.store import Store


@pytest.fixture(params=ERAS)
def client(request: pytest.FixtureRequest, store_path: Path) -> Iterator[Conversation]:
    """A client of the small store, in both eras of the protocol."""
    encoder = HashEncoder()
    with connected(serving(fill(store_path, encoder=encoder), encoder=encoder), request.param) as opened:
        yield opened


def _remembered(client: Conversation, *records: dict[str, Any], **given: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = client.call("remember", records=list(records), **given)["records"]
    return rows


def _without_vectors(path: Path) -> int:
    with Store(path) as store:
        return sum(
            int(store.db.execute(f"SELECT count(*) FROM {table} WHERE pk NOT IN (SELECT item FROM chunk WHERE kind = {kind})").get)
            for kind, table in enumerate(("entity", "memory", "relation"))
        )  # fmt: skip


# ---- remember and relate --------------------------------------------------------------------------


def test_a_text_alone_is_a_memory(client: Conversation) -> None:
    (row,) = _remembered(client, {"content": "Deploys happen on Tuesdays."})

    assert (row["status"], row["type"]) == ("created", "memory")
    assert client.call("inspect", id=row["id"])["content"] == "Deploys happen on Tuesdays."


def test_memories_entities_and_relations_are_stored_together_with_their_vectors(
    client: Conversation, store_path: Path
) -> None:
    told = client.call("remember", records=[
        {"content": "Billing runs at night.", "about": ["Billing"], "memory_type": "fact", "tags": ["ops"],
         "source": "runbook.md", "importance": 0.5, "valid_at": "2026-01-01", "title": "When"},
        {"type": "entity", "name": "Billing", "kind": "service", "description": "Sends invoices."},
        {"type": "relation", "subject": "Billing", "predicate": "uses", "object": "PostgresDB", "weight": 0.3},
    ])  # fmt: skip

    assert told["counts"] == {"created": 3, "merged": 0, "unchanged": 0, "rejected": 0}
    assert _without_vectors(store_path) == 0
    with Store(store_path) as store:
        batches = {one for (one,) in store.db.execute("SELECT batch FROM memory UNION SELECT batch FROM relation "
                                                      "UNION SELECT batch FROM entity")}  # fmt: skip
    assert len(batches) == 2, "the import's, and one for all three"
    memory = client.call("inspect", id=told["records"][0]["id"])
    assert (memory["title"], memory["importance"], memory["source"]) == ("When", 0.5, "runbook.md")
    assert memory["about"][0]["name"] == "Billing"


def test_what_is_known_is_not_stored_again(client: Conversation) -> None:
    record = {"content": "Deploys happen on Tuesdays.", "about": ["AuthService"]}
    (first,) = _remembered(client, record)
    (again,) = _remembered(client, record | {"about": ["auth service"]})

    assert (again["status"], again["id"]) == ("unchanged", first["id"])


def test_bad_records_are_told_and_the_others_stored(client: Conversation) -> None:
    told = client.call("remember", records=[{"content": "A good one."}, {"type": "memory"}])

    assert told["counts"] == {"created": 1, "merged": 0, "unchanged": 0, "rejected": 1}
    assert told["records"][1]["problems"] == ["memory without 'content' [missing-key]"]
    assert "rejected records were not stored, the others were" in told["notes"]


def test_a_call_that_stores_nothing_fails(client: Conversation) -> None:
    error = client.refused("remember", records=[{"type": "memory"}, {"type": "entity"}])

    assert error["code"] == "nothing-usable"
    assert "memory without 'content'" in error["message"]


def test_a_key_that_no_record_has_is_refused_with_the_nearest(client: Conversation) -> None:
    error = client.refused("remember", records=[{"content": "x"}, {"contnet": "y"}])

    assert error["message"] == "there is no argument 'contnet' in 'records'[1]"
    assert error["suggestions"] == ["content"]


def test_a_name_of_several_is_refused_and_its_id_taken(client: Conversation) -> None:
    error = client.refused("remember", records=[{"content": "It is hot.", "about": ["Mercury"]}])
    (row,) = _remembered(client, {"content": "It is hot.", "about": ["planet"]})

    assert "Mercury" in error["message"]
    assert client.call("inspect", id=row["id"])["about"][0]["id"] == "planet"


def test_a_missing_end_becomes_a_stub_and_that_is_said(client: Conversation) -> None:
    told = client.call(
        "relate", subject="AuthService", predicate="calls", object="Mailer", object_kind="service"
    )

    assert told["status"] == "created"
    assert told["notes"][0].startswith("names that nothing declares became stubs")
    assert client.call("inspect", id="Mailer")["kind"] == "service"


def test_relate_takes_ids_and_kinds(client: Conversation) -> None:
    by_kind = client.call(
        "relate", subject="Mercury", subject_kind="project", predicate="named_after", object="planet",
        fact="The project has its name from the planet.", weight=1,
    )  # fmt: skip
    relation = client.call("inspect", id=by_kind["id"], type="relation")
    again = client.call("relate", subject="project", predicate="named_after", object="planet")

    assert (relation["subject"]["id"], relation["object"]["id"]) == ("project", "planet")
    assert relation["fact"] == "The project has its name from the planet."
    assert (again["status"], again["id"]) == ("unchanged", by_kind["id"])


def test_a_write_goes_to_the_scope_of_the_server_unless_told_otherwise(store_path: Path) -> None:
    with connected(serving(fill(store_path), scope="project:shop")) as client:
        (own,) = _remembered(client, {"content": "Ours."})
        (everywhere,) = _remembered(client, {"content": "Everybody's."}, scope="global")

        assert client.call("inspect", id=own["id"])["scopes"] == ["project:shop"]
        assert client.call("inspect", id=everywhere["id"])["scopes"] == ["global"]


def test_remember_makes_the_store(store_path: Path) -> None:
    with connected(serving(store_path)) as client:
        _remembered(client, {"content": "The first."})
        assert client.call("recall", query="first")["found"] is True

    assert store_path.exists()


def test_a_model_that_fails_stores_nothing(store_path: Path) -> None:
    def broken() -> Availability:
        raise ModelUnavailable("the model is gone", "bring it back")

    with connected(serving(store_path, find=broken)) as client:
        error = client.refused("remember", records=[{"content": "x"}])

    assert (error["code"], error["message"], error["hint"]) == (
        "model-unavailable",
        "the model is gone",
        "bring it back",
    )
    assert not store_path.exists()


def test_a_read_only_server_writes_nothing(store_path: Path) -> None:
    fill(store_path)
    before = store_path.read_bytes()
    with connected(serving(store_path, read_only=True)) as client:
        for tool in ("remember", "relate", "update", "forget"):
            assert client.refused(tool)["code"] == "store-read-only"
        client.call("recall", query="tokens")

    assert store_path.read_bytes() == before


def test_the_log_says_which_client_asked(client: Conversation, store_path: Path) -> None:
    _remembered(client, {"content": "x"})
    client.call("update", id="tokens", set={"importance": 1})
    with Store(store_path) as store:
        actors = {actor for (actor,) in store.db.execute("SELECT actor FROM batch WHERE pk > 1")}

    (actor,) = actors
    assert actor.startswith("mcp: ")


# ---- update ---------------------------------------------------------------------------------------


def test_update_changes_a_memory_and_encodes_only_what_changed(store_path: Path) -> None:
    encoder = HashEncoder()
    with connected(serving(fill(store_path, encoder=HashEncoder()), encoder=encoder)) as client:
        client.call("stats")
        told = client.call("update", id="tokens", set={"importance": 0.7, "tags": ["auth"]})
        assert [text for text in encoder.encoded if text != "ready"] == []
        assert (told["status"], told["fields"]) == ("updated", ["importance", "tags"])
        client.call("update", id="tokens", set={"content": "Tokens expire after two hours."})
        (encoded,) = [text for text in encoder.encoded if text != "ready"]
        assert encoded.endswith("Tokens expire after two hours.")
        assert client.call("recall", query="two hours")["memories"][0]["id"] == "tokens"

    assert _without_vectors(store_path) == 0


def test_update_changes_an_entity_and_its_old_name_leads_to_it(client: Conversation) -> None:
    client.call("update", id="AuthService", set={
        "name": "LoginService", "kind": "component", "description": "Logs in.", "aliases": ["sso"],
        "properties": {"tier": 1},
    })  # fmt: skip
    told = client.call("inspect", id="LoginService")

    assert (told["id"], told["kind"], told["description"], told["properties"]) == (
        "auth", "component", "Logs in.", {"tier": 1}
    )  # fmt: skip
    assert client.call("inspect", id="AuthService")["id"] == "auth"


def test_update_changes_a_relation(client: Conversation) -> None:
    client.call(
        "update", id="auth-pg", set={"weight": 0.9, "predicate": "stores_in", "properties": {"since": 2020}}
    )
    told = client.call("inspect", id="auth-pg", type="relation")

    assert (told["weight"], told["predicate"], told["properties"]) == (0.9, "stores_in", {"since": 2020})


def test_update_clears_fields_and_properties(client: Conversation) -> None:
    client.call("update", id="auth", set={"properties": {"a": 1, "b": 2}})
    client.call("update", id="auth", clear=["description", "a"])
    told = client.call("inspect", id="auth")

    assert "description" not in told
    assert told["properties"] == {"b": 2}


def test_update_merges_an_entity_into_another(client: Conversation) -> None:
    told = client.call("update", id="AuthService", merge_into="PostgresDB")

    assert (told["id"], told["status"]) == ("pg", "merged")
    assert told["counts"]["loops_dropped"] == 1
    assert client.call("inspect", id="AuthService")["id"] == "pg"
    assert client.call("inspect", id="pg")["memories"]["total"] == 2


def test_namesakes_are_merged_by_their_ids(client: Conversation) -> None:
    assert client.refused("update", id="Mercury", merge_into="planet")["code"] == "ambiguous-name"
    assert client.call("update", id="project", merge_into="planet")["id"] == "planet"


def test_update_replaces_the_memories_of_an_entity(client: Conversation) -> None:
    (kept,) = _remembered(client, {"content": "Keep me.", "about": ["AuthService"]})
    told = client.call("update", id="AuthService", keep=[kept["id"]], memories=["One new.", "Another new."])

    assert (told["status"], told["counts"]["archived"], len(told["added"])) == ("replaced", 1, 2)
    held = client.call("inspect", id="AuthService")["memories"]["items"]
    assert sorted(one["content"] for one in held) == ["Another new.", "Keep me.", "One new."]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"id": "tokens"}, "usage"),
        ({"id": "tokens", "set": {"weight": 1}}, "usage"),
        ({"id": "tokens", "set": {"wait": 1}}, "usage"),
        ({"id": "auth-pg", "set": {"weight": 7}}, "usage"),
        ({"id": "auth", "set": {"name": "x"}, "merge_into": "pg"}, "usage"),
        ({"id": "nobody at all", "set": {"name": "x"}}, "entity-not-found"),
        ({"id": "secret", "set": {"content": "x"}}, "entity-not-found"),
        ({"id": "auth", "keep": ["backup"]}, "usage"),
        ({"id": "auth", "merge_into": "auth"}, "edit-refused"),
    ],
)
def test_an_update_that_cannot_be_is_refused(client: Conversation, given: dict[str, Any], code: str) -> None:
    assert client.refused("update", **given)["code"] == code


# ---- forget ---------------------------------------------------------------------------------------


def test_forget_archives_a_memory(client: Conversation) -> None:
    told = client.call("forget", ids=["tokens"])

    assert told["archived"]["memory"] == 1
    assert all(one["id"] != "tokens" for one in client.call("recall", query="tokens expire")["memories"])
    assert client.call("inspect", id="tokens")["state"] == "archived"


def test_forget_says_what_goes_with_an_entity_and_does_it_only_when_meant(client: Conversation) -> None:
    rehearsed = client.call("forget", ids=["AuthService"], dry_run=True)
    assert client.call("stats")["relations"] == 2
    done = client.call("forget", ids=["AuthService"])

    assert rehearsed["archived"] == done["archived"] == {"entity": 1, "memory": 1, "relation": 2}
    assert client.call("stats")["relations"] == 0


def test_forget_takes_only_the_type_that_is_meant(client: Conversation) -> None:
    assert client.refused("forget", ids=["tokens"], type="relation")["code"] == "item-not-found"
    assert client.call("forget", ids=["auth-pg"], type="relation")["archived"]["relation"] == 1


def test_nothing_of_another_scope_is_forgotten(client: Conversation) -> None:
    assert client.refused("forget", ids=["secret"])["code"] == "entity-not-found"
    assert client.refused("forget", ids=["tokens", "secret"])["code"] == "entity-not-found"
    assert client.call("inspect", id="tokens")["state"] == "active"


def test_changing_a_store_that_is_not_there_makes_none(store_path: Path) -> None:
    with connected(serving(store_path)) as client:
        for tool, given in (("update", {"id": "x", "set": {"name": "y"}}), ("forget", {"ids": ["x"]})):
            assert client.refused(tool, **given)["hint"].startswith("nothing is stored yet")

    assert not store_path.exists()


def test_a_store_without_vectors_stays_one_and_that_is_said(store_path: Path) -> None:
    with connected(serving(fill(store_path), encoder=HashEncoder())) as client:
        told = client.call("remember", records=[{"content": "Another one."}])

    assert told["notes"] == ["stored without vectors, as what the store holds; 'gmem reembed' makes them"]
    with Store(store_path) as store:
        assert store.encoder() is None
