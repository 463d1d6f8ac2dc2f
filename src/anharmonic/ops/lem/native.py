"""LEM in the compiled library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from anharmonic.ops.bridge.call import LEM, LEM_CLIPPED, LEM_SINGLE_SCALE
from anharmonic.ops.bridge.native import run


def lem_native(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    multiscale: bool,
    gate_floor: float | None,
    **shared: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain of ``ops.lem`` as one call of csrc/lem.h."""
    model = LEM if gate_floor is None else LEM_CLIPPED
    if not multiscale:
        model = LEM_SINGLE_SCALE
    flat = [w for weight in weights for w in (*weight, None)]
    return run(model, x, flat, y0, z0, [dt, 0.0, 0.0, gate_floor or 0.0], **shared)
