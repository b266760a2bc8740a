"""`gmem relate`."""

from __future__ import annotations

import click

from graphmem.cli._acts import actor, adding, encoder_for, own_scope_option, own_scopes, vector_option
from graphmem.cli._inputs import terminable
from graphmem.cli._shared import configuration, standard_options
from graphmem.cli.remember import tell
from graphmem.errors import UsageError


@click.command()
@click.argument("subject")
@click.argument("predicate")
@click.argument("object_", metavar="OBJECT")
@click.option("--fact", metavar="TEXT", help="The fact as a sentence.")
@click.option("--weight", type=float, metavar="X", help="How strong it is, from 0 to 1.")
@click.option("--valid-at", metavar="TIME", help="Since when it is true.")
@click.option("--subject-kind", metavar="KIND", help="The kind of SUBJECT.")
@click.option("--object-kind", metavar="KIND", help="The kind of OBJECT.")
@click.option("--existing", is_flag=True, help="Refuse names that are not there.")
@own_scope_option
@vector_option
@standard_options
def relate(
    subject: str, predicate: str, object_: str, fact: str | None, weight: float | None, valid_at: str | None,
    subject_kind: str | None, object_kind: str | None, existing: bool, scopes: tuple[str, ...],
    no_embeddings: bool, db: str | None, graph: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Relate two entities.

    SUBJECT and OBJECT are names or ids. A name that is not there is made an entity, and told; with
    --existing it is refused, and close names are suggested. A name that could be several is refused, and the
    candidates are named. The same relation again takes what is new of it.
    """
    from graphmem.edit.references import referring
    from graphmem.edit.remember import remember as run

    where = own_scopes(scopes)
    if len(where) > 1:
        raise UsageError("a relation has one scope", "give --scope once")
    config = configuration(db, graph)
    with terminable(), adding(config) as (opening, store):
        said = {
            "type": "relation", "scope": where[0],
            "subject": referring(store, subject, where[0], subject_kind, existing=existing),
            "predicate": predicate,
            "object": referring(store, object_, where[0], object_kind, existing=existing),
            "fact": fact, "weight": weight, "valid_at": valid_at,
        }  # fmt: skip
        value = {key: one for key, one in said.items() if one is not None}
        encoder = encoder_for(config, store, wanted=not no_embeddings)
        report, outcomes = run(
            opening, [value], scope=where[0], encoder=encoder, actor=actor(), command="relate"
        )
    return tell(report, outcomes, as_json=as_json)
