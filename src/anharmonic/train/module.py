"""The training step as Lightning wants it. Imported by ``fit`` only, because it needs Lightning."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.data.base import Batches
from anharmonic.train.losses import DivergedError, Share, share_of, summed_loss
from anharmonic.train.optim import learning_rate, make_optimizer
from anharmonic.train.run import Run

# Reading a loss makes a GPU (or the other processes) wait, so there it is done this many steps at
# a time. Nothing is lost: weights are kept at the ends of epochs only.
_STEPS_PER_LOOK = 50


class EpochBatches:
    """This device's shares of one epoch's batches."""

    def __init__(
        self, train: Callable[[int], Batches[Any]], epoch: int, rank: int, world: int, loss: str
    ) -> None:
        self._batches = train(epoch)
        self._rank, self._world, self._loss = rank, world, loss

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Share]:
        for batch in self._batches:
            yield share_of(batch, self._rank, self._world, self._loss)


class TrainingModule(LightningModule):
    """A model with its loss, batches and optimiser, ready for Lightning's ``Trainer``.

    Args:
        run: The run.
        model: Maps a batch's inputs to predictions.
        loss: The task's loss, by name.
        train: The task's training batches by epoch.
        resume_path: Where the last good state is, for the error of a diverged run.
    """

    def __init__(
        self,
        run: Run,
        model: nn.Module,
        loss: str,
        train: Callable[[int], Batches[Any]],
        resume_path: str,
    ) -> None:
        super().__init__()
        # The steps of automatic optimisation written out: its hooks would cost more than a small
        # model's step.
        self.automatic_optimization = False
        self.run = run
        self.model = model
        self.loss = loss
        self.train_batches = train
        self.resume_path = resume_path
        self.saved_epoch = 0
        self.last_loss = math.nan
        self._losses: list[Tensor] = []
        self._entries: list[int] = []
        self._loss_sum = 0.0
        self._entry_sum = 0

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam; its learning rate is set at the start of every epoch."""
        return make_optimizer(self.run, self.model)

    def train_dataloader(self) -> EpochBatches:
        """The current epoch's batches; Lightning asks anew before every epoch."""
        trainer = self.trainer
        return EpochBatches(
            self.train_batches,
            trainer.current_epoch,
            trainer.global_rank,
            trainer.world_size,
            self.loss,
        )

    def transfer_batch_to_device(
        self, batch: Share, device: torch.device, dataloader_idx: int
    ) -> Share:
        """Moves a share's tensors; its numbers stay plain."""
        return batch._replace(batch=batch.batch.to(device))

    def on_train_epoch_start(self) -> None:
        """Sets the epoch's learning rate and starts its mean loss."""
        self._losses, self._entries = [], []
        self._loss_sum, self._entry_sum = 0.0, 0
        self._optimizer = self.trainer.optimizers[0]
        self._weights = list(self.model.parameters())
        self._look_at_once = self.device.type == "cpu" and self.trainer.world_size == 1
        lr = learning_rate(self.run, self.trainer.current_epoch)
        for group in self._optimizer.param_groups:
            group["lr"] = lr

    def training_step(self, share: Share, batch_idx: int) -> None:
        """One step; over all devices, the losses of their shares average to the batch's loss."""
        batch = share.batch
        prediction = batch.select(self.model(*batch.inputs))
        loss = summed_loss(prediction, batch, self.loss) * share.weight
        self._losses.append(loss.detach())
        self._entries.append(share.entries)
        if self._look_at_once or len(self._losses) == _STEPS_PER_LOOK:
            self._look(batch_idx)
        self._optimizer.zero_grad(set_to_none=True)
        self.manual_backward(loss)
        if self.run.clip_norm is not None:
            nn.utils.clip_grad_norm_(self._weights, self.run.clip_norm)
        self._optimizer.step()

    def epoch_loss(self) -> float:
        """Mean loss of the epoch so far, over all devices."""
        if self._losses:
            self._look(int(self.trainer.num_training_batches) - 1)
        return self._loss_sum / self._entry_sum

    def _look(self, batch_idx: int) -> None:
        """Reads the losses kept since the last look and stops at the first that is not finite."""
        if len(self._losses) == 1 and self.trainer.world_size == 1:
            values = [self._losses[0].item()]
        else:
            stacked = torch.stack(self._losses)
            if self.trainer.world_size > 1:
                torch.distributed.all_reduce(stacked)
                stacked /= self.trainer.world_size
            values = stacked.tolist()
        entries, self._losses, self._entries = self._entries, [], []
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
        lr = learning_rate(run, self.trainer.current_epoch)
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
