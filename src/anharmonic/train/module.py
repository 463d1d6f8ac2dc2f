"""The training step as Lightning wants it. Imported by ``fit`` only, because it needs Lightning."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader

from anharmonic import _checks
from anharmonic.data.base import Batches, Task
from anharmonic.train.losses import DivergedError, Share, share_of, summed_loss
from anharmonic.train.noise import with_noise
from anharmonic.train.optim import first_beta, learning_rate, make_optimizer
from anharmonic.train.reader import Reader
from anharmonic.train.run import Run

# Reading a loss makes a GPU (or the other processes) wait, so there it is done this many steps at
# a time. Nothing is lost: weights are kept at the ends of epochs only.
_STEPS_PER_LOOK = 50


class EpochBatches:
    """This device's shares of one epoch's batches.

    Args:
        batches: The batches.
        rank: The device's number, 0 to world - 1.
        world: Number of devices.
        loss: The task's loss, by name.
        workers: Processes that make batches ahead.
    """

    def __init__(
        self, batches: Batches[Any], rank: int, world: int, loss: str, workers: int = 0
    ) -> None:
        self._batches = batches
        self._rank, self._world, self._loss = rank, world, loss
        self._workers = workers

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Share]:
        source: Iterable[Any] = self._batches
        if self._workers:
            # Forked, for the batches are functions; with a generator of its own, for the loader
            # draws from it and the weights must not depend on that.
            source = DataLoader(
                self._batches,  # type: ignore[arg-type]
                batch_size=None,
                num_workers=self._workers,
                collate_fn=_as_it_is,
                multiprocessing_context="fork",
                generator=torch.Generator(),
            )
        for batch in source:
            yield share_of(batch, self._rank, self._world, self._loss)


def _as_it_is(batch: Any) -> Any:
    return batch


def moving_average(model: nn.Module, decay: float) -> AveragedModel:
    """A copy of a model whose weights follow its, an exponential moving average over the steps.

    Args:
        model: The model.
        decay: Share of the old average in the new one.
    """
    follow: Any = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
    average = AveragedModel(model, multi_avg_fn=follow, use_buffers=True)
    average.requires_grad_(requires_grad=False)  # DDP waits for gradients of what requires them
    return average


class TrainingModule(LightningModule):
    """A model with its loss, batches and optimiser, ready for Lightning's ``Trainer``.

    Args:
        run: The run.
        model: Maps a batch's inputs to predictions.
        task: Has the loss, and says whether states are carried.
        train: The task's training batches by epoch.
        class_weights: Factors on the classes in the loss, [C]; None for 1.
        resume_path: Where the last good state is, for the error of a diverged run.
        workers: Processes that make training batches ahead.
    """

    def __init__(
        self,
        run: Run,
        model: nn.Module,
        task: Task,
        train: Callable[[int], Batches[Any]],
        class_weights: Tensor | None,
        resume_path: str,
        workers: int = 0,
    ) -> None:
        super().__init__()
        # The steps of automatic optimisation written out: its hooks would cost more than a small
        # model's step.
        self.automatic_optimization = False
        self.run = run
        self.model = model
        self.loss = task.loss
        self.carries_state = task.carries_state
        self.train_batches = train
        self.workers = workers
        self.class_weights: Tensor | None
        self.register_buffer("class_weights", class_weights, persistent=False)
        # A part of this module, so that it moves to the device and into the resume file.
        self.average = None if run.ema_decay is None else moving_average(model, run.ema_decay)
        self.resume_path = resume_path
        self.saved_epoch = 0
        self.last_loss = math.nan
        self._losses: list[Tensor] = []
        self._norms: list[Tensor] = []
        self._entries: list[int] = []
        self._loss_sum = 0.0
        self._entry_sum = 0
        self._epoch_norms: list[float] = []

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam; its learning rate is set at every step."""
        return make_optimizer(self.run, self.model)

    def train_dataloader(self) -> EpochBatches:
        """The current epoch's batches; Lightning asks anew before every epoch."""
        trainer = self.trainer
        return EpochBatches(
            self.train_batches(trainer.current_epoch),
            trainer.global_rank,
            trainer.world_size,
            self.loss,
            self.workers,
        )

    def transfer_batch_to_device(
        self, batch: Share, device: torch.device, dataloader_idx: int
    ) -> Share:
        """Moves a share's tensors; its numbers stay plain."""
        return batch._replace(batch=batch.batch.to(device))

    def on_train_epoch_start(self) -> None:
        """Starts the epoch's mean loss."""
        self._losses, self._norms, self._entries = [], [], []
        self._loss_sum, self._entry_sum = 0.0, 0
        self._epoch_norms = []
        # A new one: where states are carried, an epoch begins with zeros.
        self._reader = Reader(self.model, self.carries_state)
        self._optimizer = self.trainer.optimizers[0]
        self._weights = list(self.model.parameters())
        self._look_at_once = self.device.type == "cpu" and self.trainer.world_size == 1

    def training_step(self, share: Share, batch_idx: int) -> None:
        """One step; over all devices, the losses of their shares average to the batch's loss."""
        run = self.run
        self._set_rate(batch_idx)
        batch = with_noise(share.batch, run.input_noise, run.amplitude_noise)
        prediction = self._reader(batch)
        loss = summed_loss(prediction, batch, self.loss, run.label_smoothing, self.class_weights)
        loss = loss * share.weight
        self._optimizer.zero_grad(set_to_none=True)
        self.manual_backward(loss)
        if run.clip_norm is None:
            norm = nn.utils.get_total_norm([w.grad for w in self._weights if w.grad is not None])
        else:
            norm = nn.utils.clip_grad_norm_(self._weights, run.clip_norm)
        self._losses.append(loss.detach())
        self._norms.append(norm.detach())
        self._entries.append(share.entries)
        if self._look_at_once or len(self._losses) == _STEPS_PER_LOOK:
            self._look(batch_idx)
        self._optimizer.step()
        if self.average is not None:
            self.average.update_parameters(self.model)

    def _set_rate(self, batch_idx: int) -> None:
        per_epoch = int(self.trainer.num_training_batches)
        step = self.trainer.current_epoch * per_epoch + batch_idx
        rate = learning_rate(self.run, step, per_epoch)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
            if self.run.schedule == "one_cycle":
                group["betas"] = (first_beta(self.run, step, per_epoch), self.run.betas[1])

    @property
    def judged_model(self) -> nn.Module:
        """The model that is validated, tested and kept: that of the averaged weights, if any."""
        return self.model if self.average is None else self.average.module

    def epoch_loss(self) -> float:
        """Mean loss of the epoch so far, over all devices."""
        if self._losses:
            self._look(int(self.trainer.num_training_batches) - 1)
        return self._loss_sum / self._entry_sum

    def epoch_norms(self) -> tuple[float, float]:
        """Median and largest norm of the gradient in the epoch so far, before clipping."""
        if self._losses:
            self._look(int(self.trainer.num_training_batches) - 1)
        finite = [norm for norm in self._epoch_norms if math.isfinite(norm)] or [0.0]
        return statistics.median(finite), max(finite)

    def _look(self, batch_idx: int) -> None:
        """Reads the losses kept since the last look and stops at the first that is not finite."""
        if len(self._losses) == 1 and self.trainer.world_size == 1:
            values = [self._losses[0].item()]
            self._epoch_norms.append(self._norms[0].item())
        else:
            stacked = torch.stack(self._losses)
            if self.trainer.world_size > 1:
                torch.distributed.all_reduce(stacked)
                stacked /= self.trainer.world_size
            values = stacked.tolist()
            self._epoch_norms.extend(torch.stack(self._norms).tolist())
        entries, self._losses, self._norms, self._entries = self._entries, [], [], []
        for back, (value, count) in enumerate(zip(values, entries, strict=True)):
            if not math.isfinite(value):
                step = self.trainer.current_epoch * self.trainer.num_training_batches
                step += batch_idx - len(values) + 1 + back
                raise self.diverged("training loss", value, int(step))
            self._loss_sum += value * count
            self._entry_sum += count
        self.last_loss = values[-1]

    def diverged(self, what: str, value: float, step: int) -> DivergedError:
        """The error for a value that is not finite.

        Args:
            what: "training loss" or the validation metric's name.
            value: The value.
            step: Optimiser steps done before.
        """
        run, epoch = self.run, self.trainer.current_epoch + 1
        lr = learning_rate(run, max(step - 1, 0), int(self.trainer.num_training_batches))
        clipping = (
            "no gradient clipping (clip_norm)"
            if run.clip_norm is None
            else f"too weak clipping (clip_norm={run.clip_norm:g})"
        )
        kept = (
            f"the state after epoch {self.saved_epoch} is kept in {self.resume_path}"
            if self.saved_epoch
            else "no epoch was finished, so no state is kept"
        )
        text = _checks.message(
            f"{what} must stay finite",
            f"{value} at step {step}, epoch {epoch}, with learning rate {lr:g}",
            f"likely causes are a learning rate that is too high, {clipping}, or a step dt of the "
            f"model that is unstable: lower lr, set clip_norm or lower dt; {kept}",
        )
        return DivergedError(text, step=step, epoch=epoch, value=value, lr=lr)
