"""Neural oscillators (symplectic Euler, tanh) as cases of coRNN and UnICORNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from anharmonic.ops.cornn.step import CoRNNWeights
from anharmonic.ops.unicornn.step import UnICORNNWeights


def as_cornn(weights: Sequence[Any]) -> tuple[list[CoRNNWeights], dict[str, Any]]:
    """Layers with a matrix W: coRNN with 𝒲 = 0 and γ = ε = 0; weights and own arguments.

    Example:
        >>> _, words = as_cornn([(torch.ones(3, 2), torch.eye(3), None)])
        >>> words["frequency"], words["damping"]
        (0.0, 0.0)
    """
    own = {"frequency": 0.0, "damping": 0.0, "scheme": "explicit"}
    return [CoRNNWeights(V, W, torch.zeros_like(W), b) for V, W, b in weights], own


def as_unicornn(weights: Sequence[Any], dt: float) -> tuple[list[UnICORNNWeights], dict[str, Any]]:
    """Layers with a vector w: UnICORNN with α = 0 and the other sign; weights and own arguments.

    There z falls by h tanh(A) with h = dt σ̂(c): tanh is odd, and h is dt / 2 at c = 0.

    Example:
        >>> (w,), words = as_unicornn([(torch.ones(3, 2), -torch.ones(3), None)], dt=0.1)
        >>> words["dt"], w.weight_hh.tolist()
        ([0.2], [1.0, 1.0, 1.0])
    """
    own = {"dt": [2 * dt] * len(weights), "frequency": 0.0, "skipped_layers": None}
    turned = [
        UnICORNNWeights(-V, -w, None if b is None else -b, torch.zeros_like(w))
        for V, w, b in weights
    ]
    return turned, own
