"""Measures the model while it trains, and leaves everything as it was.

Imported by ``fit`` only, because it needs Lightning.
"""

from __future__ import annotations

import json
import time
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from anharmonic._files import append_line
from anharmonic.diagnostics.base import Probe
from anharmonic.diagnostics.registry import measure
from anharmonic.ops.graph import Adjacency
from anharmonic.train import folder as folders
from anharmonic.train.finish import PreparedRun
from anharmonic.train.module import TrainingModule
from anharmonic.train.resume import random_states, restore_random_states
from anharmonic.train.training_state import TrainingState


class DiagnosticsCallback(Callback):
    """Adds a line to the run's ``diagnostics.jsonl`` before training and after epochs.

    Random states are given back, gradients and modes are not touched, and the time it takes is no
    part of the run's seconds (its memory may be part of the peak).

    Args:
        state: Holds the clock.
        probe: The data.
        prepared: Gives the environment with the names of diagnostics, and the folder.
    """

    def __init__(self, state: TrainingState, probe: Probe, prepared: PreparedRun) -> None:
        self._state, self._probe, self._epochs = state, probe, prepared.run.epochs
        self._names, self._every = (
            prepared.environment.diagnose,
            prepared.environment.diagnose_every,
        )
        self._path = prepared.folder / folders.DIAGNOSTICS

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Measures the initial weights."""
        if trainer.current_epoch == 0:
            self._measure(trainer, pl_module, 0)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Measures after every so many epochs, and after the last planned."""
        epoch = trainer.current_epoch + 1
        if epoch % self._every == 0 or epoch == self._epochs:
            self._measure(trainer, pl_module, epoch)

    def _measure(self, trainer: Trainer, pl_module: LightningModule, epoch: int) -> None:
        assert isinstance(pl_module, TrainingModule)
        if not trainer.is_global_zero:
            return
        started, states = time.monotonic(), random_states()
        try:
            device = pl_module.device
            inputs = tuple(_moved(entry, device) for entry in self._probe.inputs)
            probe = Probe(inputs, self._probe.loss)
            found = {"epoch": epoch, **measure(pl_module.model, probe, self._names)}
            append_line(self._path, json.dumps(found, allow_nan=False))
        finally:
            restore_random_states(states)
            self._state.exclude(time.monotonic() - started)


def _moved(entry: Any, device: torch.device) -> Any:
    return entry.to(device) if isinstance(entry, Tensor | Adjacency) else entry
