"""The documents of `report.py` as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_GROUP: Final = 14
_HEAD: Final = "mean of groups ± standard error"


def _number(value: float, *, signed: bool = False) -> str:
    """Three digits without the leading zero: `.531`, `+.012`."""
    text = f"{value:+.3f}" if signed else f"{value:.3f}"
    return text.replace("0.", ".", 1)


def set_lines(name: str, found: Mapping[str, Any]) -> Iterator[str]:
    """One set: our recipes, others' figures beside them, the groups, the differences."""
    yield f"{name}: {found['title']}; {found['questions']} questions"
    yield from (f"  {note}" for note in (*found["notes"], *_import_notes(found["import"])))
    labels = [_anchor_label(anchor) for anchor in found["anchors"]]
    label = 2 + max(len(one) for one in (*labels, _HEAD))
    yield from _figure_lines(found, label)
    yield from _group_lines(found, label)
    yield from _difference_lines(found)


def _anchor_label(anchor: Mapping[str, Any]) -> str:
    where = f" ({anchor['of']})" if anchor["of"] else ""
    return f"{anchor['kind']}: {anchor['system']}{where}"


def _figure_lines(found: Mapping[str, Any], label: int) -> Iterator[str]:
    metrics: list[str] = found["metrics"]
    wide = max(14, *(len(metric) + 2 for metric in metrics))
    head = f"{'mean of groups' if found['macro'] else 'mean'} ± standard error"
    yield f"  {head:<{label}}" + "".join(f"{metric:>{wide}}" for metric in metrics) + f"{'p50 ms':>9}"
    for recipe, row in found["recipes"].items():
        cells = "".join(_cell(row["figures"].get(metric), wide) for metric in metrics)
        yield f"  {'graphmem ' + recipe:<{label}}{cells}{row['ms']['p50']:>9.1f}"
    for anchor in found["anchors"]:
        cells = "".join(_anchor_cell(anchor["figures"].get(metric), wide) for metric in metrics)
        yield f"  {_anchor_label(anchor):<{label}}{cells}".rstrip()


def _anchor_cell(value: float | None, wide: int) -> str:
    return " " * wide if value is None else f"{_number(value) + ' ' * 6:>{wide}}"


def _cell(figure: Mapping[str, float] | None, wide: int) -> str:
    if figure is None:
        return " " * wide
    return f"{_number(figure['mean'])} ±{_number(figure['error'])}".rjust(wide)


def _import_notes(imported: Mapping[str, Any]) -> Iterator[str]:
    counts = imported["counts"]
    made = ", ".join(f"{row.get('created', 0)} {kind}" for kind, row in counts.items() if row.get("created"))
    lost = sum(row.get("rejected", 0) + row.get("skipped", 0) for row in counts.values())
    yield f"imported: {made} records; {imported['stubs']} stubs; {lost} not stored"
    if imported["findings"]:
        yield "findings: " + ", ".join(f"{count} {rule}" for rule, count in imported["findings"].items())


def _group_lines(found: Mapping[str, Any], label: int) -> Iterator[str]:
    first = found["metrics"][0]
    groups = sorted(
        {
            group
            for row in found["recipes"].values()
            for group, figures in row["groups"].items()
            if first in figures
        }
    )
    if len(groups) < 2:
        return
    yield f"  {first + ' by group':<{label}}" + "".join(f"{group:>{_GROUP}}" for group in groups)
    for recipe, row in found["recipes"].items():
        cells = "".join(f"{_number(row['groups'][group][first]):>{_GROUP}}" for group in groups)
        yield f"  {'graphmem ' + recipe:<{label}}{cells}"


def _difference_lines(found: Mapping[str, Any]) -> Iterator[str]:
    rows: Sequence[Mapping[str, Any]] = found["differences"]
    if not rows:
        return
    yield "  paired differences, with their 95 % interval (* where it leaves out 0)"
    for row in rows:
        yield f"    {row['after'] + ' - ' + row['before']:<24}{difference_text(row)}"


def difference_text(row: Mapping[str, Any]) -> str:
    """One paired difference."""
    sure = "*" if row["low"] > 0 or row["high"] < 0 else " "
    interval = f"[{_number(row['low'], signed=True)}, {_number(row['high'], signed=True)}]"
    change = f"{row['higher']} higher, {row['lower']} lower of {row['questions']}"
    return (
        f"{row['metric']:<20}{_number(row['mean'], signed=True)} ±{_number(row['error'])}"
        f"  {interval}{sure}  {change}"
    )


def run_lines(run: Mapping[str, Any]) -> Iterator[str]:
    """A whole run."""
    if run["sets"]:
        yield f"encoder: {run['encoder'] or 'none, by words only'}"
    for name, why in run["skipped"].items():
        yield f"{name}: skipped, {why}"
    for name, found in run["sets"].items():
        yield ""
        yield from set_lines(name, found)


def comparison_lines(compared: Mapping[str, Any]) -> Iterator[str]:
    """The second run minus the first."""
    if not compared:
        yield "the two runs have no set in common"
    for name, found in compared.items():
        yield f"{name}: {found['title']}"
        for recipe, rows in found["recipes"].items():
            for row in rows:
                yield f"  {recipe:<12}{difference_text(row)}"
