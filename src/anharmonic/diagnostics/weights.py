r"""Weights compared with the papers' assumptions: coRNN's (2.16), UnICORNN's norms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from anharmonic._checks import require
from anharmonic.diagnostics.recurrence import layer_of
from anharmonic.nn.sequence.cornn import CoRNN
from anharmonic.nn.sequence.unicornn import UnICORNN


@dataclass(frozen=True)
class WeightAssumption:
    r"""Both sides of (2.16) for one layer in one direction.

    .. math::
        \eta = \frac{\max\big(dt(1 + \|W\|_\infty),\; dt\|\mathcal{W}\|_\infty\big)}{1 + dt}
        \le dt^r, \quad \tfrac{1}{2} \le r \le 1

    Args:
        eta: η.
        dt: The step.
        norms: The row-sum norms of W and 𝒲.
    """

    eta: float
    dt: float
    norms: tuple[float, float]

    @property
    def weakest_bound(self) -> float:
        """The bound at r = 1/2."""
        return math.sqrt(self.dt)

    @property
    def holds(self) -> bool:
        """Whether it holds for some r in [1/2, 1], which means for r = 1/2 (dt < 1)."""
        return self.dt < 1 and self.eta <= self.weakest_bound


def weight_assumption(layer: Any) -> list[WeightAssumption]:
    r"""Evaluate condition (2.16), under which coRNN's gradients are bounded.

    Args:
        layer: A ``CoRNN``, or a ``SequenceModel`` of one.

    Returns:
        One per layer, forward before reverse.

    Raises:
        TypeError: If the layer has another type.

    Note:
        The coRNN paper states (2.16) for γ = ε = 1 and the implicit scheme. This function evaluates
        it as written for any γ, ε and scheme, as the paper's figure does for tuned models.

    Example:
        >>> import torch
        >>> layer = CoRNN(1, 2, dt=0.25)
        >>> with torch.no_grad():
        ...     for weight in layer.parameters():
        ...         _ = weight.fill_(0.5)
        >>> [found] = weight_assumption(layer)
        >>> found.norms, found.eta, found.weakest_bound, found.holds
        ((1.0, 1.0), 0.4, 0.5, True)
    """
    layer = layer_of(layer)
    fits = isinstance(layer, CoRNN)
    require(fits, "layer", layer, "a CoRNN, of which (2.16) speaks", "pass one", TypeError)
    step = layer.scalars()[0]
    dt = float(step.detach()) if isinstance(step, Tensor) else step
    found = []
    for suffix in layer._suffixes:
        W, other = (
            float(getattr(layer, stem + suffix).detach().abs().sum(1).max())
            for stem in ("weight_hy", "weight_hz")
        )
        eta = max(dt * (1 + W), dt * other) / (1 + dt)
        found.append(WeightAssumption(eta, dt, (W, other)))
    return found


def weight_norms(layer: Any) -> list[float]:
    r"""Return the largest entry :math:`\|w^l\|_\infty` of UnICORNN's vector w for each layer.

    Args:
        layer: A ``UnICORNN``, or a ``SequenceModel`` of one.

    Returns:
        One per layer, forward before reverse.

    Raises:
        TypeError: If the layer has another type.

    Example:
        >>> all(0 <= norm <= 1 for norm in weight_norms(UnICORNN(2, 8, num_layers=3)))
        True
    """
    layer = layer_of(layer)
    require(isinstance(layer, UnICORNN), "layer", layer, "a UnICORNN", "pass one", TypeError)
    return [float(getattr(layer, "weight_hh" + s).detach().abs().max()) for s in layer._suffixes]
