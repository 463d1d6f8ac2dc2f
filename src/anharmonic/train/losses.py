"""Losses, shares of a batch per device, and divergence.

A loss is a sum over the sequences (and valid steps) of a batch divided by their number in the
*whole* batch. Shares of a batch then add up to the batch's loss on any number of devices.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from anharmonic import _checks
from anharmonic.data.answers import real_targets, usual_changes
from anharmonic.data.base import Batch, Batches, Task
from anharmonic.data.metrics import pinball_losses
from anharmonic.train.run import Run

if TYPE_CHECKING:
    from anharmonic.data.graph_batch import GraphBatch

# Smallest probability, so that no logarithm is infinite.
_TINY = 1e-9
# A score whose probability, and loss, is 0 in float32.
_SURE = 200.0


class DivergedError(RuntimeError):
    """A loss or validation value became infinite or NaN.

    Args:
        message: Description and advice.
        step: Number of finished optimiser steps.
        epoch: Epoch, from 1.
        value: The loss or validation value.
        lr: The learning rate at this step.

    Example:
        >>> DivergedError("loss is nan", step=3, epoch=1, value=float("nan"), lr=0.1).step
        3
    """

    def __init__(self, message: str, *, step: int, epoch: int, value: float, lr: float) -> None:
        super().__init__(message)
        self.step, self.epoch, self.value, self.lr = step, epoch, value, lr


class Share(NamedTuple):
    """A device's part of a batch.

    Shape:
        - x: [B', T, F] with the device's B' of the B sequences.
    """

    batch: Batch | GraphBatch
    """The device's sequences; a single one of weight 0 if there are more devices than sequences."""
    weight: float
    """Factor on this share's summed loss: devices (whose gradients are averaged) / entries."""
    entries: int
    """Entries (sequences, or valid steps times outputs) in the whole batch."""


def share_of(batch: Batch | GraphBatch, rank: int, world: int, loss: str) -> Share:
    """Cut a device's contiguous part out of a batch.

    Example:
        >>> batch = Batch(torch.zeros(5, 7, 1), torch.zeros(5, 2), None)
        >>> [share_of(batch, rank, 2, "squared_error").batch.x.shape[0] for rank in (0, 1)]
        [2, 3]
    """
    entries = max(1, count_entries(batch, loss))  # there may be no targets
    if world == 1:
        return Share(batch, 1.0 / entries, entries)
    assert isinstance(batch, Batch)  # `fit` refuses graphs on several devices
    size = batch.x.shape[0]
    first, last = rank * size // world, (rank + 1) * size // world
    weight = world / entries
    if first == last:
        first, last, weight = 0, 1, 0.0
    return Share(batch.cut(first, last), weight, entries)


def count_entries(batch: Batch | GraphBatch, loss: str) -> int:
    """Return the number of terms in a batch's loss, without padding.

    Example:
        >>> count_entries(Batch(torch.zeros(2, 7, 1), torch.zeros(2, 7, 3), None), "squared_error")
        42
    """
    y = batch.y
    per_step = y.ndim == (2 if loss == "cross_entropy" else 3)
    if isinstance(batch, Batch) and per_step:
        steps = batch.lengths if batch.known is None else batch.known
        if steps is not None:
            return int(steps.sum()) * (1 if y.ndim == 2 else y.shape[2])
    return y.numel()


def summed_loss(
    prediction: Tensor,
    batch: Batch | GraphBatch,
    loss: str,
    label_smoothing: float = 0.0,
    class_weights: Tensor | None = None,
) -> Tensor:
    """Return cross entropy, squared or absolute error, summed over all entries except padding.

    Errors of values are in units of the batch's `scale`, if it has one. `weight` multiplies the
    loss of each sequence.

    Args:
        prediction: The model's output after `batch.select`.
        batch: The batch.
        loss: The task's loss, by name.
        label_smoothing: For cross entropy, the probability spread evenly over all classes.
        class_weights: For cross entropy, a factor on each class, [C]; None for 1.

    Shape:
        - prediction: [B, C] or [B, T, C] for classes; [B, O] or [B, T, O] for values and labels.

    Example:
        >>> batch = Batch(torch.zeros(1, 3, 1), torch.zeros(1, 3, 1), torch.tensor([2]))
        >>> summed_loss(torch.ones(1, 3, 1), batch, "squared_error")
        tensor(2.)
    """
    y, valid, factor = batch.y, None, None
    if isinstance(batch, Batch):
        valid = batch.counted if prediction.ndim == 3 else None
        factor = batch.weight
        if factor is not None and prediction.ndim == 3:
            factor = factor[:, None].expand(prediction.shape[:2])
    if loss == "cross_entropy":
        if valid is not None:
            # The mask is made on the CPU, where lengths are, to avoid waiting for a GPU.
            real = valid.flatten().nonzero().squeeze(1).to(prediction.device)
            prediction, y = prediction.flatten(0, 1)[real], y.flatten()[real]
            factor = None if factor is None else factor.flatten()[real]
        losses = functional.cross_entropy(
            prediction.flatten(0, -2),
            y.flatten(),
            weight=class_weights,
            reduction="sum" if factor is None else "none",
            label_smoothing=label_smoothing,
        )
        return losses if factor is None else (losses * factor.flatten()).sum()
    if loss == "binary_cross_entropy":
        # Replace padding and unknown targets instead of multiplying by 0, as 0 times NaN is NaN.
        if valid is not None:
            inside = valid.to(prediction.device).unsqueeze(2)
            prediction = torch.where(inside, prediction, -_SURE)
            y = torch.where(inside, y, 0.0)
        if factor is None:
            return functional.binary_cross_entropy_with_logits(prediction, y, reduction="sum")
        losses = functional.binary_cross_entropy_with_logits(prediction, y, reduction="none")
        return (losses * factor.unsqueeze(-1)).sum()
    difference = prediction - y
    if valid is not None:
        # Replace padding instead of multiplying by 0, as it may hold NaN.
        difference = torch.where(valid.to(prediction.device).unsqueeze(2), difference, 0.0)
    if batch.scale is not None:
        difference = difference / (batch.scale.unsqueeze(1) if y.ndim == 3 else batch.scale)
    if isinstance(batch, Batch) and batch.quantiles is not None:
        errors = pinball_losses(difference, batch.quantiles)
    else:
        errors = difference.abs() if loss == "absolute_error" else difference.square()
    return (errors if factor is None else errors * factor.unsqueeze(-1)).sum()


def trivial_loss(
    batches: Iterable[Any],
    task: Task,
    label_smoothing: float = 0.0,
    class_weights: Tensor | None = None,
) -> float:
    """Return the smallest mean loss of a prediction that ignores the inputs.

    The prediction is a constant; for a forecast it is the last known value.

    Example:
        >>> from anharmonic.data.synthetic import AddingProblem
        >>> task = AddingProblem(length=10, valid_size=8)
        >>> round(trivial_loss(task.loaders(0, 50).train(0), task), 1)  # a variance, 1 / 6
        0.2
    """
    held = [
        batch._replace(x=batch.x.new_empty(0)) if isinstance(batch, Batch) else batch
        for batch in batches
    ]
    targets = torch.cat([real_targets(batch) for batch in held])
    if task.target == "class":
        weights = torch.ones(task.output_size) if class_weights is None else class_weights
        share = torch.bincount(targets, minlength=task.output_size) / len(targets)
        sought = weights * ((1 - label_smoothing) * share + label_smoothing / task.output_size)
        answer = (sought / sought.sum()).clamp(min=_TINY).log()
    elif task.target == "labels":
        answer = targets.float().mean(0).logit(_TINY)
    else:
        answer = targets.median(0).values if task.loss == "absolute_error" else targets.mean(0)
    total, entries = 0.0, 0
    usual = usual_changes(held)
    for batch in held:
        prediction = answer.expand(*batch.y.shape[: batch.y.dim() - (task.target != "class")], -1)
        if task.horizon:  # the value at output 0 is the last known one
            prediction = batch.select(torch.zeros_like(batch.y)) + usual
        total += float(summed_loss(prediction, batch, task.loss, label_smoothing, class_weights))
        entries += count_entries(batch, task.loss)
    return total / entries


def class_weights_of(run: Run, task: Task, batches: Batches[Any]) -> Tensor | None:
    """Return the factors on the classes, [C], set by a run or its task; None for 1.

    Raises:
        ValueError: If classes are to be balanced and one does not occur.
    """
    if run.class_weights == "balanced":
        return balanced_weights(batches, task.output_size)
    return None if task.class_weights is None else torch.tensor(task.class_weights)


def balanced_weights(batches: Batches[Any], classes: int) -> Tensor:
    """Return factors on the classes, [C], that weight all equally, with mean 1 over the data.

    Raises:
        ValueError: If a class does not occur.

    Example:
        >>> batch = Batch(torch.zeros(4, 7, 1), torch.tensor([0, 0, 0, 1]), None)
        >>> balanced_weights(Batches(1, lambda i: batch), 2)
        tensor([0.6667, 2.0000])
    """
    counts = torch.zeros(classes, dtype=torch.int64)
    for batch in batches:
        counts += torch.bincount(real_targets(batch), minlength=classes)
    missing = (counts == 0).nonzero()[:, 0].tolist()
    advice = "add sequences of these classes, or leave --class-weights out"
    expected = "none for balanced class_weights"
    _checks.require(not missing, "classes without training data", missing[:5], expected, advice)
    return counts.sum() / (classes * counts.float())
