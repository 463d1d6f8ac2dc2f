"""How fast the layers are on this CPU, beside ``torch.nn.LSTM`` and others.

python benchmarks/cpu.py --json benchmarks/cpu.json --readme README.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anharmonic.cli import distinct, field_options, parse

PROG = "python benchmarks/cpu.py"


@dataclass(frozen=True)
class Bench:
    """What to time, and where the numbers go."""

    cases: tuple[str, ...] = ()
    """Only these cases, e.g. lem-b32 cornn-long. Default: all."""
    threads: tuple[int, ...] = (1, 2)
    """Numbers of threads."""
    repeats: int = 7
    """Turns of which the median is taken, at least 1."""
    rounds: int = 3
    """Medians of which the best is taken, at least 1."""
    quick: bool = False
    """Small sizes, to try the benchmark itself; its times say nothing."""
    from_json: Path | None = None
    """Measure nothing; take the numbers of this file."""
    json: Path | None = None
    """File for all numbers, with machine and versions; an interrupted benchmark goes on from it."""
    markdown: Path | None = None
    """File for the tables."""
    readme: tuple[Path, ...] = ()
    """Pages whose block <!-- bench --> gets the short table."""


def run(words: Sequence[str]) -> int:
    """Runs the command.

    Args:
        words: What was typed after the file's name.

    Returns:
        The exit code: 0, whatever the times are.

    Raises:
        ValueError: If an option is wrong.
        FileNotFoundError: If a page or the numbers are not there.
    """
    from anharmonic.train import write_atomically
    from harness import speed, speed_report

    about = "Times training, inference and streaming, in turns with nn.LSTM at equal hidden size."
    values = parse(words, {"bench": field_options(Bench)}, PROG, about)
    distinct("--cases", values["cases"])
    distinct("--threads", values["threads"])
    file = values["json"]

    def keep(result: dict[str, Any]) -> None:
        if file is not None:
            write_atomically(file, json.dumps(result, indent=1) + "\n")

    if values["from_json"] is not None:
        result = speed.read(values["from_json"])
        keep(result)
    else:
        cases = speed.chosen(values["cases"])
        begun = speed.read(file) if file is not None and file.exists() else None
        result = speed.measure(
            [case.quick() for case in cases] if values["quick"] else cases,
            threads=values["threads"],
            repeats=values["repeats"],
            rounds=values["rounds"],
            say=lambda line: print(line, file=sys.stderr, flush=True),
            begun=begun,
            keep=keep,
        )
    print("\n".join([speed_report.terminal(result), *speed_report.missed(result)]))
    if values["quick"]:
        print("--quick: the sizes are so small that these times say nothing.", file=sys.stderr)
    if values["markdown"] is not None:
        values["markdown"].write_text(speed_report.markdown(result) + "\n", "utf-8")
    for page in values["readme"]:
        speed_report.fill(page, "bench", speed_report.summary(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(run(sys.argv[1:]))
