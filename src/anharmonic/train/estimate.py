"""Estimate of a training's duration from a few of its steps."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from anharmonic.data.base import Batch, Batches, Task
from anharmonic.diagnostics import machine
from anharmonic.nn.registry import model_kind
from anharmonic.ops import use_precision
from anharmonic.train.losses import summed_loss
from anharmonic.train.optim import make_optimizer
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.scoring import evaluate

_STEPS = 3
_FEW_SEQUENCES = 16
# Seconds per step spent in the loop itself; measured 0.20 to 0.25 ms of CPU time.
_OVERHEAD = 2.5e-4


def expected_seconds(run: Run, task: Task, environment: RunEnvironment) -> float:
    """Estimate the seconds of training and validation; an upper bound with early stopping.

    The estimate runs a few steps with a separate model and has no side effects.

    Example:
        >>> from anharmonic.data import make_task
        >>> options = {"length": 10, "valid_size": 8, "test_size": 8}
        >>> run, task = Run("adding", "LEM", options), make_task("adding", options)
        >>> 0 < expected_seconds(run, task, RunEnvironment()) < 3600
        True
    """
    kind = machine.choose_device(environment.device)
    device = torch.device(kind)
    # Training itself gives advice on the model's settings.
    with (
        torch.random.fork_rng(),
        machine.torch_settings(kind, environment.threads),
        use_precision(run.precision),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        model = run.build_model(task).to(device)
        loaders = task.loaders(run.seed, run.batch_size)
        batches = loaders.train(0)
        if model_kind(run.model) == "fitted":
            return len(batches) * _seconds_of_features(model, batches[0])
        optimizer = make_optimizer(run, model)

        def step(index: int) -> None:
            batch = batches[index % len(batches)].to(device)
            optimizer.zero_grad(set_to_none=True)
            loss = summed_loss(batch.select(model(*batch.inputs)), batch, task.loss)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            loss.item()  # waits for a GPU

        def look(index: int) -> None:
            one: Batches[Any] = Batches(1, lambda _: loaders.valid[index % len(loaders.valid)])
            evaluate(model, one, task, device)

        epoch = len(batches) * (_seconds(step) + _OVERHEAD)
        if len(loaders.valid):
            epoch += len(loaders.valid) * _seconds(look)
    return run.epochs * epoch


def _seconds_of_features(model: Any, batch: Batch) -> float:
    """Measure the seconds for a batch's features, which dominate a fit."""
    few = batch.x[:_FEW_SEQUENCES].numpy()
    drawn = model.new_features().fit(few)
    return _seconds(lambda _: drawn.transform(few)) * len(batch.x) / len(few)


def _seconds(work: Callable[[int], object]) -> float:
    work(0)  # the first call loads and allocates
    began = time.perf_counter()
    for index in range(1, 1 + _STEPS):
        work(index)
    return (time.perf_counter() - began) / _STEPS
