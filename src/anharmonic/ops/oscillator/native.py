"""Neural oscillators in the compiled library, as cases of coRNN and UnICORNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from anharmonic.ops.cornn.native import cornn_native
from anharmonic.ops.oscillator.relatives import as_cornn, as_unicornn
from anharmonic.ops.unicornn.native import unicornn_native


def oscillator_native(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    scheme: str,
    activation: str,
    is_top: bool,
    **shared: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain of ``ops.oscillator`` for symplectic Euler and tanh."""
    if weights[0].weight_hh.dim() == 2:
        same, own = as_cornn(weights)
        return cornn_native(x, same, y0, z0, dt=dt, **own, **shared)
    turned, own = as_unicornn(weights, dt)
    return unicornn_native(x, turned, y0, z0, **own, **shared)
