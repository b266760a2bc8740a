"""The cascade for people, compared with a reference in plain Python, and what it suggests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_store import SmallStore

from graphmem.errors import EntityNotFound
from graphmem.lookup import Answer, look_up
from graphmem.resolve import Step
from graphmem.store.connection import connect
from graphmem.store.lookup import Names

HERE = ("repo:/a", "global")


# ---- the reference ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """An entity of a generated store."""

    name: str
    kind: str | None
    scope: str
    aliases: tuple[str, ...]
    archived: bool
    updated_at: str

    @property
    def kind_form(self) -> str:
        form = re.sub(r"[\s_\-/]+", "", folded(self.kind or ""))
        return "" if form == "unknown" else form

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.scope, self.name, self.kind_form


def exact(name: str) -> str:
    return " ".join(normalize("NFC", name).split())


def folded(name: str) -> str:
    while True:
        again = " ".join(normalize("NFKC", normalize("NFKC", name).casefold()).split())
        if again == name:
            return name
        name = again


def cut_once(name: str) -> str:
    """The words of a name: cut at separators and humps, then folded."""
    pieces = []
    for word in re.split(r"[\s_\-/]+", normalize("NFKC", name)):
        piece = ""
        for at, sign in enumerate(word):
            before, after = word[at - 1 : at], word[at + 1 : at + 2]
            if piece and sign.isupper() and (before.islower() or (before.isupper() and after.islower())):
                pieces.append(piece)
                piece = ""
            piece += sign
        pieces.append(piece)
    return " ".join(filter(None, map(folded, pieces)))


def in_words(name: str) -> str:
    form = cut_once(name)
    while form != cut_once(form):
        form = cut_once(form)
    return form or folded(name)


Expected = tuple[Step, tuple[str, str, str] | None, frozenset[tuple[str, str, str]]]


def expected(known: Sequence[Known], name: str, kind: str | None, visible: Sequence[str]) -> Expected:
    """The step, the entity and the others that the table of the cascade gives."""
    name = exact(name)
    here = [one for one in known if one.scope in visible]
    for step, form in ((Step.EXACT, str), (Step.CASE_INSENSITIVE, folded), (Step.FULL_TEXT, in_words)):
        found = [
            (one, alias)
            for one in here
            for alias, spelled in ((False, one.name), *((True, other) for other in one.aliases))
            if form(exact(spelled)) == form(name)
        ]
        winners = winning(found, kind, visible[0])
        if winners:
            return step, *newest_first(winners)
    wanted = set(in_words(name).split(" ")) - {""}
    found = [
        (one, alias)
        for one in here
        for alias, spelled in ((False, one.name), *((True, other) for other in one.aliases))
        if wanted and wanted <= set(in_words(exact(spelled)).split(" "))
    ]
    winners = winning(found, kind, visible[0])
    return (
        (Step.FULL_TEXT, *newest_first(winners)) if len(winners) == 1 else (Step.NOTHING, None, frozenset())
    )


def winning(found: list[tuple[Known, bool]], kind: str | None, own: str) -> list[Known]:
    if kind is not None:
        form = Known("", kind, "", (), False, "").kind_form
        of_kind = [pair for pair in found if pair[0].kind_form == form]
        found = of_kind if form or of_kind else found
    found = [pair for pair in found if not pair[0].archived] or found
    for scope_first, alias in ((True, False), (True, True), (False, False), (False, True)):
        best = [one for one, by in found if (one.scope == own) == scope_first and by == alias]
        if best:
            return list({one.identity: one for one in best}.values())
    return []


def newest_first(winners: list[Known]) -> tuple[tuple[str, str, str], frozenset[tuple[str, str, str]]]:
    best = max(winners, key=lambda one: (one.updated_at, one.kind_form or "unknown", one.name))
    return best.identity, frozenset(one.identity for one in winners if one is not best)


# ---- stores ------------------------------------------------------------------------------------------

FAMILIES = (
    (
        "AuthService",
        "auth service",
        "auth_service",
        "AUTH-SERVICE",
        "authService",
        "auth/Service v2",
        "Service",
    ),
    ("C", "C++", "C#", "c", ".NET", "Net", "net", "C ++"),
    ("café", "cafe\u0301", "Café", "CAFÉ", "cafe", "Café Noir"),
    ("Straße", "STRASSE", "straße", "ﬁn", "FIN", "ＦＩＮ"),
    ("😀", "😀 Team", "Team", "你好", "你好 世界", "世界"),
    ("HTTPServer2Go", "http server2go", "HTTP Server2 Go", "XYZAb", "xyz ab", "Ab"),
    ("a\x00b", "A\x00B", "a\x01b", "a b", "A  B", "a\tb"),
    ("--", "_", "/ - /", "-", " -a- "),
    ("İstanbul", "istanbul", "ǅ", "ǆ", "ΑΣ", "ας", "ασ"),
)
NAMES = st.one_of(
    st.sampled_from(FAMILIES).flatmap(st.sampled_from),
    st.sampled_from([name for family in FAMILIES for name in family]),
    st.text(st.sampled_from("aAbB_- /+#.é\u0301İß1\x00😀二"), min_size=1, max_size=6),
).filter(lambda name: exact(name) != "")
KINDS = ("service", "Ser vice", "lib", "unknown", None)
TIMES = ("2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z")


@st.composite
def stores(draw: st.DrawFn) -> list[Known]:
    """Entities of few names, several kinds and three scopes, with times that collide."""
    family = draw(st.sampled_from(FAMILIES))
    names = st.one_of(st.sampled_from(family), NAMES).filter(lambda name: exact(name) != "")
    made: dict[tuple[str, str, str], Known] = {}
    for _ in range(draw(st.integers(1, 7))):
        name = exact(draw(names))
        kind = draw(st.sampled_from(KINDS))
        aliases = tuple(exact(alias) for alias in draw(st.lists(names, max_size=2)))
        one = Known(
            name, None if kind == "unknown" else kind, draw(st.sampled_from((*HERE, "repo:/b"))),
            tuple(alias for alias in aliases if alias != name), draw(st.integers(0, 4)) == 0,
            draw(st.sampled_from(TIMES)),
        )  # fmt: skip
        made.setdefault(one.identity, one)
    return list(made.values())


def fill(known: Sequence[Known], path: Path | str = ":memory:") -> SmallStore:
    store = SmallStore(path)
    for one in known:
        pk = store.entity(
            one.name, one.kind, one.scope, aliases=one.aliases, state="archived" if one.archived else "active"
        )
        store.db.execute("UPDATE entity SET updated_at = ? WHERE pk = ?", (one.updated_at, pk))
    return store


def told(answer: Answer) -> Expected:
    entity = answer.entity.candidate.identity if answer.entity else None
    return answer.step, entity, frozenset(one.candidate.identity for one in answer.others)


@given(stores(), NAMES, st.one_of(st.none(), st.sampled_from(KINDS)), st.sampled_from((HERE, ("global",))))
def test_the_cascade_is_that_of_the_reference(
    known: list[Known], name: str, kind: str | None, visible: tuple[str, ...]
) -> None:
    asked = [name, *(one.name for one in known), *(alias for one in known for alias in one.aliases)]
    names = Names(fill(known).db, visible)

    for each in asked:
        assert told(look_up(names, each, kind)) == expected(known, each, kind, visible), each


@given(stores(), NAMES)
def test_the_answer_does_not_depend_on_the_order_of_storing(known: list[Known], name: str) -> None:
    answers = {
        (*told(answer), answer.suggestions)
        for order in (known, known[::-1])
        for answer in [look_up(Names(fill(order).db, HERE), name)]
    }

    assert len(answers) == 1


@given(stores(), NAMES)
def test_nothing_of_another_scope_is_found_or_suggested(known: list[Known], name: str) -> None:
    hidden = {one.identity for one in known if one.scope not in HERE}

    answer = look_up(Names(fill(known).db, HERE), name)

    seen = {one.candidate.identity for look in answer.looks for one in look.found}
    assert not seen & hidden
    assert set(answer.suggestions) <= {one.name for one in known if one.scope in HERE}


@given(stores(), NAMES)
def test_suggestions_are_few_and_in_order_of_closeness(known: list[Known], name: str) -> None:
    answer = look_up(Names(fill(known).db, HERE), name)

    assert len(answer.suggestions) <= 5
    assert len(set(answer.suggestions)) == len(answer.suggestions)
    assert (answer.entity is None) == (answer.step is Step.NOTHING)
    if answer.entity is not None:
        assert answer.suggestions == ()


# ---- what is suggested -------------------------------------------------------------------------------


@pytest.fixture
def store() -> SmallStore:
    return SmallStore()


def suggested(store: SmallStore, name: str, kind: str | None = None) -> tuple[str, ...]:
    return look_up(Names(store.db, HERE), name, kind).suggestions


@pytest.mark.parametrize(
    "typed",
    ["authservise", "AuthServce", "AuthSservice", "uAthService", "uthService", "xuthService", "Auth Servise"],
)
def test_a_typing_error_is_recognised(store: SmallStore, typed: str) -> None:
    for name in ("AuthService", "PostgresDB", "Billing", "Author", "Server"):
        store.entity(name)

    assert suggested(store, typed)[0] == "AuthService"


@pytest.mark.parametrize(
    ("typed", "meant"), [("C+", "C++"), ("Goo", "Go"), ("日木語", "日本語"), ("кafé", "Café")]
)
def test_a_typing_error_in_a_short_name_is_recognised(store: SmallStore, typed: str, meant: str) -> None:
    for name in ("C++", "Go", "日本語", "Café"):
        store.entity(name)

    assert suggested(store, typed)[0] == meant


def test_the_closest_name_comes_first_and_equal_ones_by_name(store: SmallStore) -> None:
    for name in ("service-b", "service-a", "services", "service-a-and-more", "unrelated"):
        store.entity(name)

    assert suggested(store, "servic") == ("service-a", "service-b", "services")


def test_entities_with_all_the_words_are_suggested_where_there_are_several(store: SmallStore) -> None:
    for name in ("Auth Gateway of the bank", "AuthService", "Author", "the long tale of one auth"):
        store.entity(name)

    assert suggested(store, "auth") == (
        "Author", "AuthService", "Auth Gateway of the bank", "the long tale of one auth",
    )  # fmt: skip


def test_an_alias_is_suggested_by_the_name_of_its_entity(store: SmallStore) -> None:
    store.entity("Kubernetes", aliases=["k8s cluster"])

    assert suggested(store, "k8s clutser") == ("Kubernetes",)


def test_at_most_five_are_suggested(store: SmallStore) -> None:
    for number in range(30):
        store.entity(f"component{number:02}")

    assert suggested(store, "component") == tuple(f"component{number:02}" for number in range(5))


def test_a_kind_that_the_name_does_not_have_is_told(store: SmallStore) -> None:
    store.entity("Mercury", "planet")
    store.entity("Mercury", "metal")

    answer = look_up(Names(store.db, HERE), "mercury", "god")

    assert (answer.entity, answer.kinds) == (None, ("metal", "planet"))
    with pytest.raises(EntityNotFound, match="no entity of kind 'god' is called 'mercury' here") as raised:
        answer.found  # noqa: B018
    assert raised.value.hint == "of that name there are the kinds 'metal', 'planet'"


# ---- what people may rely on -------------------------------------------------------------------------


def test_all_words_of_one_entity_are_enough(store: SmallStore) -> None:
    store.entity("Billing Service of the bank", id_="billing")
    store.entity("AuthService")

    answer = look_up(Names(store.db, HERE), "bank billing")

    assert answer.step is Step.FULL_TEXT
    assert answer.found.id == "billing"


def test_an_active_entity_comes_before_an_archived_one_of_the_name(store: SmallStore) -> None:
    store.entity("Mercury", "planet", state="archived", id_="gone")
    store.entity("Mercury", "metal", id_="here")
    store.entity("Venus", state="archived", id_="venus")
    names = Names(store.db, HERE)

    assert look_up(names, "Mercury").found.id == "here"
    assert look_up(names, "Mercury", "planet").found.id == "gone"
    assert look_up(names, "venus").found.state == "archived"
    assert look_up(names, "venus", archived=False).entity is None
    assert look_up(names, "venus", archived=False).suggestions == ()


def test_a_former_name_leads_to_the_entity_also_with_its_former_kind(store: SmallStore) -> None:
    pk = store.entity("New", "service", id_="new")
    store.db.execute("INSERT INTO redirect SELECT scope, 'Old', 'Team', 'team', pk FROM entity")
    store.db.execute("INSERT INTO name_key VALUES ('Old', 1, 1, ?)", (pk,))
    names = Names(store.db, HERE)

    for kind in (None, "team", "service"):
        answer = look_up(names, "Old", kind)
        assert (answer.found.id, answer.others) == ("new", ())
    assert look_up(names, "Old", "lib").entity is None


def test_stubs_are_found(store: SmallStore) -> None:
    pk = store.entity("Later")
    store.db.execute("UPDATE entity SET stub = 1 WHERE pk = ?", (pk,))

    assert look_up(Names(store.db, HERE), "later").found.stub is True


def test_a_name_is_looked_up_on_a_reading_connection(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    fill([Known("AuthService", None, "global", (), False, TIMES[0])], path).db.close()

    db = connect(path, write=False)

    assert look_up(Names(db, HERE), "auth service").found.candidate.name == "AuthService"
    assert look_up(Names(db, HERE), "authservise").suggestions == ("AuthService",)
    db.close()


@pytest.mark.parametrize("name", ["", " \t", "\udcff", "%", "'", '"', "*", "a" * 5000, "\x00", "x " * 300])
def test_any_text_is_a_name(store: SmallStore, name: str) -> None:
    store.entity("AuthService")

    assert look_up(Names(store.db, HERE), name).entity is None


def test_every_look_is_told(store: SmallStore) -> None:
    store.entity("AuthService", "service", id_="auth")

    looks = [look.as_dict() for look in look_up(Names(store.db, HERE), "auth service").looks]

    assert [(look["step"], look["looked_for"], look["decided"]) for look in looks] == [
        ("exact", "auth service", False),
        ("case-insensitive", "auth service", False),
        ("full text", "auth service", True),
    ]
    assert looks[2]["found"] == [
        {
            "id": "auth", "name": "AuthService", "kind": "service", "scope": "global", "by": "name",
            "stub": False, "state": "active", "updated_at": "2026-06-01T00:00:00.000Z",
        }
    ]  # fmt: skip
