"""What happens after every epoch: validate, keep the best weights, stop early, save.

Imported by ``fit`` only, because it needs Lightning.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from anharmonic.data.base import Batches, Task
from anharmonic.data.metrics import TaskMetric
from anharmonic.diagnostics.machine import peak_memory_mb
from anharmonic.train import machine, results
from anharmonic.train.evaluate import evaluate
from anharmonic.train.launch import leave_on_sigterm
from anharmonic.train.module import TrainingModule
from anharmonic.train.resume import random_states, restore_random_states

# Writing the state takes longer than the few steps of an epoch of little data.
_SECONDS_BETWEEN_SAVES = 1.0


class TrainingState(Callback):
    """Validates and saves after every epoch, and carries what a resumed run needs.

    The state is saved once a second at most, and after the last epoch.

    Args:
        valid: Validation batches; where there are none, the last epoch counts as best.
        task: The task, which has the metric.
        resume_path: The resume file.
        circumstances: What resuming should find unchanged (versions, device, threads).
        watch: What else is measured of the model after every epoch, by name; None for nothing.
    """

    def __init__(
        self,
        valid: Batches[Any],
        task: Task,
        resume_path: Path,
        circumstances: dict[str, str],
        watch: Callable[[], dict[str, float]] | None = None,
    ) -> None:
        self._valid = valid
        self._watch = watch
        self._task, self.metric = task, task.metric
        self.higher_is_better = TaskMetric(task.metric).higher_is_better
        self._resume_path = resume_path
        self._random: list[dict[str, Any]] | None = None
        self._saved_at = -math.inf
        self._sitting_started = time.monotonic()
        self._seconds_before = 0.0
        self._memory_before = 0.0
        self.circumstances = circumstances
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        # Of the first sitting's start: a checkout may move on while a run trains.
        self.versions = machine.versions()
        self.commit = machine.commit()
        self.curve: dict[str, list[float]] = {"epoch": [], "train_loss": []}
        self.best_epoch = 0
        self.best_weights: dict[str, Tensor] = {}
        self.stopped_early = False
        self.interrupted = False

    @property
    def state_key(self) -> str:
        """The name of its entry in a resume file, where it stays what the first releases wrote."""
        return "Keeper"

    @property
    def seconds(self) -> float:
        """Time in training and validation, over all sittings."""
        return self._seconds_before + time.monotonic() - self._sitting_started

    def exclude(self, seconds: float) -> None:
        """Takes time that was spent on something else out of the clock.

        Args:
            seconds: How much.
        """
        self._sitting_started += seconds

    def memory_mb(self, device: str) -> float:
        """Peak memory over all sittings."""
        return max(self._memory_before, peak_memory_mb(device))

    @property
    def best_valid(self) -> float:
        """The best epoch's validation value; NaN before the first epoch's end."""
        return self._at_best("valid")

    def _at_best(self, name: str) -> float:
        return self.curve[name][self.best_epoch - 1] if self.best_epoch else math.nan

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Starts the clock of this sitting."""
        leave_on_sigterm(trainer)
        self._sitting_started = time.monotonic()
        assert isinstance(pl_module, TrainingModule)
        pl_module.saved_epoch = len(self.curve["epoch"])

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Gives back the random states of the last epoch's end.

        Done before every epoch, resumed or not: whatever is drawn in between (by validation, or by
        making loaders) then does not matter.
        """
        if self._random is not None and len(self._random) == trainer.world_size:
            restore_random_states(self._random[trainer.global_rank])

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Validates, compares with the best, saves."""
        assert isinstance(pl_module, TrainingModule)
        run = pl_module.run
        self._random = _gathered(trainer, random_states())
        epoch = trainer.current_epoch + 1
        median, largest = pl_module.epoch_norms()
        entries = {"epoch": epoch, "train_loss": pl_module.epoch_loss()}
        entries |= self._validated(trainer, pl_module)
        entries |= {"grad_norm": median, "grad_norm_max": largest}
        if self._watch is not None:
            entries |= self._watch()
        better = self._is_better(run.select, entries)
        for name, entry in entries.items():
            # (What an older version began to record without a name goes on without it.)
            if epoch == 1 or name in self.curve:
                self.curve.setdefault(name, []).append(entry)
        if better:
            self.best_epoch = epoch
        if better and len(self._valid):
            self.best_weights = {
                name: tensor.detach().cpu().clone()
                for name, tensor in pl_module.judged_model.state_dict().items()
            }
        if run.patience is not None and epoch - self.best_epoch >= run.patience:
            self.stopped_early = epoch < run.epochs
            trainer.should_stop = True
        over = trainer.should_stop or epoch == run.epochs
        waited = time.monotonic() - self._saved_at >= _SECONDS_BETWEEN_SAVES
        if over or waited:
            trainer.save_checkpoint(self._resume_path, weights_only=False)
            self._saved_at, pl_module.saved_epoch = time.monotonic(), epoch

    def _validated(self, trainer: Trainer, pl_module: TrainingModule) -> dict[str, float]:
        if not len(self._valid):
            return {}
        scores = evaluate(pl_module.judged_model, self._valid, self._task, pl_module.device)
        # All devices compute them, the first one's count: they must agree when to stop.
        metric, loss, _ = trainer.strategy.broadcast(tuple(scores), src=0)
        for what, value in ((f"validation {self.metric}", metric), ("validation loss", loss)):
            if not math.isfinite(value):
                steps = (trainer.current_epoch + 1) * int(trainer.num_training_batches)
                raise pl_module.diverged(what, value, steps)
        return {"valid": float(metric), "valid_loss": float(loss)}

    def _is_better(self, select: str, new: dict[str, float]) -> bool:
        """Whether an epoch is better than the best; of equals the later is."""
        if self.best_epoch == 0 or not len(self._valid):
            return True
        loss, least = new["valid_loss"], math.inf
        if "valid_loss" in self.curve:
            least = self._at_best("valid_loss")
        if select == "loss":
            return loss <= least
        value, best = new["valid"], self.best_valid
        if value == best:
            return loss <= least
        return value > best if self.higher_is_better else value < best

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Remembers that Ctrl-C was pressed, because Lightning turns it into an exit."""
        self.interrupted = isinstance(exception, KeyboardInterrupt)

    def state_dict(self) -> dict[str, Any]:
        """What the resume file holds of this object: tensors and plain values."""
        return {
            "random": self._random,
            "seconds": self.seconds,
            "memory_mb": self.memory_mb(self.circumstances["device"]),
            "circumstances": self.circumstances,
            "started": self.started,
            "versions": self.versions,
            "commit": self.commit,
            "curve": self.curve,
            "best_epoch": self.best_epoch,
            "best_weights": self.best_weights,
            "stopped_early": self.stopped_early,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what `state_dict` gave."""
        self._random = state_dict["random"]
        self._seconds_before = state_dict["seconds"]
        self._memory_before = state_dict["memory_mb"]
        changes = [
            f"{name} was {before}, is {self.circumstances.get(name)}"
            for name, before in state_dict["circumstances"].items()
            if before != self.circumstances.get(name)
        ]
        if changes:
            warnings.warn(
                "The resumed run will not end with the same bits as an uninterrupted one, because "
                f"it goes on under other circumstances: {'; '.join(changes)}.",
                stacklevel=2,
            )
        self.started = state_dict["started"]
        # (Resume files of the first releases hold neither.)
        self.versions = state_dict.get("versions", self.versions)
        self.commit = state_dict.get("commit", self.commit)
        self.curve = state_dict["curve"]
        self.best_epoch = state_dict["best_epoch"]
        self.best_weights = state_dict["best_weights"]
        self.stopped_early = state_dict["stopped_early"]

    def on_load_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Keeps a run that had stopped early from training on; its state is loaded just after."""
        state = checkpoint["callbacks"][self.state_key]
        trainer.should_stop = bool(state["stopped_early"])


class EpochTeller(Callback):
    """Says the validation metric after every epoch; of a run that goes on, those before too.

    Args:
        state: Where it is.
        told: Takes the epoch, from 1, and the value, NaN where nothing validates.
    """

    def __init__(self, state: TrainingState, told: Callable[[int, float], None]) -> None:
        self._state = state
        self._told = told

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Says those before."""
        results.tell_curve(self._state.curve, self._told)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Says it."""
        self._told(trainer.current_epoch + 1, self._state.curve.get("valid", [math.nan])[-1])


def _gathered(trainer: Trainer, states: dict[str, Any]) -> list[dict[str, Any]]:
    if trainer.world_size == 1:
        return [states]
    everyone: list[Any] = [None] * trainer.world_size
    torch.distributed.all_gather_object(everyone, states)
    return everyone
