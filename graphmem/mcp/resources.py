"""What clients may attach: the numbers of the store, an entity, a memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import unquote

from graphmem.errors import ItemNotFound
from graphmem.mcp.answers import Fields, packed
from graphmem.mcp.arguments import checked
from graphmem.mcp.counting import stats
from graphmem.mcp.inspecting import inspect
from graphmem.mcp.service import Service
from graphmem.mcp.tools import INSPECT, STATS
from graphmem.store.filters import Filters
from graphmem.store.read import Reader
from graphmem.times import now

MIME: Final = "application/json"
STATS_URI: Final = "gmem://stats"
ENTITY_URI: Final = "gmem://entity/{name}"
MEMORY_URI: Final = "gmem://memory/{id}"

_MOST_COMPLETED: Final = 100


class Resource(NamedTuple):
    """A resource, or with a placeholder in its address a template of resources."""

    uri: str
    name: str
    title: str
    description: str


RESOURCES: Final = (Resource(STATS_URI, "stats", "Stats", "What is stored here, in numbers."),)
TEMPLATES: Final = (
    Resource(ENTITY_URI, "entity", "Entity", "An entity with its memories and relations."),
    Resource(MEMORY_URI, "memory", "Memory", "A memory with where it came from."),
)


def read(service: Service, uri: str) -> str:
    """The content of a resource. Raises `ItemNotFound` for an address that leads to nothing."""
    if uri == STATS_URI:
        return packed(stats(service, checked(STATS.input, {})))
    for template, type_ in ((ENTITY_URI, "entity"), (MEMORY_URI, "memory")):
        prefix = template.partition("{")[0]
        if uri.startswith(prefix) and uri != prefix:
            return packed(_item(service, unquote(uri[len(prefix) :]), type_))
    known = f"{STATS_URI}, {ENTITY_URI} and {MEMORY_URI}"
    raise ItemNotFound(f"there is no resource '{uri[:200]}'", f"there are {known}")


def _item(service: Service, what: str, type_: str) -> Fields:
    return inspect(service, checked(INSPECT.input, {"id": what, "type": type_}))


class Completed(NamedTuple):
    """Names that a text may become, and how many there are in all; `None` where not all were looked at."""

    names: list[str]
    total: int | None


def complete(service: Service, text: str) -> Completed:
    """The visible entities with this text in their names, those that begin with it first."""
    with service.reading() as store:
        if store is None:
            return Completed([], 0)
        page = Reader(store.db, Filters(now(), service.own_scopes)).entities(_MOST_COMPLETED, match=text)
    names = list(dict.fromkeys(str(one["name"]) for one in page.items))
    begins: Callable[[str], bool] = lambda name: not name.casefold().startswith(text.casefold())  # noqa: E731
    return Completed(sorted(names, key=begins), len(names) if page.total <= len(page.items) else None)
