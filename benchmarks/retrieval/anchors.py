"""Figures of others to stand beside ours, and the figures to reach.

published  by the authors, or on the public board, of the system named
prototype  taken on the very file we use, or where said on another, with a few lines of NumPy
target     what this project wants to reach on the file we use
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Anchor(NamedTuple):
    """One row beside ours; `of` says which data it was taken on where that is not ours."""

    kind: str
    system: str
    figures: Mapping[str, float]
    of: str = ""


def _turns(ndcg: float, five: float, ten: float) -> dict[str, float]:
    return {"ndcg@10": ndcg, "recall@5": five, "recall@10": ten}


def _hops(two: float, five: float, ten: float | None = None) -> dict[str, float]:
    return {"recall@2": two, "recall@5": five} | ({} if ten is None else {"recall@10": ten})


_WHOLE: Final = "all 10 conversations"
_PAPER: Final = "1,000 questions, 11,656 passages"
_TWO_WIKI: Final = "another set: 6,119 passages"

ANCHORS: Final[Mapping[str, tuple[Anchor, ...]]] = {
    "locomo": (
        Anchor("target", "to reach", {"ndcg@10": 0.55}),
        Anchor("prototype", "full text alone", _turns(0.467, 0.510, 0.583)),
        Anchor("prototype", "MiniLM alone", _turns(0.317, 0.366, 0.458)),
        Anchor("prototype", "reciprocal ranks, k = 60", _turns(0.397, 0.453, 0.549)),
        Anchor("prototype", "weighted sum", _turns(0.481, 0.535, 0.611)),
        Anchor("prototype", "sum, turns read in their place", _turns(0.531, 0.598, 0.686)),
        Anchor("published", "all-MiniLM-L6-v2", _turns(0.2586, 0.2993, 0.3936), _WHOLE),
        Anchor("published", "e5-small-v2", _turns(0.4046, 0.4413, 0.5342), _WHOLE),
        Anchor("published", "bge-m3", _turns(0.4180, 0.4585, 0.5552), _WHOLE),
        Anchor("published", "BM25s", _turns(0.4216, 0.4655, 0.5399), _WHOLE),
        Anchor("published", "opensearch sparse doc-v3-gte", _turns(0.4577, 0.5107, 0.5842), _WHOLE),
        Anchor("published", "NV-Embed-v2 (7B)", _turns(0.5124, 0.5709, 0.6673), _WHOLE),
        Anchor("published", "Nemotron-3-Embed-8B, the best", _turns(0.5651, 0.6230, 0.7076), _WHOLE),
    ),
    "musique": (
        Anchor("target", "to reach", {"recall@5": 0.72, "recall@10": 0.84}),
        Anchor("prototype", "full text alone", _hops(0.431, 0.525, 0.569)),
        Anchor("prototype", "MiniLM alone", _hops(0.450, 0.601, 0.699)),
        Anchor("prototype", "sum of both", _hops(0.452, 0.596, 0.699)),
        Anchor("prototype", "walk over facts and passages", _hops(0.376, 0.674, 0.810)),
        Anchor("published", "BM25", _hops(0.324, 0.435), _PAPER),
        Anchor("published", "HippoRAG (ColBERTv2)", _hops(0.409, 0.519), _PAPER),
        Anchor("published", "NV-Embed-v2 (7B)", _hops(0.527, 0.697), _PAPER),
        Anchor("published", "HippoRAG 2 (70B LLM, 7B vectors)", _hops(0.561, 0.747), _PAPER),
    ),
    "musique-mentions": (
        Anchor("prototype", "full text alone", _hops(0.431, 0.525, 0.569)),
        Anchor("prototype", "MiniLM alone", _hops(0.450, 0.601, 0.699)),
        Anchor("prototype", "sum of both", _hops(0.452, 0.596, 0.699)),
        Anchor("prototype", "sum of both", _hops(0.594, 0.676, 0.696), _TWO_WIKI),
        Anchor("prototype", "walk over mentions of titles", _hops(0.676, 0.896, 0.958), _TWO_WIKI),
    ),
    "devbench": (
        Anchor("target", "to reach", {"recall@5": 0.9, "refused-negative": 0.9, "refused-answerable": 0.03}),
    ),
}
