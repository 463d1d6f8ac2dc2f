r"""How fast a training step and a streamed step of a few sequences are, beside ``torch.nn.LSTM``.

python benchmarks/small_batches.py --json small_batches.json --readme benchmarks/README.md
"""

from __future__ import annotations

import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from anharmonic import diagnostics
from harness import isolated, speed_report
from harness.cases import LSTM, OURS, Case, work
from harness.speed import STREAM_STEPS, no_garbage_collection

MODELS = ("LEM", "CoRNN", "UnICORNN")
STREAM = 1
"""The number of steps that stands for a stream, as in ``Case``."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = speed_report.parser(__doc__, "small-batches")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 2, 3, 4, 8])
    parser.add_argument("--hidden", type=int, nargs="+", default=[32, 128])
    parser.add_argument(
        "--steps", type=int, nargs="+", default=[100, 1000, STREAM], help="1 streams single steps"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=1.0, help="of turns per batch size")
    parser.add_argument("--from-json", type=Path, help="numbers measured before")
    options = parser.parse_args(argv)
    if options.from_json is not None:
        result = json.loads(options.from_json.read_text("utf-8"))
    else:
        result = measure(options)
    speed_report.write(options, result, report(result))
    return 0


def measure(options: Any) -> dict[str, Any]:
    """Return machine, versions and the median seconds of every case."""
    measurements = []
    sizes = itertools.product(options.hidden, options.steps, options.threads)
    for hidden, steps, threads in sizes:
        title = f"H {hidden}, T {steps}, {speed_report.plural(threads, 'thread')}"
        print(title, file=sys.stderr, flush=True)
        measurements += isolated.run(
            title,
            "small_batches:times",
            models=options.models,
            batches=[2] if options.quick else options.batches,
            hidden=8 if options.quick else hidden,
            steps=min(steps, 20) if options.quick else steps,
            threads=threads,
            seconds=0.0 if options.quick else options.seconds,
        )
    return {
        "machine": diagnostics.cpu(),
        "versions": diagnostics.versions(["torch"]),
        "measurements": measurements,
    }


def times(
    models: Sequence[str],
    batches: Sequence[int],
    hidden: int,
    steps: int,
    threads: int,
    seconds: float,
) -> list[dict[str, Any]]:
    """Time all models on every batch size in this process.

    Args:
        models: Names of layers.
        batches: Numbers of sequences; a stream has only one.
        hidden: Hidden size of all.
        steps: Length of the sequences; 1 streams single steps.
        threads: Threads of this process from now on.
        seconds: How long the entrants take turns; at least five each.

    Returns:
        One entry per batch size, with the median seconds of every entrant.
    """
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    streams = steps == STREAM
    entries = []
    for batch in [1] if streams else batches:
        turns: dict[str, Callable[[], None] | None] = {}
        length = STREAM_STEPS if streams else steps
        for model in (LSTM, *models):
            entrant = LSTM if model == LSTM else OURS
            name = models[0] if model == LSTM else model
            case = Case("", name, 1, batch, hidden, steps, 1, 1)
            turns[model] = work(entrant, case, "streaming" if streams else "training", length)
        medians = _medians(turns, seconds)
        per_turn = length if streams else 1
        entries.append(
            {
                "batch": batch,
                "hidden": hidden,
                "steps": steps,
                "threads": threads,
                "seconds": {name: value / per_turn for name, value in medians.items()},
            }
        )
    return entries


def _medians(turns: dict[str, Any], seconds: float) -> dict[str, float]:
    """Let all take turns for a while; the first two turns warm up."""
    taken: dict[str, list[float]] = {name: [] for name in turns}
    with no_garbage_collection():
        end = time.perf_counter() + seconds
        number = 0
        while number < 7 or time.perf_counter() < end:
            for name, turn in turns.items():
                start = time.perf_counter()
                turn()
                if number > 1:
                    taken[name].append(time.perf_counter() - start)
            number += 1
    return {name: statistics.median(values) for name, values in taken.items()}


def report(result: dict[str, Any]) -> str:
    """Return the table: the LSTM's time by ours, one row per size, one column per batch size."""
    measurements = result["measurements"]
    batches = sorted({one["batch"] for one in measurements})
    table = [["case", *(f"B {batch}" for batch in batches)]]
    rows: dict[str, dict[int, str]] = {}
    for one in measurements:
        length = "one step" if one["steps"] == STREAM else f"T {one['steps']:,}"
        for model, seconds in one["seconds"].items():
            if model != LSTM:
                threads = speed_report.plural(one["threads"], "thread")
                row = f"{model}, H {one['hidden']}, {length}, {threads}"
                ratio = one["seconds"][LSTM] / seconds
                rows.setdefault(row, {})[one["batch"]] = f"{ratio:.2f}"
    for row in sorted(rows, key=lambda row: MODELS.index(row.split(",")[0])):
        table.append([row, *(rows[row].get(batch, "") for batch in batches)])
    return f"{speed_report.markdown_table(table)}\n\n{speed_report.about(result)}"


if __name__ == "__main__":
    raise SystemExit(main())
