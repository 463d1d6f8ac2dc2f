"""Trainings: by the recipe, for the questions that compare many, and by one cycle of the rate."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

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

    The epochs are those of the recipe unless ``epochs`` is given; with ``seconds`` as many as take
    about so long, at least one. ``options`` are those of the task.
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


def descent(model: nn.Module, rate: float, steps: int) -> Callable[[Tensor], None]:
    """Return a step of Adam on a loss, with clipped gradients and one cycle of the rate."""
    optimizer = torch.optim.Adam(model.parameters(), rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)

    def step(loss: Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()

    return step
