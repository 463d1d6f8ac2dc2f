"""A model's metric over a whole data set."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from anharmonic.data.base import Batches


def evaluate(
    model: nn.Module,
    batches: Batches[Any],
    metric: str,
    device: torch.device,
    scale: float = 1.0,
) -> float:
    """Computes a metric over all batches, without dropout and without gradients.

    Args:
        model: Maps a batch's inputs to predictions; comes back in the mode it had.
        batches: The data set.
        metric: A name `anharmonic.data.metrics` knows.
        device: Where the model is.
        scale: The task's ``metric_scale``.
    """
    # torchmetrics imports matplotlib, which `anharmonic list` has no time for.
    from anharmonic.data.metrics import TaskMetric

    total = TaskMetric(metric, scale)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for batch in batches:
                batch = batch.to(device)
                total.update(batch.select(model(*batch.inputs)), batch)
    finally:
        model.train(was_training)
    return float(total.value())
