"""What a UnICORNN layer is given over a few steps: its drive and its step sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic.ops.steps import Steps


def drive_and_steps(
    weight: tuple[Any, ...], levels: list[Tensor], steps: Steps
) -> tuple[Sequence[Tensor], Tensor, float, list[Tensor]]:
    """Makes x_n and h_n of one layer over these steps.

    Args:
        weight: V, w, b, c, Λ or None, dt, α, S of the layer.
        levels: The inputs of this layer and those below.
        steps: The stretch of time.

    Returns:
        The drive of every step [B, H], w [H], α, and the size of every step, [H] or [B, H].
    """
    V, w, b, c, skip, dt, alpha, skipped_layers = weight
    drive = F.linear(levels[-1], V, b)  # V y_n^{l-1} + b
    if skip is not None:
        drive = drive + F.linear(levels[-1 - skipped_layers], skip)
    h = dt * torch.sigmoid(c)
    return drive.unbind(0), w, alpha, [h if gap is None else h * gap for gap in steps.gaps()]
