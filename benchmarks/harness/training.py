"""One training by the recipe, for the questions that compare many."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anharmonic.train import RunEnvironment, estimate, fill, fit
from harness.results import Result


def trained(
    task: str,
    model: str,
    seed: int,
    *,
    epochs: int | None = None,
    seconds: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Result:
    """Train on one thread and return the test score, the epochs and the seconds.

    Args:
        task: Its name.
        model: Its name.
        seed: Of weights, order of the data and dropout.
        epochs: None for those of the recipe.
        seconds: If given, as many epochs as take about so long, at least one.
        options: Of the task.
    """
    given: dict[str, Any] = {"task_options": dict(options or {})}
    if epochs:
        given["epochs"] = epochs
    with tempfile.TemporaryDirectory() as folder:
        environment = RunEnvironment(out=Path(folder), progress=False, threads=1)
        run = dataclasses.replace(fill(model, task, given, environment).run, seed=seed)
        if seconds is not None:
            expected = estimate.expected_seconds(run, run.make_task(environment), environment)
            run = dataclasses.replace(run, epochs=max(1, round(run.epochs * seconds / expected)))
        found = fit(run, environment)
    return {
        "task": task, "model": model, "seed": seed, "epochs": run.epochs, "test": found.test,
        "seconds": found.seconds,
    }  # fmt: skip
