"""Accuracy of sequence models that train for the same time.

    OMP_NUM_THREADS=1 python benchmarks/bench.py equal_time

Every model has the recipe's settings for the task, but as many epochs as its share of seconds
allows, found from a few steps, and at least one. Of the image sets 10,000 images train. Data sets
come from ANHARMONIC_DATA, else they are downloaded. Needs anharmonic-papers for the tasks.
"""

import itertools
import statistics
from typing import Any

from harness.results import Cases, Options, Result, caption, grouped, markdown_table, spread
from seeds import measure

FEW = {"train_size": 10_000, "valid_size": 1_000, "test_size": 2_000}
"""Images so few that an LSTM finishes an epoch."""
TASKS: dict[str, tuple[int, dict[str, Any]]] = {
    "worms": (60, {}),
    "spoken-digits": (120, {"unit_rms": False}),  # as recorded, loud and quiet
    "smnist": (200, FEW),
    "noise-padded-cifar10": (200, {"form": "jpeg", **FEW}),
}
"""Seconds of a training on one thread, and options, by task."""
MODELS = ("LEM", "UnICORNN", "LinOSSNetwork", "LSTM")
SEEDS = range(3)


def cases(options: Options) -> Cases:
    found: Cases = {}
    for task, seed, model in itertools.product(TASKS, SEEDS, MODELS):
        seconds, given = TASKS[task]
        allowed = 1 if options.quick else seconds
        found[f"{task}, {model}, seed {seed}"] = (measure, task, model, seed, None, given, allowed)
    return found


def tables(results: list[Result]) -> dict[str, str]:
    rows, found = [["task", "seconds allowed", *MODELS]], grouped(results, "task", "model")
    for task, (seconds, _) in TASKS.items():
        cells = [_cell(found.get((task, model))) for model in MODELS]
        if any(cell != "-" for cell in cells):
            rows.append([task, str(seconds), *cells])
    about = (
        "Test accuracy in percent, mean ± standard deviation over seeds; in brackets epochs and "
        "seconds of training, medians over seeds; "
    )
    return {"equal-time": f"{markdown_table(rows)}\n\n{about}{caption(results)}"}


def _cell(seeds: list[Result] | None) -> str:
    if seeds is None:
        return "-"
    epochs, taken = (statistics.median(one[key] for one in seeds) for key in ("epochs", "seconds"))
    return f"{spread([one['test'] for one in seeds])} ({epochs:.0f}, {taken:.0f} s)"
