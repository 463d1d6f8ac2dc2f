"""The UnICORNN recurrence as a loop to check by eye."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic.kernels.stack import Source, hold, run_stack


def unicornn_reference(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: Sequence[float],
    frequency: float,
    skipped_layers: int | None,
    bidirectional: bool,
    lengths: Tensor | None,
    masks: list[Tensor] | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Runs ``kernels.unicornn`` step by step in plain PyTorch; same arguments and shapes."""
    alpha = frequency

    def walk(
        k: int, layer: int, source: Source, y: Tensor, z: Tensor, valid: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        V, w, b, c, skip = weights[k]
        drive = F.linear(source(layer), V, b)  # V y_n^{l-1} + b, all steps at once
        if skipped_layers is not None and layer >= skipped_layers:
            drive = drive + F.linear(source(layer - skipped_layers), skip)
        h = dt[layer] * torch.sigmoid(c)
        outputs = []
        for u, keep in zip(drive.unbind(0), hold(valid, len(drive)), strict=True):
            z_new = z - h * (torch.tanh(w * y + u) + alpha * y)
            y_new = y + h * z_new
            y = y_new if keep is None else torch.where(keep, y_new, y)
            z = z_new if keep is None else torch.where(keep, z_new, z)
            outputs.append(y)
        return torch.stack(outputs), y, z

    return run_stack(walk, x, y0, z0, bidirectional=bidirectional, lengths=lengths, masks=masks)
