"""Secrets in texts: the usual shapes are seen, ordinary text is not taken for one, and none is repeated."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest
from command_line import Run
from conftest import write_records
from hypothesis import given
from hypothesis import strategies as st

from graphmem.leaks import likely_secret

A36 = "aB3" * 12
SECRETS = [
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----",
    "use AKIA" + "ABCDEFGH12345678 there",
    f"token ghp_{A36}",
    f"github_pat_{A36}",
    f"glpat-{A36}",
    f"OPENAI sk-{A36}",
    f"sk-proj-{A36}",
    "sk" + f"_live_{A36}",
    "AIza" + "b1" * 17 + "c",
    "xox" + f"b-123456789012-{A36}",
    f"eyJ{A36}.eyJ{A36}.{A36}",
    "password=hunter22",
    "DB_PASSWORD: 'tr0ub4dor&3'",
    'the api_key = "9f8e7d6c5b"',
    "`token`: `abc123def456`",
    "Secret: correct9horse",
    "postgres://app:s3cret-w0rd@db.internal/x",
]
ORDINARY = [
    "", "password", "the password is in the vault", "password: see the vault", "password=<your password>",
    "password=${DB_PASSWORD}", "token: str | None", "token = get_token(session, 3)", "secret=xxxxxxxx1",
    "api_key=YOUR_API_KEY_1", "meeting at 12:30, room: 4711-b", "https://example.org/a?b=c1d2e3f4g5",
    "sk-learn is a library", "task-management-for-large-teams", "snake_case_names_are_common_in_python_code1",
    "tokens: 128000", "secret santa: 2026-12-24 at noon", "AKIA", "the ASIA region",
    "postgres://user:password@host is an example.com url with your:example@host",
]  # fmt: skip


@pytest.mark.parametrize("text", SECRETS)
def test_the_usual_shapes_are_seen_wherever_they_stand(text: str) -> None:
    assert likely_secret(text)
    assert likely_secret(f"we use it so: {text}\nand then")


@pytest.mark.parametrize("text", ORDINARY[:-1])
def test_ordinary_text_is_not_taken_for_a_secret(text: str) -> None:
    assert likely_secret(text) is None


@given(st.text(max_size=300))
def test_any_text_can_be_asked(text: str) -> None:
    assert likely_secret(text) in (None, likely_secret(text))


def test_long_text_is_read_in_a_time_that_grows_with_its_length() -> None:
    chance = random.Random(1)
    for signs in ("=", ":", "a=", "password=", "sk-", "-----BEGIN ", "eyJ.", "://a:", string.printable):
        text = signs * 20_000 if len(signs) < 20 else "".join(chance.choices(signs, k=200_000))
        likely_secret(text)


def test_an_import_warns_and_does_not_repeat_the_secret(run: Run, tmp_path: Path) -> None:
    path = write_records(
        tmp_path / "in.jsonl",
        [
            {"type": "memory", "content": "fine"},
            {"type": "memory", "content": f"the token is ghp_{A36}"},
            {"type": "entity", "name": "DB", "description": "password=hunter22"},
            {"type": "relation", "subject": "a", "predicate": "b", "object": "c", "fact": "pwd: hunter22"},
        ],
    )
    done = run("import", path, "--scope", "global")

    assert done.status == 0
    told = [line for line in done.err.splitlines() if "[likely-secret]" in line]
    assert [line.split(": ", 1)[1] for line in told] == [
        "warning: this memory seems to hold an access token [likely-secret]",
        "warning: this entity seems to hold a password or token [likely-secret]",
        "warning: this relation seems to hold a password or token [likely-secret]",
    ]
    assert [line.split(": ", 1)[0].rsplit(":", 2)[1] for line in told] == ["2", "3", "4"]
    assert A36 not in done.err + done.out
    assert run("validate", path, "--fail-on", "warning").status == 1
