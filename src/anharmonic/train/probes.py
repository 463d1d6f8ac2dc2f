"""Diagnostics during a training: the probe data and the log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import Tensor

from anharmonic._files import append_line
from anharmonic.data.base import Batch, Batches
from anharmonic.diagnostics.base import Probe
from anharmonic.diagnostics.registry import measure
from anharmonic.ops.graph import Adjacency
from anharmonic.train.loop import Callback, Loop
from anharmonic.train.losses import summed_loss
from anharmonic.train.results import read_lines

SEQUENCES = 8
"""Largest number of sequences in a probe."""


def probe_of(batches: Batches[Any], loss: str) -> Probe:
    """Return the first sequences of a data set, or its first batch of graphs.

    Sequences of unequal length are cut to the shortest. The loss is the task's loss at the last
    kept step, with the target of the sequence or of this step.

    Example:
        >>> import torch
        >>> batch = Batch(torch.zeros(9, 7, 1), torch.zeros(9, 2), None)
        >>> probe_of(Batches(1, lambda i: batch), "squared_error").inputs[0].shape
        torch.Size([8, 7, 1])
    """
    batch = batches[0]
    if not isinstance(batch, Batch):
        return Probe(batch.inputs)
    few = batch.cut(0, SEQUENCES)
    x, y = few.x, few.y
    if few.lengths is not None:
        x = x[:, : int(few.lengths.min())]
    if y.dim() == (2 if loss == "cross_entropy" else 3):  # a target at every step
        y = y[:, x.shape[1] - 1]
    few = few._replace(x=x, y=y, lengths=None, elapsed=None)

    def last(prediction: Tensor) -> Tensor:
        here = few.to(prediction.device)
        return summed_loss(here.select(prediction), here, loss)

    return Probe((x,), last)


class Diagnostics(Callback):
    """Appends a line to a file before training and after epochs, without affecting the training.

    Args:
        path: The run's ``diagnostics.jsonl``.
        probe: The probe data.
        names: What to measure.
        every: Epochs between measurements; there is always one before the first and after the last
            epoch.
    """

    def __init__(self, path: Path, probe: Probe, names: tuple[str, ...], every: int) -> None:
        self._path, self._probe, self._names, self._every = path, probe, names, every

    def on_start(self, loop: Loop) -> None:
        """Measure the initial weights."""
        if loop.epoch == 0:
            self._measure(loop)

    def measure(self, loop: Loop) -> dict[str, float]:
        """Measure before the epoch is saved, so that after a kill both are repeated."""
        if loop.epoch % self._every == 0 or loop.epoch == loop.run.epochs:
            self._measure(loop)
        return {}

    def on_end(self, loop: Loop, finished: bool) -> None:
        """Measure the last epoch of a training that stopped early."""
        if finished and loop.stopped_early and loop.epoch % self._every:
            self._measure(loop)

    def _measure(self, loop: Loop) -> None:
        with loop.paused():
            inputs = tuple(
                entry.to(loop.device) if isinstance(entry, Tensor | Adjacency) else entry
                for entry in self._probe.inputs
            )
            found = measure(loop.model, Probe(inputs, self._probe.loss), self._names)
            line = json.dumps({"epoch": loop.epoch, **found}, allow_nan=False)
            append_line(self._path, line)


def read_diagnostics(path: Path) -> list[dict[str, Any]]:
    """Read the measurements of a training by epoch; return an empty list if the file is missing.

    If an epoch was measured twice because of a kill, the last measurement counts. Truncated lines
    are skipped with a warning.

    Args:
        path: The file from ``RunEnvironment(diagnose=...)``.

    Returns:
        A dictionary for each epoch measured: "epoch" (0 before training) and the diagnostics.

    Example:
        >>> read_diagnostics(Path("no-such-file.jsonl"))
        []
    """

    def read(line: str) -> tuple[int, dict[str, Any]]:
        entry = json.loads(line)
        return int(entry["epoch"]), entry

    found = dict(read_lines(path, read, "measurement")) if path.exists() else {}
    return [found[epoch] for epoch in sorted(found)]
