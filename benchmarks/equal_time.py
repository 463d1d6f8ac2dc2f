"""Accuracy of sequence models that train for the same time.

    OMP_NUM_THREADS=1 python benchmarks/bench.py equal_time

Every model has the recipe's settings for the task, but as many epochs as its share of seconds
allows, found from a few steps. Data sets come from ANHARMONIC_DATA, else they are downloaded. Needs
anharmonic-papers for the tasks.
"""

from __future__ import annotations

import dataclasses
import functools
import statistics
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from harness.results import Result, caption, markdown_table

PACKAGES = ("torch",)
PAGES = {"equal-time": ("benchmarks/accuracy.md",)}
SECONDS = {"worms": 60, "spoken-digits": 120, "smnist": 300, "noise-padded-cifar10": 300}
"""Seconds of a training on one thread, by task."""
MODELS = ("LEM", "UnICORNN", "LinOSSNetwork", "LSTM")
SEEDS = range(3)


def cases(options: Namespace) -> dict[str, Callable[[], Result]]:
    return {
        f"{task}, {model}, seed {seed}": functools.partial(
            train, task, model, seed, 1 if options.quick else seconds
        )
        for task, seconds in SECONDS.items()
        for seed in SEEDS
        for model in MODELS
    }


def train(task: str, model: str, seed: int, seconds: float) -> Result:
    """Train for about so many seconds and return the test accuracy."""
    from anharmonic.train import RunEnvironment, fill, fit
    from anharmonic.train.estimate import expected_seconds

    with tempfile.TemporaryDirectory() as folder:
        environment = RunEnvironment(out=Path(folder), progress=False, threads=1)
        run = fill(model, task, {}, environment).run
        expected = expected_seconds(run, run.make_task(environment), environment)
        epochs = max(1, round(run.epochs * seconds / expected))
        found = fit(dataclasses.replace(run, seed=seed, epochs=epochs), environment)
    return {
        "task": task, "model": model, "seed": seed, "epochs": epochs, "test": found.test,
        "seconds": found.seconds,
    }  # fmt: skip


def tables(results: list[Result]) -> dict[str, str]:
    rows = [["task", "seconds", *MODELS]]
    for task, seconds in SECONDS.items():
        row = [task, str(seconds)]
        for model in MODELS:
            chosen = [one for one in results if (one["task"], one["model"]) == (task, model)]
            scores = [one["test"] for one in chosen]
            spread = f" ± {statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
            if scores:
                epochs, taken = (
                    statistics.median(one[name] for one in chosen) for name in ("epochs", "seconds")
                )
                row.append(f"{statistics.fmean(scores):.1f}{spread} ({epochs:.0f}, {taken:.0f} s)")
            else:
                row.append("-")
        if any(cell != "-" for cell in row[2:]):
            rows.append(row)
    about = "Test accuracy in percent, mean ± standard deviation; in brackets epochs and seconds; "
    return {"equal-time": f"{markdown_table(rows)}\n\n{about}{caption(results)}"}
