"""Noise on the inputs of training, against learning small data sets by heart."""

from __future__ import annotations

from typing import TypeVar

import torch

from anharmonic.data.base import Batch

AnyBatch = TypeVar("AnyBatch")


def with_noise(batch: AnyBatch, additive: float, amplitude: float) -> AnyBatch:
    """A batch with x (1 + amplitude * n) + additive * m in place of x.

    The numbers n (one for each sequence and channel) and m (one for each value) are standard
    normal, from torch's global generator. With both 0 nothing is drawn.

    Args:
        batch: The batch; only sequences may have noise.
        additive: Standard deviation of what is added, >= 0.
        amplitude: Standard deviation of the factor, >= 0.

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
