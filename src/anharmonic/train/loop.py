"""The training loop in plain PyTorch: epochs, validation, best weights, early stopping."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader

from anharmonic import _checks
from anharmonic._processes import rank
from anharmonic.data.base import Batch, Batches, Loaders, Task
from anharmonic.data.metrics import TaskMetric
from anharmonic.diagnostics import machine
from anharmonic.train.folder import (
    load_state,
    random_states,
    restore_random_states,
    save_state,
)
from anharmonic.train.losses import (
    DivergedError,
    Share,
    class_weights_of,
    share_of,
    summed_loss,
)
from anharmonic.train.optim import first_beta, learning_rate, make_optimizer
from anharmonic.train.processes import average_over_processes, broadcast, gather
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.scoring import Predictor, evaluate

# Reading a loss makes a GPU (or other processes) wait, so losses are read in groups of this many
# steps. Weights are saved only at the ends of epochs, so nothing is lost.
_STEPS_PER_LOOK = 50
# For small data, saving the state takes longer than the steps of an epoch.
_SECONDS_BETWEEN_SAVES = 1.0
_KEPT = ("curve", "best_epoch", "best_weights", "stopped_early", "started", "versions", "commit")

AnyBatch = TypeVar("AnyBatch")


class Callback:
    """Methods called at the events of a training; all are optional."""

    def on_start(self, loop: Loop) -> None:
        """Called before the first step, after the state of a resumed run is loaded."""

    def on_step(self, loop: Loop) -> None:
        """Called after every optimiser step."""

    def measure(self, loop: Loop) -> dict[str, float]:
        """Return additional values for the epoch's curve; called before the epoch is saved."""
        return {}

    def on_epoch_end(self, loop: Loop) -> None:
        """Called after an epoch is validated and saved."""

    def on_end(self, loop: Loop, finished: bool) -> None:
        """Called at the end, including after an error or an interruption."""


