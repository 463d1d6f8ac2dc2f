"""Training of models that are fitted in one pass on the CPU, without epochs or gradients."""

from __future__ import annotations

import time
import warnings
from datetime import UTC, datetime

import numpy as np
import torch
from torch import Tensor

from anharmonic.data.base import Batch, Loaders, Task
from anharmonic.data.scores import ScoreTable
from anharmonic.diagnostics import machine
from anharmonic.nn.resonators.model import Resonators
from anharmonic.train.losses import class_weights_of
from anharmonic.train.results import Result, result_of, rounded
from anharmonic.train.run import Run
from anharmonic.train.scoring import MOST_KEPT, evaluate

# Sequences per batch; does not affect the result.
_BATCH = 256


def fit_at_once(
    run: Run, task: Task, loaders: Loaders[Batch], model: Resonators
) -> tuple[Result, ScoreTable | None]:
    """Fit a model to the training data and test it."""
    started, began = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    weights = class_weights_of(run, task, loaders.train(0))
    sequences, targets, counts = [], [], []
    for batch in task.loaders(run.seed, _BATCH).train(0):
        ends = [batch.x.shape[1]] * len(batch.x) if batch.lengths is None else batch.lengths
        sequences += [x[: int(end)].numpy() for x, end in zip(batch.x, ends, strict=True)]
        counts.append(batch.weight)
        targets.append(batch.y if task.target == "class" else _in_units(batch))
    y = torch.cat(targets)
    with warnings.catch_warnings():
        # The solver warns about fewer sequences than features; the penalty handles that.
        warnings.filterwarnings("ignore", module="sklearn")
        # The seed of the oscillators, drawn as in the estimators.
        seed = int(np.random.RandomState(run.seed).randint(2**31 - 1))
        factors = None if weights is None else weights.double()[y].numpy()
        if factors is not None:
            factors /= factors.mean()
        copies = None
        if counts[0] is not None:
            copies = torch.cat([one for one in counts if one is not None]).double().numpy()
        model.fit(sequences, y.numpy(), seed=seed, weights=factors, copies=copies)
    seconds = time.perf_counter() - began
    model.fitted = None
    cpu, curve = torch.device("cpu"), {"epoch": [1.0]}
    if len(loaders.valid):
        valid, loss, *_ = evaluate(model, loaders.valid, task, cpu)
        curve |= {"valid": [rounded(valid)], "valid_loss": [rounded(loss)]}
    return result_of(
        run,
        task,
        loaders,
        evaluate(model, loaders.test, task, cpu, MOST_KEPT),
        weights,
        valid=valid if len(loaders.valid) else None,
        parameters=model.num_fitted,
        seconds=round(seconds, 3),
        memory_mb=round(machine.peak_memory_mb("cpu"), 1),
        epochs_run=1,
        best_epoch=1,
        stopped="finished",
        device="cpu",
        devices=1,
        hardware=machine.hardware("cpu"),
        versions=machine.versions(),
        commit=machine.commit(),
        started=started,
        curve=curve,
    )


def _in_units(batch: Batch) -> Tensor:
    """Convert targets to the units of the model's outputs; `Batch.select` is the inverse."""
    if batch.shift is None or batch.scale is None:
        return batch.y
    return (batch.y - batch.shift) / batch.scale
