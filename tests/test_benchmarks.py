"""The measuring instrument measures rightly: figures, intervals, folds, loaders and the line of a run."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from search_store import SynonymEncoder

from graphmem.embed import Chunk, EncoderInfo, Progress, Role

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

if TYPE_CHECKING:
    from benchmarks.retrieval import (
        answering,
        devbench,
        folds,
        intervals,
        locomo,
        metrics,
        musique,
        report,
        sets,
        speed,
        stores,
        tables,
        upkeep,
        vectors,
        walking,
    )
else:
    from retrieval import (
        answering,
        devbench,
        folds,
        intervals,
        locomo,
        metrics,
        musique,
        report,
        sets,
        speed,
        stores,
        tables,
        upkeep,
        vectors,
        walking,
    )

CONVERSATION: dict[str, Any] = {
    "sample_id": "talk-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "The kettle is broken."},
            {"speaker": "Bob", "dia_id": "D1:2", "text": "I will buy a teapot."},
        ],
        "session_2_date_time": "12:10 am on 11 August, 2023",
        "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "Is the teapot blue?"}],
    },
    "qa": [
        {"question": "What is broken?", "evidence": ["D1:1"], "category": 4},
        {"question": "What about the teapot?", "evidence": ["D1:2", "D2:1", "D"], "category": 1},
        {"question": "Who knows?", "evidence": ["D"], "category": 3},
    ],
}
PASSAGES = [
    {"title": "Oslo (city)", "text": "Oslo is the capital of Norway."},
    {"title": "Norway", "text": "Norway borders Sweden."},
]
ASKED = [
    {
        "id": "2hop__1_2",
        "question": "What does the country of Oslo border?",
        "paragraphs": [
            {"title": one["title"], "paragraph_text": one["text"], "is_supporting": True} for one in PASSAGES
        ],
    }
]
STATED = [
    {**PASSAGES[0], "extracted_triples": [["Oslo", "capital of", "Norway"], ["Oslo", "is cold"]]},
    {**PASSAGES[1], "extracted_triples": [["Norway", "borders", "Sweden"]]},
]
NOTES = {
    "memories": [
        {
            "id": "bench:a",
            "content": "SQLite was chosen.",
            "tags": ["devbench", "bench:a", "storage"],
            "memory_type": "decision",
            "created_at_iso": "2025-06-12T09:15:00Z",
        }
    ],
    "queries": [
        {"id": "q1", "category": "exact", "question": "What was chosen?", "expected_tags": ["bench:a"]},
        {"id": "q2", "category": "negative", "question": "Who pays?", "expected_tags": []},
    ],
}


def score(question: str, value: float, group: str = "") -> intervals.Score:
    return intervals.Score(question, group, value)


def value_of(results: Sequence[answering.Result], metric: str) -> dict[str, float]:
    return {one.id: one.figures[metric] for one in results if metric in one.figures}


class CountingEncoder(SynonymEncoder):
    """An encoder that reads any text whole and counts what it was asked for."""

    def chunks(self, text: str) -> list[Chunk]:
        return [Chunk(0, len(text))]

    def encode(self, texts: Sequence[str], role: Role, progress: Progress | None = None) -> list[bytes]:
        return super().encode(texts, role)


# ---- figures ----------------------------------------------------------------------------------------


def test_ndcg_discounts_by_the_logarithm_of_the_rank() -> None:
    gold = frozenset("ac")
    best = 1 + 1 / math.log2(3)

    assert metrics.ndcg(["a", "b", "c"], gold, 10) == pytest.approx((1 + 1 / math.log2(4)) / best)
    assert metrics.ndcg(["c", "a"], gold, 10) == pytest.approx(1)
    assert metrics.ndcg(["x", "y"], gold, 10) == 0


def test_the_best_order_is_worth_one_also_when_there_is_more_gold_than_depth() -> None:
    assert metrics.ndcg(["a", "b"], frozenset("abcd"), 2) == pytest.approx(1)


def test_recall_is_the_share_of_the_right_ones_within_the_depth() -> None:
    assert metrics.recall(["a", "x", "b"], frozenset("ab"), 2) == 0.5
    assert metrics.all_gold(["a", "x", "b"], frozenset("ab"), 2) == 0
    assert metrics.all_gold(["a", "x", "b"], frozenset("ab"), 3) == 1


def test_the_reciprocal_rank_is_that_of_the_first_right_one() -> None:
    assert metrics.reciprocal_rank(["x", "b", "a"], frozenset("ab")) == 0.5
    assert metrics.reciprocal_rank(["x"], frozenset("ab")) == 0


def test_a_question_that_nothing_answers_counts_for_refusals_only() -> None:
    names = devbench.METRICS

    assert metrics.figures(names, ["x"], frozenset(), refused=True) == {"refused-negative": 1.0}
    assert metrics.figures(names, ["a"], frozenset("a"), refused=False) == {
        "recall@5": 1.0,
        "mrr": 1.0,
        "refused-answerable": 0.0,
    }


# ---- means and intervals ----------------------------------------------------------------------------


def test_the_macro_mean_weighs_groups_alike_however_large() -> None:
    scores = [score("1", 1, "few"), *(score(str(number), 0, "many") for number in range(2, 11))]

    assert intervals.mean_of(scores, macro=True) == 0.5
    assert intervals.mean_of(scores, macro=False) == 0.1


def test_the_bootstrap_finds_the_standard_error_that_theory_knows() -> None:
    scores = [score(str(number), number % 2) for number in range(100)]

    found = intervals.estimate(scores, macro=False)

    assert found.mean == 0.5
    assert found.error == pytest.approx(0.05, abs=0.005)
    assert found.low == pytest.approx(0.4, abs=0.03)
    assert found.high == pytest.approx(0.6, abs=0.03)


def test_the_macro_bootstrap_draws_within_groups() -> None:
    scores = [score(str(number), group == "a", group) for group in "ab" for number in range(20)]

    assert intervals.estimate(scores, macro=True).error == 0


def test_the_interval_of_a_run_is_the_same_each_time() -> None:
    scores = [score(str(number), number % 3) for number in range(30)]

    assert intervals.estimate(scores, macro=False) == intervals.estimate(scores, macro=False)


def test_differences_are_paired_by_question_and_leave_out_what_only_one_run_has() -> None:
    before = [score("a", 0.25), score("b", 1)]
    after = [score("b", 0.5), score("a", 0.75), score("c", 1)]

    assert intervals.differences(before, after) == [score("b", -0.5), score("a", 0.5)]


# ---- folds ------------------------------------------------------------------------------------------


def test_every_question_is_judged_in_exactly_one_fold() -> None:
    questions = [f"q{number}" for number in range(500)]

    parts = list(folds.split(questions, 5))

    assert sorted(one for part in parts for one in part.test) == sorted(questions)
    assert all(sorted([*part.train, *part.test]) == sorted(questions) for part in parts)
    assert all(60 < len(part.test) < 140 for part in parts)


def test_the_fold_of_a_question_depends_on_its_id_and_the_salt_only() -> None:
    assert folds.fold_of("q1", 5) == folds.fold_of("q1", 5)
    assert {folds.fold_of("q1", 1000, str(salt)) for salt in range(9)} != {folds.fold_of("q1", 1000)}


def test_a_variant_is_chosen_by_other_questions_than_it_is_judged_by() -> None:
    questions = [f"q{number}" for number in range(40)]
    lucky = questions[0]
    steady = [score(one, 0.5) for one in questions]
    overfit = [score(one, 30.0 if one == lucky else 0.0) for one in questions]

    found = folds.hold_out({"steady": steady, "overfit": overfit}, 4, macro=False)

    assert intervals.mean_of(overfit, macro=False) > intervals.mean_of(steady, macro=False)
    assert found.chosen[folds.fold_of(lucky, 4)] == "steady"
    assert {one.question: one.value for one in found.scores}[lucky] == 0.5
    assert len(found.scores) == len(questions)


def test_variants_of_different_questions_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="same questions"):
        folds.hold_out({"a": [score("1", 1)], "b": [score("2", 1)]}, 2, macro=False)


# ---- loaders ----------------------------------------------------------------------------------------


def test_a_turn_is_a_memory_about_its_speaker_in_its_place_and_time() -> None:
    found = locomo.build([CONVERSATION])

    assert {"type": "entity", "name": "Bob", "kind": "person", "scope": "conversation:talk-1"} in found.lines
    assert {
        "type": "memory",
        "id": "talk-1:D1:2",
        "content": "I will buy a teapot.",
        "about": ["Bob"],
        "scopes": ["conversation:talk-1"],
        "source": {"uri": "talk-1/session_1", "position": 1},
        "valid_at": "2023-05-08T13:56:00Z",
    } in found.lines


def test_a_question_is_asked_of_its_conversation_and_without_evidence_left_out() -> None:
    here: tuple[str, ...] = ("conversation:talk-1",)
    found = locomo.build([CONVERSATION])

    assert [(one.group, one.gold, one.scopes) for one in found.questions] == [
        ("single-hop", frozenset({"talk-1:D1:1"}), here),
        ("multi-hop", frozenset({"talk-1:D1:2", "talk-1:D2:1"}), here),
    ]
    assert found.notes == ("1 questions without a usable evidence id are left out",)


def test_triples_are_stated_by_their_passage_and_malformed_ones_stay_as_they_are() -> None:
    found = musique.build_triples(PASSAGES, STATED, ASKED)

    assert {
        "type": "relation",
        "subject": "Norway",
        "predicate": "borders",
        "object": "Sweden",
        "stated_by": [{"id": "p00001"}],
    } in found.lines
    assert ["Oslo", "is cold"] in found.lines
    assert [(one.group, one.gold) for one in found.questions] == [("2-hop", frozenset({"p00000", "p00001"}))]


def test_a_title_is_an_entity_also_without_its_part_in_brackets() -> None:
    found = musique.build_mentions(PASSAGES, ASKED)

    assert found.lines[:2] == [
        {"type": "entity", "name": "Norway"},
        {"type": "entity", "name": "Oslo (city)", "aliases": ["Oslo"]},
    ]
    memories = [line for line in found.lines if isinstance(line, dict) and line["type"] == "memory"]
    assert [one["about"] for one in memories] == [[{"name": "Oslo (city)"}], [{"name": "Norway"}]]


def test_tags_that_mark_right_answers_are_not_imported() -> None:
    found = devbench.build(NOTES)

    assert [line["tags"] for line in found.lines if isinstance(line, dict)] == [["storage"]]
    assert [one.gold for one in found.questions] == [{"bench:a"}, set()]


@pytest.mark.parametrize("load", [locomo.load, musique.load_triples, musique.load_mentions, devbench.load])
def test_missing_data_is_said(load: Any, tmp_path: Path) -> None:
    with pytest.raises(sets.DataMissingError, match=" in "):
        load(tmp_path)


def test_files_are_found_where_the_shared_data_has_them(tmp_path: Path) -> None:
    (tmp_path / "locomo-dev").mkdir()
    (tmp_path / "locomo-dev" / "locomo-dev.json").write_text(json.dumps([CONVERSATION]))

    assert locomo.load(tmp_path) == locomo.build([CONVERSATION])


# ---- the line of a run ------------------------------------------------------------------------------


def test_questions_are_answered_through_import_and_recall(tmp_path: Path) -> None:
    other = json.loads(json.dumps(CONVERSATION).replace("talk-1", "talk-2"))
    wanted = locomo.build([CONVERSATION, other])

    path, imported = stores.build(wanted.name, wanted.jsonl(), None, tmp_path)
    results = answering.ask(path, wanted, "lexical", None)

    assert imported["counts"]["memory"] == {"read": 6, "created": 6}
    assert value_of(results, "ndcg@10") == {one.id: 1.0 for one in wanted.questions}
    assert results[0].hits == ["talk-1:D1:1"]


def test_malformed_triples_are_reported_by_the_import(tmp_path: Path) -> None:
    wanted = musique.build_triples(PASSAGES, STATED, ASKED)

    _, imported = stores.build(wanted.name, wanted.jsonl(), None, tmp_path)

    assert imported["counts"]["unrecognised"] == {"read": 1, "rejected": 1}
    assert imported["counts"]["relation"] == {"read": 2, "created": 2}
    assert imported["findings"]["not-a-record"] == 1


def test_a_question_that_nothing_answers_is_refused(tmp_path: Path) -> None:
    wanted = devbench.build(NOTES)

    path, _ = stores.build(wanted.name, wanted.jsonl(), None, tmp_path)
    results = answering.ask(path, wanted, "lexical", None)

    assert value_of(results, "refused-negative") == {"q2": 1.0}
    assert value_of(results, "refused-answerable") == {"q1": 0.0}


def test_a_recipe_by_meaning_is_not_measured_without_vectors(tmp_path: Path) -> None:
    wanted = devbench.build(NOTES)
    path, _ = stores.build(wanted.name, wanted.jsonl(), None, tmp_path)

    with pytest.raises(answering.NoVectorsError):
        answering.ask(path, wanted, "hybrid", None)


def test_a_store_is_kept_until_its_records_change(tmp_path: Path) -> None:
    encoder = CountingEncoder()
    wanted = devbench.build(NOTES)
    content = wanted.jsonl()

    first, said = stores.build("set", content, encoder, tmp_path)
    encoded = list(encoder.encoded)
    again = stores.build("set", content, encoder, tmp_path)
    other, _ = stores.build("set-more", content, None, tmp_path)
    changed, _ = stores.build("set", content.replace("SQLite", "A file"), encoder, tmp_path)

    assert again == (first, said)
    assert encoder.encoded[: len(encoded)] == encoded
    assert len(encoder.encoded) == len(encoded) + 1
    assert (first.exists(), other.exists(), changed.exists()) == (False, True, True)
    assert not list(tmp_path.glob("building-*"))


def test_a_vector_is_made_once_for_all_runs(tmp_path: Path) -> None:
    plain, later = CountingEncoder(), CountingEncoder()

    with vectors.KeptVectors(plain, tmp_path) as kept:
        made = kept.encode(["car", "tea", "car"], "document")
        kept.encode(["car"], "query")
    with vectors.KeptVectors(later, tmp_path) as kept:
        found = kept.encode(["tea", "automobile", "car"], "document")

    assert plain.encoded == ["car", "tea", "car"]
    assert later.encoded == ["automobile"]
    assert found == [made[1], *SynonymEncoder().encode(["automobile"], "document"), made[0]]


def test_another_encoder_has_vectors_of_its_own(tmp_path: Path) -> None:
    one, other = CountingEncoder("one"), CountingEncoder("other")

    for encoder in (one, other):
        with vectors.KeptVectors(encoder, tmp_path) as kept:
            kept.encode(["tea"], "query")
            kept.encode(["tea"], "query")

    assert (one.encoded, other.encoded) == (["tea"], ["tea"])


# ---- documents and tables ---------------------------------------------------------------------------


def result(question: str, value: float) -> answering.Result:
    return answering.Result(question, "exact", {"recall@5": value}, ["a"], 0.5, 1.0)


def document(**runs: list[answering.Result]) -> dict[str, Any]:
    imported = {"counts": {"memory": {"created": 1}}, "stubs": 0, "findings": {}}
    return report.document(devbench.build(NOTES), imported, runs)


def test_a_run_holds_figures_differences_and_every_result() -> None:
    found = document(
        lexical=[result("q1", 0.0), result("q3", 1.0)], hybrid=[result("q1", 1.0), result("q3", 1.0)]
    )

    assert {name: row["mean"] for name, row in found["recipes"]["lexical"]["figures"].items()} == {
        "recall@5": 0.5
    }
    assert found["recipes"]["lexical"]["groups"] == {"exact": {"recall@5": 0.5}}
    assert [one["id"] for one in found["recipes"]["hybrid"]["results"]] == ["q1", "q3"]
    (first,) = found["differences"]
    assert (first["before"], first["after"], first["mean"]) == ("lexical", "hybrid", 0.5)
    assert (first["higher"], first["lower"], first["questions"]) == (1, 0, 2)


def test_the_table_names_our_figures_beside_those_to_reach() -> None:
    run = {
        "encoder": "m",
        "skipped": {"locomo": "no data"},
        "sets": {"devbench": document(lexical=[result("q1", 1.0)])},
    }

    lines = [" ".join(line.split()) for line in tables.run_lines(run)]

    assert "locomo: skipped, no data" in lines
    assert "graphmem lexical 1.000 ±.000 1.0" in lines
    assert "target: to reach .900 .900 .030" in lines


def test_two_saved_runs_are_compared_question_by_question() -> None:
    before = {"sets": {"devbench": document(lexical=[result("q1", 0.0), result("q2", 0.5)])}}
    after = {"sets": {"devbench": document(lexical=[result("q1", 1.0), result("q2", 0.5)])}}

    lines = list(tables.comparison_lines(report.compare(json.loads(json.dumps(before)), after)))

    assert lines[0] == "devbench: DevBench, 1 notes"
    assert " ".join(lines[1].split()).startswith("lexical recall@5 +.500 ±.")
    assert lines[1].endswith("1 higher, 0 lower of 2")


# ---- speed ------------------------------------------------------------------------------------------


def test_a_made_up_store_is_imported_whole_and_answers(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    words = speed.Words()
    encoder = speed.WordVectors(words)
    made = list(speed.records(40, words))
    content = "".join(json.dumps(record) + "\n" for record in made)

    path, imported = stores.build("speed", content, encoder, tmp_path)
    times = speed.answer_times(path, speed.queries(made)[:5], "hybrid", encoder)

    assert {kind: row["created"] for kind, row in imported["counts"].items()} == {
        "entity": 4,
        "memory": 40,
        "relation": 40,
    }
    assert len(times) == 5
    assert isinstance(encoder.info, EncoderInfo)


def test_sketches_are_compared_with_vectors_and_mentions_are_timed(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    words = speed.Words()
    encoder = speed.WordVectors(words)
    made = list(speed.records(900, words))
    path, _ = stores.build("speed", "".join(json.dumps(one) + "\n" for one in made), encoder, tmp_path)

    shares = speed.agreement(path, speed.queries(made)[:3], encoder)
    found = upkeep.measure(words.words[:200], entities=20, memories=20)

    assert all(share > 0.98 for share in shares.values())
    assert set(shares) == {"memory", "relation"}
    # Figures are rounded: a fast machine may need 0.0 seconds.
    assert len(found) == 6
    assert min(found.values()) >= 0


def test_walks_are_timed_on_the_public_graph(tmp_path: Path) -> None:
    folder = tmp_path / "kg" / "codex-s"
    folder.mkdir(parents=True)
    for name in ("train.txt", "valid.txt", "test.txt"):
        (folder / name).write_text(f"a\tP1\t{name}\n{name}\tP2\tb\n", encoding="utf-8")

    rows = walking.measure(tmp_path, tmp_path)

    assert [(row["what"], row["depth"], row["nodes"]) for row in rows[:2]] == [
        ("neighbours", 1, 4),
        ("subgraph", 1, 4),
    ]
    with pytest.raises(sets.DataMissingError):
        walking.measure(tmp_path / "elsewhere", tmp_path)
