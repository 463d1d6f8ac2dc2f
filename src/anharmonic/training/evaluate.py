"""A model's metric over a whole data set."""

from __future__ import annotations

import torch
from torch import nn

from anharmonic.tasks.base import Batch, Batches
from anharmonic.tasks.metrics import make_metric


def to_device(batch: Batch, device: torch.device) -> Batch:
    """Moves a batch's inputs and targets to a device.

    Example:
        >>> batch = Batch(torch.zeros(1, 1, 1), torch.zeros(1, 1), None)
        >>> to_device(batch, torch.device("cpu")).x.device.type
        'cpu'
    """
    if device.type == "cpu":
        return batch
    # Lengths stay on the CPU, where packing wants them; a GPU would have to be waited for.
    return batch._replace(
        x=batch.x.to(device, non_blocking=True), y=batch.y.to(device, non_blocking=True)
    )


def evaluate(model: nn.Module, batches: Batches[Batch], metric: str, device: torch.device) -> float:
    """Computes a metric over all batches, without dropout and without gradients.

    Args:
        model: Maps (x, lengths) to predictions; comes back in the mode it had.
        batches: The data set.
        metric: A name `anharmonic.tasks.metrics` knows.
        device: Where the model is.
    """
    total = make_metric(metric)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for batch in batches:
                batch = to_device(batch, device)
                total.update(model(batch.x, batch.lengths), batch)
    finally:
        model.train(was_training)
    return float(total.value())
