"""UnICORNN in the compiled library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from anharmonic.ops.bridge.call import UNICORNN
from anharmonic.ops.bridge.native import run


def unicornn_native(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: Sequence[float],
    frequency: float,
    skipped_layers: int | None,
    **shared: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain of ``ops.unicornn`` as one call of csrc/unicornn.h."""
    flat = [w for weight in weights for w in weight]
    scalars = [1.0, frequency, 0.0, 0.0, *dt]
    return run(UNICORNN, x, flat, y0, z0, scalars, skip=skipped_layers or 0, **shared)
