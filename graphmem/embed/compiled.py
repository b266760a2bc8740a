"""The compiled copy at work: ONNX Runtime and the saved tokeniser, nothing else imported."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from graphmem.embed.batching import Reading
from graphmem.embed.contract import Role
from graphmem.embed.copies import GRAPH, TOKENIZER, Copy, Sheet

PROBE: Final = (
    "graphmem checks with this text that a compiled model still answers as it did when it was made."
)

_THREADS: Final = 8
"""More threads than this do not help batches of this size."""

_TOLERANCE: Final = 1e-4
"""How far the cosine of a probe may be from 1: other processors round differently, damage is far off."""


class CopyDamagedError(Exception):
    """The files of a compiled copy cannot be used."""


class CompiledEngine:
    """Encodes with ONNX Runtime."""

    def __init__(self, folder: Path, sheet: Sheet) -> None:
        self._sheet = sheet
        self._tokenizer = load_tokenizer(folder)
        if sheet.max_length is not None:
            self._tokenizer.enable_truncation(sheet.max_length)
        self._session = _session(folder / GRAPH)
        self._inputs = [each.name for each in self._session.get_inputs()]

    def read(self, texts: Sequence[str], role: Role) -> list[Reading]:
        """The token numbers of each text with its prompt, cut off at the model's limit."""
        prompt = self._sheet.prompt(role)
        # One at a time: the tokeniser's own threads gain little here and complain when a process forks.
        tokens = (self._tokenizer.encode(prompt + text).ids for text in texts)
        return [Reading(len(ids), ids) for ids in tokens]

    def run(self, batch: Sequence[Reading]) -> list[bytes]:
        """One normalised vector for each list of token numbers."""
        import numpy as np

        longest = max(1, *(reading.length for reading in batch))
        ids = np.full((len(batch), longest), self._sheet.pad_id, dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, reading in enumerate(batch):
            ids[row, : reading.length] = reading.content
            mask[row, : reading.length] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        rows = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        return [row.astype("<f4").tobytes() for row in rows]


def open_copy(copy: Copy) -> CompiledEngine:
    """The engine of a compiled copy, after it has encoded a probe as it did when it was made.

    Raises `CopyDamagedError` when the files cannot be loaded or answer differently.
    """
    try:
        engine = CompiledEngine(copy.folder, copy.sheet)
        vector = engine.run(engine.read([PROBE], "document"))[0]
    except ImportError:
        raise
    except Exception as error:
        raise CopyDamagedError(str(error)) from error
    if not alike(vector, bytes.fromhex(copy.sheet.probe), _TOLERANCE):
        raise CopyDamagedError("the model does not answer as it did when it was compiled")
    return engine


def open_tokenizer(copy: Copy) -> Any:
    """The tokeniser of a copy. Raises `CopyDamagedError` when it cannot be loaded."""
    try:
        return load_tokenizer(copy.folder)
    except ImportError:
        raise
    except Exception as error:
        raise CopyDamagedError(str(error)) from error


def alike(one: bytes, other: bytes, tolerance: float) -> bool:
    """Whether two normalised vectors have a cosine of at least 1 − tolerance."""
    import numpy as np

    if len(one) != len(other):
        return False
    cosine = float(np.dot(np.frombuffer(one, "<f4").astype(float), np.frombuffer(other, "<f4").astype(float)))
    return cosine >= 1 - tolerance


def load_tokenizer(folder: Path) -> Any:
    """The saved tokeniser of a copy, without padding and without truncation."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _session(graph: Path) -> Any:
    import onnxruntime as ort

    ort.disable_telemetry_events()
    options = session_options(ort)
    # The graph was optimised when it was saved, and its weights are mapped, not read: repacking them for
    # the processor would take longer than all the rest of a start and gives nothing at our batch size.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_prepacking", "1")
    return ort.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])


def session_options(ort: Any) -> Any:
    """Options for a quiet session on the processors this process may use."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    # Left to itself the runtime pins its threads to processors, which containers refuse aloud.
    options.intra_op_num_threads = min(_processors(), _THREADS)
    return options


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
