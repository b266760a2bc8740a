"""`gmem resolve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from graphmem import scopes as scopes_of
from graphmem.cli._reading import reading, spelled
from graphmem.cli._shared import configuration, here, output, say, standard_options
from graphmem.errors import EntityNotFound, UsageError
from graphmem.names import exact
from graphmem.terminal import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmem.lookup import Answer, Looked


@click.command()
@click.argument("name")
@click.option("--kind", metavar="KIND", help="Only an entity of this kind.")
@click.option(
    "--scope", metavar="SCOPE", help="See this scope and global. Unless given: that of the Git repository."
)
@click.option("--explain", is_flag=True, help="Show each step: what it looked for and what it found.")
@standard_options
def resolve(
    name: str, kind: str | None, scope: str | None, explain: bool, db: str | None, graph: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Say which entity a name means.

    The steps: the same name, the same but for case, the same words, all the words in one entity. The first
    that finds anything decides, and in it the scope's own entities come before global ones and names before
    aliases. Of several the one updated last is meant and the others are listed. When nothing is found, the
    closest names are suggested and the exit status is 2.

    Imports go by the same steps but for the last, and refuse a record whose name could mean several.
    """
    from graphmem.lookup import look_up
    from graphmem.store.lookup import Names

    if not exact(name):
        raise UsageError("the name is empty", "name an entity")
    own = scopes_of.given(scope) if scope is not None else scopes_of.default_scope(here())
    seen = scopes_of.visible_scopes(own)
    with reading(configuration(db, graph)) as store:
        answer = look_up(Names(store.db, seen), name, kind)
    try:
        result = _result(answer, own, explain=explain)
    except EntityNotFound as error:
        if explain:
            error.details["steps"] = [look.as_dict() for look in answer.looks]
            if not as_json:
                say("\n".join(_steps(answer)))
        raise
    output(result, as_json=as_json, text=lambda: _text(answer, explain=explain))


def _result(answer: Answer, scope: str, *, explain: bool) -> dict[str, Any]:
    from graphmem.lookup import brief

    result: dict[str, Any] = {
        "name": answer.name,
        "kind": answer.kind,
        "scope": scope,
        "step": answer.step.value,
        "entity": brief(answer.found),
        "ambiguous": bool(answer.others),
        "others": [brief(one) for one in answer.others],
    }
    return result | ({"steps": [look.as_dict() for look in answer.looks]} if explain else {})


def _text(answer: Answer, *, explain: bool) -> str:
    found = answer.found
    marks = [*(["stub"] if found.stub else []), *(["archived"] if found.state != "active" else [])]
    lines = list(_steps(answer)) if explain else []
    lines.append(" · ".join([visible(spelled(found)), *marks, visible(found.id)]))
    if not explain:
        lines.append(f"  by {answer.step.value}: {answer.looks[-1].match}")
    lines += [f"  could also be {visible(spelled(one))} · {visible(one.id)}" for one in answer.others]
    return "\n".join(lines)


def _steps(answer: Answer) -> Iterator[str]:
    """Each look: what was looked for, and what was found by it."""
    for look in answer.looks:
        yield visible(f"{look.step.value}: {look.match}: '{look.text}'")
        yield from _found(look)


def _found(look: Looked) -> Iterator[str]:
    from graphmem.lookup import MAX_SHOWN

    if not look.found:
        yield "    nothing"
    for place, one in enumerate(look.found[:MAX_SHOWN]):
        by = f" by its alias, as '{one.key}'" if one.candidate.alias else ""
        archived = ", archived" if one.state != "active" else ""
        sign = "->" if place < look.chosen else "  "
        yield visible(f" {sign} {spelled(one)}{by}{archived}")
    if len(look.found) > MAX_SHOWN:
        yield f"    and {len(look.found) - MAX_SHOWN} more"
