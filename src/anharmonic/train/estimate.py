"""How long a training will take, from a few of its steps."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from anharmonic.data.base import Batch, Batches, Task
from anharmonic.nn.resonators.model import Resonators
from anharmonic.train import machine
from anharmonic.train.evaluate import evaluate
from anharmonic.train.losses import summed_loss
from anharmonic.train.optim import make_optimizer
from anharmonic.train.run import Run, RunEnvironment

_STEPS = 3
_FEW_SEQUENCES = 16
# What a step costs beside its arithmetic, at most.
_OVERHEAD = 3e-4


def expected_seconds(run: Run, task: Task, environment: RunEnvironment) -> float:
    """Seconds that training and validation will take; at most, where the run may stop early.

    A few steps are done with a model of their own, and forgotten: nothing else changes.

    Args:
        run: The run.
        task: Its task.
        environment: Where it will be trained.

    Example:
        >>> from anharmonic.data import make_task
        >>> options = {"length": 10, "valid_size": 8, "test_size": 8}
        >>> run, task = Run("adding", "LEM", options), make_task("adding", options)
        >>> 0 < expected_seconds(run, task, RunEnvironment()) < 3600
        True
    """
    kind = machine.choose_device(environment.device)
    device = torch.device(kind)
    # Advice on the model's settings is given when it is trained.
    with (
        torch.random.fork_rng(),
        machine.torch_settings(kind, environment.threads),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        model = run.build_model(task).to(device)
        loaders = task.loaders(run.seed, run.batch_size)
        batches = loaders.train(0)
        if isinstance(model, Resonators):
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


def _seconds_of_features(model: Resonators, batch: Batch) -> float:
    """What the features of a batch cost, which is most of the time of a fit."""
    few = batch.x[:_FEW_SEQUENCES].numpy()
    drawn = model.features.fit(few)
    return _seconds(lambda _: drawn.transform(few)) * len(batch.x) / len(few)


def _seconds(work: Callable[[int], object]) -> float:
    work(0)  # the first time loads and allocates
    began = time.perf_counter()
    for index in range(1, 1 + _STEPS):
        work(index)
    return (time.perf_counter() - began) / _STEPS


def in_words(seconds: float) -> str:
    """A time, as coarse as it is known.

    Args:
        seconds: The time.

    Example:
        >>> [in_words(s) for s in (4, 45, 200, 5000, 30000)]
        ['a few seconds', 'about 50 s', 'about 3 min', 'about 83 min', 'about 8 h']
    """
    if seconds < 10:
        return "a few seconds"
    if seconds < 60:
        return f"about {max(10, 10 * round(seconds / 10 + 0.4))} s"
    if seconds < 2 * 3600:
        return f"about {round(seconds / 60)} min"
    return f"about {round(seconds / 3600)} h"
