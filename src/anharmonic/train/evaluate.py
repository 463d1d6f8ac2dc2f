"""A model's metric and loss over a whole data set."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from anharmonic.data.base import Batches, Task
from anharmonic.train.losses import count_entries, summed_loss


class Scores(NamedTuple):
    """How well a model does on a data set."""

    metric: float
    """The task's metric."""
    loss: float
    """What training minimises, without label smoothing and class weights: its mean."""


def evaluate(model: nn.Module, batches: Batches[Any], task: Task, device: torch.device) -> Scores:
    """Computes metric and loss over all batches, without dropout and without gradients.

    Args:
        model: Maps a batch's inputs to predictions; comes back in the mode it had.
        batches: The data set.
        task: Has the metric and the loss.
        device: Where the model is.
    """
    # torchmetrics imports matplotlib, which `anharmonic list` has no time for.
    from anharmonic.data.metrics import TaskMetric

    metric = TaskMetric(task.metric, task.metric_scale)
    losses: list[Tensor] = []
    entries = 0
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for batch in batches:
                batch = batch.to(device)
                prediction = batch.select(model(*batch.inputs))
                metric.update(prediction, batch)
                losses.append(summed_loss(prediction, batch, task.loss))
                entries += count_entries(batch, task.loss)
    finally:
        model.train(was_training)
    return Scores(float(metric.value()), float(torch.stack(losses).double().sum()) / entries)
