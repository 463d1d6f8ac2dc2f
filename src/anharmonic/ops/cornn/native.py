"""coRNN in the compiled library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from anharmonic.ops.bridge.call import CORNN_EXPLICIT, CORNN_IMPLICIT
from anharmonic.ops.bridge.native import run


def cornn_native(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float | Tensor,
    frequency: float | Tensor,
    damping: float | Tensor,
    scheme: str,
    **shared: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain of ``ops.cornn`` as one call of csrc/cornn.h."""
    model = CORNN_EXPLICIT if scheme == "explicit" else CORNN_IMPLICIT
    flat = [w for weight in weights for w in (*weight, None)]
    return run(model, x, flat, y0, z0, [dt, frequency, damping, 0.0], **shared)