class Loop:
    """Trains the model of a run.

    Args:
        run: The run.
        task: Its task.
        loaders: The task's batches.
        model: The model, trained in place.
        environment: Device, processes and workers.
        resume: The file with the saved state; None trains in memory only.
        circumstances: Conditions that should not change on resuming (versions, device, threads).

    Attributes:
        epoch: Number of finished epochs.
        step: Number of finished optimiser steps.
        steps_per_epoch: Optimiser steps of an epoch.
        curve: Values per epoch, as in a result.
        best_epoch: The epoch with the best validation value, from 1; the last without validation.
    """

    def __init__(
        self,
        run: Run,
        task: Task,
        loaders: Loaders[Any],
        model: nn.Module,
        environment: RunEnvironment,
        resume: Path | None = None,
        circumstances: dict[str, str] | None = None,
    ) -> None:
        self.run, self.task, self.loaders, self.model = run, task, loaders, model
        self.resume, self.circumstances = resume, circumstances or {}
        self.rank, self.world = rank(), environment.world_size
        # (`join` chose this process's GPU.)
        self.device = torch.device(machine.choose_device(environment.device))
        self.model.to(self.device)
        self._workers = environment.workers
        self.average = None if run.ema_decay is None else moving_average(model, run.ema_decay)
        self.optimizer = make_optimizer(run, model)
        self.class_weights = class_weights_of(run, task, loaders.train(0))
        self.higher_is_better = TaskMetric(task.metric).higher_is_better
        self.epoch = self.step = self.saved_epoch = 0
        self.steps_per_epoch = len(loaders.train(0))
        self.last_loss = math.nan
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        # As of the first start, because the checkout may change while a run trains.
        self.versions, self.commit = machine.versions(), machine.commit()
        self.curve: dict[str, list[float]] = {"epoch": [], "train_loss": []}
        self.best_epoch, self.stopped_early = 0, False
        self.best_weights: dict[str, Tensor] = {}
        self._saved_at = -math.inf
        self._random: list[dict[str, Any]] | None = None
        self._began, self._seconds_before, self._memory_before = time.monotonic(), 0.0, 0.0

    @property
    def judged_model(self) -> nn.Module:
        """The model to validate, test and keep, with averaged weights if there are any."""
        return self.model if self.average is None else self.average.module

    @property
    def chosen_epoch(self) -> int:
        """The epoch whose weights to test and keep."""
        return self.epoch if self.run.select == "last" else self.best_epoch

    @property
    def chosen_weights(self) -> dict[str, Tensor]:
        """The weights to test and keep."""
        return self.judged_model.state_dict() if self.run.select == "last" else self.best_weights

    @property
    def seconds(self) -> float:
        """Time of training and validation over all sessions."""
        return self._seconds_before + time.monotonic() - self._began

    @property
    def memory_mb(self) -> float:
        """Peak memory over all sessions."""
        return max(self._memory_before, machine.peak_memory_mb(self.device.type))

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Restore the clock and all random states after the block."""
        began, states = time.monotonic(), random_states()
        try:
            yield
        finally:
            restore_random_states(states)
            self._began += time.monotonic() - began

    def __call__(self, callbacks: Sequence[Callback] = ()) -> None:
        """Train to the end, starting from the resume file."""
        if self.resume is not None and self.resume.exists():
            self.load_state_dict(load_state(self.resume))
        self._began = time.monotonic()
        finished = False
        try:
            for callback in callbacks:
                callback.on_start(self)
            while self.epoch < self.run.epochs and not self.stopped_early:
                self._one_epoch(callbacks)
            finished = True
        finally:
            for callback in callbacks:
                callback.on_end(self, finished)

    def _one_epoch(self, callbacks: Sequence[Callback]) -> None:
        if self._random is not None and len(self._random) == self.world:
            # Random numbers drawn since the end of the last epoch (by validation, say) must not
            # matter.
            restore_random_states(self._random[self.rank])
        values = self._train_epoch(callbacks)
        self.epoch += 1
        self._random = gather(random_states(), self.world)
        entries = {"epoch": self.epoch, "train_loss": values.mean_loss(), **self._validate()}
        entries |= values.norms()
        for callback in callbacks:
            entries |= callback.measure(self)
        self._record(entries)
        waited = time.monotonic() - self._saved_at >= _SECONDS_BETWEEN_SAVES
        if waited or self.epoch == self.run.epochs or self.stopped_early:
            self._save()
        for callback in callbacks:
            callback.on_epoch_end(self)

    def _train_epoch(self, callbacks: Sequence[Callback]) -> _StepValues:
        """Train for one epoch."""
        run, weights = self.run, list(self.model.parameters())
        class_weights = self.class_weights
        if class_weights is not None:
            class_weights = class_weights.to(self.device)
        self.model.train()
        # Reset for each epoch: carried states start with zeros.
        reader = Predictor(self.model, self.task.carries_state)
        values = _StepValues(self)
        batches = self.loaders.train(self.epoch)
        for share in shares(batches, self.rank, self.world, self.task.loss, self._workers):
            self._set_rate()
            batch = with_noise(share.batch.to(self.device), run.input_noise, run.amplitude_noise)
            loss = summed_loss(
                reader(batch), batch, self.task.loss, run.label_smoothing, class_weights
            )
            loss = loss * share.weight
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            gradients = [w.grad for w in weights if w.grad is not None]
            average_over_processes(gradients, self.world)
            if run.clip_norm is None:
                norm = nn.utils.get_total_norm(gradients)
            else:
                norm = nn.utils.clip_grad_norm_(weights, run.clip_norm)
            values.add(loss.detach(), norm.detach(), share.entries)
            self.optimizer.step()
            if self.average is not None:
                self.average.update_parameters(self.model)
            self.step += 1
            for callback in callbacks:
                callback.on_step(self)
        return values

    def _set_rate(self) -> None:
        run, rate = self.run, learning_rate(self.run, self.step, self.steps_per_epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
            if run.schedule == "one_cycle":
                group["betas"] = (first_beta(run, self.step, self.steps_per_epoch), run.betas[1])

    def _validate(self) -> dict[str, float]:
        if not len(self.loaders.valid):
            return {}
        scores = evaluate(self.judged_model, self.loaders.valid, self.task, self.device)
        # All processes use the first one's values, so that they agree when to stop.
        metric, loss = broadcast((scores.metric, scores.loss), self.world)
        for what, value in ((f"validation {self.task.metric}", metric), ("validation loss", loss)):
            if not math.isfinite(value):
                raise self.diverged(what, value, self.step, self.epoch)
        return {"valid": float(metric), "valid_loss": float(loss)}

    def _record(self, entries: dict[str, float]) -> None:
        """Add an epoch to the curve, store the best weights, and check early stopping."""
        better = self._is_better(entries)
        for name, entry in entries.items():
            # (A recording that an older version began without a name continues without one.)
            if self.epoch == 1 or name in self.curve:
                self.curve.setdefault(name, []).append(entry)
        if better:
            self.best_epoch = self.epoch
        if better and len(self.loaders.valid):
            found = self.judged_model.state_dict().items()
            self.best_weights = {name: value.detach().cpu().clone() for name, value in found}
        patience = self.run.patience
        if patience is not None and self.epoch - self.best_epoch >= patience:
            self.stopped_early = self.epoch < self.run.epochs

    def _is_better(self, new: dict[str, float]) -> bool:
        """Whether an epoch is better than the best so far; of equals the later wins."""
        if self.best_epoch == 0 or not len(self.loaders.valid):
            return True
        best = {name: values[self.best_epoch - 1] for name, values in self.curve.items()}
        loss, least = new["valid_loss"], best.get("valid_loss", math.inf)
        if self.run.select == "loss":
            return loss <= least
        value, best_value = new["valid"], best["valid"]
        if value == best_value:
            return loss <= least
        return value > best_value if self.higher_is_better else value < best_value

    def _save(self) -> None:
        if self.resume is None:
            return
        if self.rank == 0:
            save_state(self.resume, self.state_dict())
        self._saved_at, self.saved_epoch = time.monotonic(), self.epoch

    def state_dict(self) -> dict[str, Any]:
        """Return everything that a resumed run needs, as tensors and plain values."""
        return {name: getattr(self, name) for name in _KEPT} | {
            "model": self.model.state_dict(),
            "average": None if self.average is None else self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": self._random,
            "seconds": self.seconds,
            "memory_mb": self.memory_mb,
            "circumstances": self.circumstances,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of `state_dict`, and warn if that is not exact."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        for name in _KEPT:
            # (Resume files of the first releases contain neither versions nor commit.)
            setattr(self, name, state.get(name, getattr(self, name)))
        self._random = state["random"]
        self._seconds_before, self._memory_before = state["seconds"], state["memory_mb"]
        self.epoch = self.saved_epoch = len(self.curve["epoch"])
        self.step = self.epoch * self.steps_per_epoch
        changes = [
            f"{name} was {before}, is {self.circumstances.get(name)}"
            for name, before in state["circumstances"].items()
            if before != self.circumstances.get(name)
        ]
        if changes:
            warnings.warn(
                "The resumed run will not equal an uninterrupted one bit for bit, because its "
                f"environment changed: {'; '.join(changes)}.",
                stacklevel=2,
            )

    def diverged(self, what: str, value: float, step: int, epoch: int) -> DivergedError:
        """Return the error for a value that is not finite."""
        run, lr = self.run, learning_rate(self.run, max(step - 1, 0), self.steps_per_epoch)
        clipping = "no gradient clipping (clip_norm)"
        if run.clip_norm is not None:
            clipping = f"too weak clipping (clip_norm={run.clip_norm:g})"
        kept = "; no epoch was finished, so no state is kept"
        if self.resume is None:
            kept = ""
        elif self.saved_epoch:
            kept = f"; the state after epoch {self.saved_epoch} is kept in {self.resume}"
        text = _checks.message(
            f"{what} must stay finite",
            f"{value} at step {step}, epoch {epoch}, with learning rate {lr:g}",
            f"likely causes are a learning rate that is too high, {clipping}, or a step dt of the "
            f"model that is unstable: lower lr, set clip_norm or lower dt{kept}",
        )
        return DivergedError(text, step=step, epoch=epoch, value=value, lr=lr)


class _StepValues:
    """Losses and gradient norms of an epoch, read at each step on a CPU, otherwise in groups."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        at_once = loop.device.type == "cpu" and loop.world == 1
        self._group = 1 if at_once else _STEPS_PER_LOOK
        self._waiting: list[tuple[Tensor, Tensor, int]] = []
        self._norms: list[float] = []
        self._loss_sum, self._entries = 0.0, 0

    def add(self, loss: Tensor, norm: Tensor, entries: int) -> None:
        """Add a step's values, before the optimiser step."""
        self._waiting.append((loss, norm, entries))
        if len(self._waiting) == self._group:
            self._look(self._loop.step + 1)

    def _look(self, end: int) -> None:
        """Read the pending values, which end with step end - 1."""
        if not self._waiting:
            return
        losses, norms, counts = zip(*self._waiting, strict=True)
        means = torch.stack(losses)
        average_over_processes([means], self._loop.world)
        values = zip(means.tolist(), torch.stack(norms).tolist(), counts, strict=True)
        for step, (loss, norm, entries) in enumerate(values, start=end - len(counts)):
            self._count(loss, norm, entries, step)
        self._waiting = []

    def _count(self, loss: float, norm: float, entries: int, step: int) -> None:
        if not math.isfinite(loss):
            raise self._loop.diverged("training loss", loss, step, self._loop.epoch + 1)
        self._norms.append(norm)
        self._loss_sum += loss * entries
        self._entries += entries
        self._loop.last_loss = loss

    def mean_loss(self) -> float:
        """Return the mean loss of the epoch, over all processes."""
        self._look(self._loop.step)
        return self._loss_sum / self._entries

    def norms(self) -> dict[str, float]:
        """Return the median and the largest norm of the gradient before clipping."""
        finite = [norm for norm in self._norms if math.isfinite(norm)] or [0.0]
        return {"grad_norm": statistics.median(finite), "grad_norm_max": max(finite)}


