"""What the commands that read the store share: which scopes they see, and how one instant of it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from graphmem import scopes as scopes_of
from graphmem.cli._shared import here, note
from graphmem.errors import UsageError
from graphmem.records import UNKNOWN_KIND

if TYPE_CHECKING:
    from graphmem.config import Config
    from graphmem.store import Store
    from graphmem.store.lookup import Found
    from graphmem.store.read import Page

_Function = TypeVar("_Function", bound=Callable[..., Any])


def scope_options(function: _Function) -> _Function:
    """Add `--scope` and `--all-scopes`, as `scopes` and `all_scopes`."""
    for option in (
        click.option("--all-scopes", is_flag=True, help="See every scope of the store."),
        click.option(
            "--scope", "scopes", multiple=True, metavar="SCOPE",
            help="See only this scope; may be repeated. Else: that of the Git repository, and global.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def page_options(*, limit: int) -> Callable[[_Function], _Function]:
    """Add `--limit` and `--offset`."""

    def decorate(function: _Function) -> _Function:
        for option in (
            click.option(
                "--offset", type=click.IntRange(min=0), default=0, metavar="N", help="How many to pass over."
            ),
            click.option(
                "--limit", type=click.IntRange(min=1), default=limit, show_default=True, metavar="N",
                help="How many to show.",
            ),
        ):  # fmt: skip
            function = option(function)
        return function

    return decorate


def scopes_wanted(given: Sequence[str], *, all_scopes: bool) -> tuple[str, ...] | None:
    """The scopes that a command sees, its own first; `None` for all.

    Raises `UsageError` for what is no scope, and for both options at once.
    """
    if all_scopes:
        if given:
            raise UsageError("--scope and --all-scopes do not go together", "leave one of them out")
        return None
    if given:
        return tuple(dict.fromkeys(scopes_of.given(scope) for scope in given))
    return scopes_of.visible_scopes(scopes_of.default_scope(here()))


def how_many(page: Page, one: str, many: str) -> str:
    """How much of a page there is, and how to see more of it."""
    shown = len(page.items)
    part = f"{page.offset + 1}-{page.offset + shown} of " if 0 < shown < page.total else ""
    more = f"; --offset {page.offset + shown} shows more" if page.truncated and shown else ""
    return f"{part}{page.total:,} {one if page.total == 1 else many}{more}"


@contextmanager
def reading(config: Config) -> Iterator[Store]:
    """The store as it is at one instant. Raises `StoreNotFound` and the other errors of opening."""
    from graphmem.store import Store

    with Store(config.store) as store, store.errors(), store.reading():
        yield store


def spelled(found: Found) -> str:
    """An entity as people are told of it: name, kind, scope."""
    one = found.candidate
    return f"{one.name} ({one.kind or UNKNOWN_KIND}, {one.scope})"


def entity_meant(store: Store, text: str, scopes: tuple[str, ...] | None, kind: str | None = None) -> Found:
    """The visible entity of an id or a name; the others that the name could mean are told on stderr.

    Raises `EntityNotFound` with suggestions.
    """
    from graphmem.lookup import meant
    from graphmem.store.lookup import Names

    found, others = meant(Names(store.db, scopes), text, kind)
    if others:
        named = "; ".join(map(spelled, others))
        note(f"note: '{text}' was taken as {spelled(found)}; it could also be {named}")
    return found
