"""A training by the recipe, for the questions that compare many."""

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
    file: Path | None = None,
) -> Result:
    """Train on one thread; return the test score, that of a trivial answer, epochs and seconds.

    The epochs are those of the recipe unless ``epochs`` is given; with ``seconds`` as many as take
    about so long, at least one. ``options`` are those of the task, ``file`` is that of "file".
    """
    given: dict[str, Any] = {"task_options": dict(options or {})}
    if epochs:
        given["epochs"] = epochs
    with tempfile.TemporaryDirectory() as folder:
        environment = RunEnvironment(out=Path(folder), file=file, progress=False, threads=1)
        run = dataclasses.replace(fill(model, task, given, environment).run, seed=seed)
        if seconds is not None:
            expected = estimate.expected_seconds(run, run.make_task(environment), environment)
            run = dataclasses.replace(run, epochs=max(1, round(run.epochs * seconds / expected)))
        found = fit(run, environment)
    return {
        "task": task, "model": model, "seed": seed, "epochs": run.epochs, "test": found.test,
        "trivial": found.trivial, "seconds": found.seconds,
    }  # fmt: skip