def shares(
    batches: Batches[Any], rank: int, world: int, loss: str, workers: int = 0
) -> Iterator[Share]:
    """Yield a process's shares of an epoch's batches."""
    source: Iterable[Any] = batches
    if workers:
        # Forked, because batches are functions. A separate generator, because the loader draws from
        # it and the weights must not depend on that.
        source = DataLoader(
            batches,  # type: ignore[arg-type]
            batch_size=None,
            num_workers=workers,
            collate_fn=lambda batch: batch,
            multiprocessing_context="fork",
            generator=torch.Generator(),
        )
    for batch in source:
        yield share_of(batch, rank, world, loss)


def moving_average(model: nn.Module, decay: float) -> AveragedModel:
    """Return a copy of a model whose weights are a moving average that decays per step."""
    follow: Any = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
    copy = AveragedModel(model, multi_avg_fn=follow, use_buffers=True)
    copy.requires_grad_(requires_grad=False)
    return copy


def with_noise(batch: AnyBatch, additive: float, amplitude: float) -> AnyBatch:
    """Return a batch with x replaced by x (1 + amplitude * n) + additive * m.

    n (one per sequence and channel) and m (one per value) are standard normal numbers from
    PyTorch's global generator. If both deviations are 0, nothing is drawn.

    Example:
        >>> batch = Batch(torch.ones(2, 500, 3), torch.zeros(2, 1), None)
        >>> bool(with_noise(batch, 0.0, 0.1).x.std(dim=1).max() < 1e-6)
        True
    """
    if not isinstance(batch, Batch) or (additive == 0 and amplitude == 0):
        return batch
    x = batch.x
    if amplitude > 0:
        count, _, channels = x.shape
        x = x * (1 + amplitude * torch.randn(count, 1, channels, device=x.device))
    if additive > 0:
        x = x + additive * torch.randn_like(x)
    return batch._replace(x=x)
