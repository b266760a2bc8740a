"""The documents of `report.py` as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_LABEL: Final = 50


def _number(value: float, *, signed: bool = False) -> str:
    """Three digits without the leading zero: `.531`, `+.012`."""
    text = f"{value:+.3f}" if signed else f"{value:.3f}"
    return text.replace("0.", ".", 1)


def set_lines(name: str, found: Mapping[str, Any]) -> Iterator[str]:
    """One set: our recipes, others' figures beside them, the groups, the differences."""
    metrics: list[str] = found["metrics"]
    wide = max(16, *(len(metric) + 2 for metric in metrics))
    yield f"{name}: {found['title']}; {found['questions']} questions"
    yield from (f"  {note}" for note in (*found["notes"], *_import_notes(found["import"])))
    mean = "mean of groups ± standard error" if found["macro"] else "mean ± standard error"
    yield f"  {mean:<{_LABEL}}" + "".join(f"{metric:>{wide}}" for metric in metrics) + f"{'p50 ms':>9}"
    for recipe, row in found["recipes"].items():
        cells = "".join(_cell(row["figures"].get(metric), wide) for metric in metrics)
        yield f"  {'graphmem ' + recipe:<{_LABEL}}{cells}{row['ms']['p50']:>9.1f}"
    for anchor in found["anchors"]:
        where = f" ({anchor['of']})" if anchor["of"] else ""
        label = f"{anchor['kind']}: {anchor['system']}{where}"
        cells = "".join(
            f"{_number(anchor['figures'][metric]) + '      ':>{wide}}"
            if metric in anchor["figures"]
            else " " * wide
            for metric in metrics
        )
        yield f"  {label:<{_LABEL}}{cells}".rstrip()
    yield from _group_lines(found)
    yield from _difference_lines(found)


def _cell(figure: Mapping[str, float] | None, wide: int) -> str:
    if figure is None or not figure["questions"]:
        return " " * wide
    return f"{_number(figure['mean'])} ±{_number(figure['error'])}".rjust(wide)


def _import_notes(imported: Mapping[str, Any]) -> Iterator[str]:
    counts = imported["counts"]
    made = ", ".join(f"{row.get('created', 0)} {kind}" for kind, row in counts.items() if row.get("created"))
    lost = sum(row.get("rejected", 0) + row.get("skipped", 0) for row in counts.values())
    yield f"imported: {made} records; {imported['stubs']} stubs; {lost} not stored"
    if imported["findings"]:
        yield "findings: " + ", ".join(f"{count} {rule}" for rule, count in imported["findings"].items())


def _group_lines(found: Mapping[str, Any]) -> Iterator[str]:
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
    yield f"  {first + ' by group':<{_LABEL}}" + "".join(f"{group:>16}" for group in groups)
    for recipe, row in found["recipes"].items():
        cells = "".join(f"{_number(row['groups'][group][first]):>16}" for group in groups)
        yield f"  {'graphmem ' + recipe:<{_LABEL}}{cells}"


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
