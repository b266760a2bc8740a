"""What the commands that change the store share: options, who asks, the encoder, and how outcomes are told."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from graphmem import scopes as scopes_of
from graphmem.cli._shared import here, note
from graphmem.errors import StoreNotFound

if TYPE_CHECKING:
    from graphmem.config import Config
    from graphmem.embed import Encoder
    from graphmem.store import Store

_Function = TypeVar("_Function", bound=Callable[..., Any])

ACTOR_VARIABLE = "GRAPHMEM_ACTOR"


def vector_option(function: _Function) -> _Function:
    """Add `--no-embeddings`, as `no_embeddings`."""
    option = click.option(
        "--no-embeddings", is_flag=True, help="Store without vectors; 'gmem reembed' adds them later."
    )
    return option(function)


def own_scope_option(function: _Function) -> _Function:
    """Add `--scope` of what is stored, as `scopes`."""
    option = click.option(
        "--scope", "scopes", multiple=True, metavar="SCOPE",
        help="Where it applies; may be repeated. Else: the Git repository you are in, or global.",
    )  # fmt: skip
    return option(function)


def own_scopes(given: Sequence[str]) -> list[str]:
    """The scopes that something is stored in. Raises `UsageError` for what is no scope."""
    if not given:
        return [scopes_of.default_scope(here())]
    return list(dict.fromkeys(scopes_of.given(one) for one in given))


def actor() -> str | None:
    """Who asks, as the log says it: `GRAPHMEM_ACTOR`, else the name of the user."""
    named = os.environ.get(ACTOR_VARIABLE, "").strip()
    if named:
        return named
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None


def encoder_for(config: Config, store: Store | None, *, wanted: bool) -> Encoder | None:
    """The encoder that an act needs: none where the store holds items and no vectors. Says why there is none.

    Raises `ModelUnavailable` for a model that is configured and cannot be used.
    """
    if not wanted:
        return None
    if store is not None and store.encoder() is None and not store.is_empty():
        return None
    from graphmem import embed

    found = embed.load(embed.from_environ(os.environ, config.home), note)
    if found.encoder is None and found.reason:
        note(f"note: stored without vectors: {found.reason}")
        if found.hint:
            note(f"  hint: {found.hint}")
    return found.encoder


@contextmanager
def changing(config: Config) -> Iterator[Store]:
    """The store, open for a change of what is in it. Raises `StoreNotFound` where there is none."""
    from graphmem.store import Store, is_there

    if not is_there(config.store):
        raise StoreNotFound(
            f"there is no store at {config.store}", "remember or import something, or name it with --db"
        )
    with Store(config.store, write=True) as store, store.errors():
        yield store


@contextmanager
def adding(config: Config) -> Iterator[tuple[Callable[[], Store], Store | None]]:
    """What opens the store, which is made when there is something to be stored, and the store if it is there."""
    from graphmem.store import Store, is_there

    with ExitStack() as stack:
        opened: list[Store] = []

        def opening() -> Store:
            if not opened:
                opened.append(stack.enter_context(Store(config.store, write=True)))
            return opened[0]

        yield opening, opening() if is_there(config.store) else None


def batch_line(batch: str | None, *, dry_run: bool = False) -> str:
    """The last line of an act: its batch, or that nothing changed."""
    if dry_run:
        return "nothing was changed (--dry-run)"
    return "nothing changed" if batch is None else f"batch {batch}"
