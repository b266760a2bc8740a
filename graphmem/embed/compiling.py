"""Making the copy: torch writes the model as ONNX, ONNX Runtime optimises it, and both are compared.

What cannot be compiled is refused with a reason, and sentence-transformers serves it.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from graphmem.embed import compiled
from graphmem.embed.contract import Role
from graphmem.embed.copies import GRAPH, TOKENIZER, WEIGHTS, Sheet
from graphmem.embed.original import Original, quiet
from graphmem.embed.sources import ModelSource

_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_OPSET: Final = 17
_TOLERANCE: Final = 1e-5
_LONGEST: Final = 1024
"""Tokens a piece may have at most, whatever the model could read: attention needs memory for their square."""

_ROLES: Final[tuple[Role, ...]] = ("document", "query")
_PROBES: Final = (
    compiled.PROBE,
    "",
    "C++",
    "getUserById() returned HTTP 503 at 2026-05-08T10:00Z; see src/auth_service.py, line 42.",
    "Zürich straße naïve café İstanbul e\u0301",
    "東京タワーは高い。 데이터베이스 数据库 🚀👩‍💻 \x00\u2028",
    "The billing service owns the invoices table, and nobody else writes to it. " * 40,
)


class _RefusedError(Exception):
    """The model cannot be compiled, and why."""


def fill(folder: Path, source: ModelSource, original: Original, digest: str) -> Sheet:
    """Write a model's copy into a folder and say what it is.

    The copy is compiled and agrees with the original on every probe, or the sheet says why not.
    """
    sheet = _describe(folder, source, original, digest)
    try:
        pooling = _pooling(original)
        sheet = replace(sheet, pooling=pooling, pad_id=_pad_id(original))
        with quiet():
            # Asked first: the export switches the network to plainer code.
            expected = {role: _rows(original, sheet.prompt(role)) for role in _ROLES}
            _export(original, pooling, folder)
            return _compared(folder, sheet, expected)
    except OSError:
        raise  # a full disk says nothing about the model
    except Exception as error:
        for name in (GRAPH, WEIGHTS):
            (folder / name).unlink(missing_ok=True)
        why = str(error) if isinstance(error, _RefusedError) else f"{type(error).__name__}: {error}"
        return replace(sheet, refused=next(iter(why.splitlines()), type(error).__name__))


def _describe(folder: Path, source: ModelSource, original: Original, digest: str) -> Sheet:
    """All of a sheet that does not depend on compiling; the tokeniser is saved beside it."""
    prompts, limit = original.prompts, original.max_length
    limit = None if limit is None else min(limit, _LONGEST)
    tokenizer = original.tokenizer
    if tokenizer is not None:
        tokenizer.save(str(folder / TOKENIZER), pretty=False)
    return Sheet(
        name=source.name,
        revision=original.files.revision,
        digest=digest,
        dimension=original.dimension,
        max_length=limit,
        capacity=None if limit is None else _capacity(tokenizer, prompts, limit),
        prompts=prompts,
    )


def _capacity(tokenizer: Any, prompts: dict[str, str], limit: int) -> int:
    """How many tokens of a text the model reads beside special tokens and the longest prompt."""
    if tokenizer is None:
        return max(limit - max(map(len, prompts.values())) - 2, 1)
    special = tokenizer.num_special_tokens_to_add(False)
    prompt = max(len(tokenizer.encode(text, add_special_tokens=False).ids) for text in prompts.values())
    return max(int(limit - special - prompt), 1)


def _pooling(original: Original) -> str:
    """`mean` or `cls`; refuses every other build of a model."""
    kinds = [type(module).__name__ for module in original.model]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise _RefusedError(f"a model made of {', '.join(kinds)} is not supported")
    said = original.model[1].get_config_dict()
    mode = said.get("pooling_mode")
    modes = [mode] if isinstance(mode, str) else [name for name, on in _old_modes(said) if on]
    if modes not in (["mean"], ["cls"]):
        raise _RefusedError(f"pooling by {', '.join(map(str, modes)) or 'nothing known'} is not supported")
    if not said.get("include_prompt", True):
        raise _RefusedError("pooling without the prompt is not supported")
    if original.tokenizer is None:
        raise _RefusedError("its tokeniser has no fast form")
    return str(modes[0])


def _old_modes(said: dict[str, Any]) -> list[tuple[str, bool]]:
    """The pooling modes in the form that sentence-transformers wrote before version 6."""
    names = {"mean_tokens": "mean", "cls_token": "cls"}
    return [
        (names.get(key.removeprefix("pooling_mode_"), key), bool(on))
        for key, on in said.items()
        if key.startswith("pooling_mode_")
    ]


def _pad_id(original: Original) -> int:
    pad = original.model.tokenizer.pad_token_id
    return 0 if pad is None else int(pad)


def _export(original: Original, pooling: str, folder: Path) -> None:
    """Write the optimised graph and its weights; the unoptimised one does not stay."""
    for needed in ("onnx", "onnxruntime"):
        if find_spec(needed) is None:
            raise _RefusedError(f"'{needed}' is not installed")
    import onnxruntime as ort
    import torch

    network = original.model[0].auto_model
    network.set_attn_implementation("eager")
    wanted = inspect.signature(network.forward).parameters
    known = original.model.tokenizer.model_input_names
    names = [name for name in _INPUTS if name in wanted and name in known]
    raw = folder / "raw.onnx"
    example = {name: torch.ones(2, 8, dtype=torch.long) for name in names}
    if "token_type_ids" in example:
        example["token_type_ids"] = torch.zeros(2, 8, dtype=torch.long)
    with torch.no_grad():
        torch.onnx.export(
            _pooled(network, names, pooling),
            tuple(example.values()),
            str(raw),
            dynamo=False,
            input_names=names,
            output_names=["vector"],
            dynamic_axes={name: {0: "texts", 1: "tokens"} for name in names} | {"vector": {0: "texts"}},
            opset_version=_OPSET,
        )
    options = compiled.session_options(ort)
    # Not the highest level, whose result fits only the processor it was made on.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(folder / GRAPH)
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", WEIGHTS)
    options.add_session_config_entry(
        "session.optimized_model_external_initializers_min_size_in_bytes", "1024"
    )
    ort.InferenceSession(str(raw), options, providers=["CPUExecutionProvider"])
    raw.unlink()


def _pooled(network: Any, names: list[str], pooling: str) -> Any:
    """The network with pooling and normalising behind it, as a torch module."""
    import torch

    class Pooled(torch.nn.Module):  # type: ignore[misc]  # torch is not followed by the type checker
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *inputs: Any) -> Any:
            given = dict(zip(names, inputs, strict=True))
            states = self.network(**given, return_dict=False)[0]
            if pooling == "cls":
                pooled = states[:, 0]
            else:
                mask = given["attention_mask"].unsqueeze(-1).to(states.dtype)
                pooled = (states * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(pooled, p=2.0, dim=1)

    return Pooled().eval()


def _rows(original: Original, prompt: str) -> list[bytes]:
    return [row.astype("<f4").tobytes() for row in original.encode(_PROBES, prompt)]


def _compared(folder: Path, sheet: Sheet, expected: dict[Role, list[bytes]]) -> Sheet:
    """The sheet with its probe, once copy and original agree on all probes in both roles."""
    engine = compiled.CompiledEngine(folder, sheet)
    for role, theirs in expected.items():
        # Together in one batch, so that padding is compared too.
        ours = engine.run(engine.read(_PROBES, role))
        for text, one, other in zip(_PROBES, ours, theirs, strict=True):
            if not compiled.alike(one, other, _TOLERANCE):
                raise _RefusedError(f"the compiled model differs from the original on {text[:20]!r}")
    return replace(sheet, probe=expected["document"][0].hex())
