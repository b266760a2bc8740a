"""Cold start of commands against the bare interpreter, in one run.

    python benchmarks/bench_start.py [--memories 10000] [--repeats 15] [--json]

The package is built as a wheel and put into a fresh environment that sees this one's libraries, because
an editable install slows every start of Python and would flatter the ratios. Searches run on a store of
`--memories` memories with vectors; the model is compiled before anything is measured. Each round starts
every command once, so that noise falls on all alike; the figure is the median.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from pathlib import Path

from _data import mixed_records

ROOT = Path(__file__).parent.parent
TARGETS = {"--help": 7, "validate": 12, "search (lexical)": 10, "search (semantic)": 40}


def install(folder: Path) -> Path:
    """A fresh environment with the package as a wheel; its `bin` folder."""
    wheels = folder / "wheels"
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", wheels, ROOT],
        check=True,
    )  # fmt: skip
    home = folder / "venv"
    venv.create(home, with_pip=False, symlinks=os.name == "posix")
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"
    wheel = next(wheels.glob("graphmem-*.whl"))
    target = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "pip", "-q", "--python", python, "install", "--no-deps", wheel], check=True
    )
    # Path files inside a folder named by a path file are not read, so no editable hook comes along.
    (Path(target) / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return scripts


def milliseconds(command: list[str], env: dict[str, str], cwd: Path) -> float:
    """How long a command takes from start to end."""
    began = time.perf_counter()
    subprocess.run(
        command, env=env, cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return (time.perf_counter() - began) * 1000


def measure(memories: int, repeats: int) -> dict[str, float]:
    """The median of each command, in milliseconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scripts = install(folder)
        gmem, python = str(scripts / "gmem"), str(scripts / "python")
        env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "GRAPHMEM"))}
        env["GRAPHMEM_HOME"] = str(folder / "home")
        small, large = folder / "small.jsonl", folder / "large.jsonl"
        small.write_text("\n".join(mixed_records(30)) + "\n")
        wanted = [line for line in mixed_records(memories * 3) if '"type": "memory"' in line]
        large.write_text("\n".join(wanted) + "\n")
        work = folder / "empty"
        work.mkdir()
        subprocess.run(
            [gmem, "import", str(large), "--json"], env=env, cwd=work, check=True, stdout=subprocess.DEVNULL
        )
        commands = {
            "python -c pass": [python, "-c", "pass"],
            "--help": [gmem, "--help"],
            "validate": [gmem, "validate", str(small)],
            "search (lexical)": [gmem, "search", "--recipe", "lexical", "token cache"],
            "search (semantic)": [gmem, "search", "--recipe", "semantic", "token cache"],
        }
        times: dict[str, list[float]] = {label: [] for label in commands}
        for number in range(repeats + 1):
            for label, command in commands.items():
                took = milliseconds(command, env, work)
                if number:
                    times[label].append(took)
        return {label: statistics.median(values) for label, values in times.items()}


def main() -> None:
    """Prints the medians and their ratios to the bare interpreter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    medians = measure(asked.memories, asked.repeats)
    bare = medians["python -c pass"]
    rows = {
        label: {"ms": round(value, 1), "ratio": round(value / bare, 1), "target": TARGETS.get(label)}
        for label, value in medians.items()
    }
    if asked.json:
        print(json.dumps(rows))
        return
    print(f"{'command':<20} {'ms':>8} {'ratio':>6} {'target':>6}")
    for label, row in rows.items():
        print(f"{label:<20} {row['ms']:>8} {row['ratio']:>6} {row['target'] or '':>6}")


if __name__ == "__main__":
    main()
