"""The forms in which names, kinds and predicates are compared."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import FAMILIES

from graphmem.names import exact, folded, kind_key, name_keys, predicate_key, words

names = st.one_of(
    st.sampled_from([name for family in FAMILIES for name in family]),
    st.text(max_size=12),
    st.text(alphabet="aBCß-_/ .+#0\u0301\u0345İıſK ǅﬁ\u3000\u1e9e²", max_size=12),
)


@given(names)
def test_every_form_is_a_fixpoint_of_itself(name: str) -> None:
    for form in (exact, folded, words, predicate_key):
        assert form(form(name)) == form(name), form.__name__


@given(names)
def test_a_coarser_form_does_not_see_a_finer_one(name: str) -> None:
    assert folded(exact(name)) == folded(name)
    assert words(exact(name)) == words(name)
    assert folded(words(name)) == words(name)


@given(names)
def test_canonically_equal_texts_are_one_name(name: str) -> None:
    assert exact(normalize("NFD", name)) == exact(name)
    assert folded(normalize("NFD", name)) == folded(name)
    assert folded(normalize("NFKC", name)) == folded(name)


@given(names.map(exact))
def test_a_stored_name_is_found_under_each_of_its_forms(name: str) -> None:
    keys = dict(reversed(name_keys(name)))

    for step, form in enumerate((name, folded(name), words(name)), start=1):
        assert keys[form] <= step


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C", "C++"),
        ("C", "C#"),
        (".NET", "NET"),
        ("Net", ".NET"),
        ("a.b", "ab"),
        ("x2", "x 2"),
        ("café", "cafe"),
    ],
)
def test_signs_and_accents_keep_names_apart(one: str, other: str) -> None:
    assert words(one) != words(other)


@pytest.mark.parametrize(
    "spelled",
    ["auth service", "AuthService", "auth_service", "auth-service", "auth/service", "Auth  Service", "AUTH_SERVICE",
     "ａuth service", "__auth__service"],
)  # fmt: skip
def test_spellings_of_the_same_words(spelled: str) -> None:
    assert words(spelled) == "auth service"


@pytest.mark.parametrize(
    ("name", "cut"),
    [("HTTPServer", "http server"), ("getUserById", "get user by id"), ("IPv6", "i pv6"), ("utf8Text", "utf8text"),
     ("ÄrgerÜber", "ärger über"), ("OAuth2", "o auth2"), ("iOS", "i os"), ("K8sPod", "k8s pod"), ("-_/", "-_/")],
)  # fmt: skip
def test_humps_are_cut_before_capitals_that_start_a_word(name: str, cut: str) -> None:
    """Before a capital after a small letter, or one that starts `Ab` after capitals; not at digits."""
    assert words(name) == cut


@pytest.mark.parametrize("kind", [None, "unknown", "Unknown", "UN-KNOWN", "ｕｎｋｎｏｗｎ"])
def test_unknown_is_the_absence_of_a_kind(kind: str | None) -> None:
    assert kind_key(kind) == ""


@pytest.mark.parametrize("kind", ["service account", "ServiceAccount", "SERVICE_ACCOUNT", "service-account"])
def test_kinds_are_blind_to_case_and_separators(kind: str) -> None:
    assert kind_key(kind) == "serviceaccount"


def test_predicates_are_blind_to_case_and_separators() -> None:
    assert (
        predicate_key("DEPENDS_ON")
        == predicate_key("depends on")
        == predicate_key("dependsOn")
        == "dependson"
    )
    assert predicate_key("--") == "--"


@given(st.one_of(st.none(), names))
def test_a_kind_key_is_its_own_key(kind: str | None) -> None:
    assert kind_key(kind_key(kind)) == kind_key(kind)
