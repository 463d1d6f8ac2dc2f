"""One exact step of damped, driven, linear oscillators: the equation."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from anharmonic.ops.equation import State


class Propagator(NamedTuple):
    """What one step of each oscillator takes: see ``resonator_step``; [..., K] each."""

    a: Tensor
    b: Tensor
    c: Tensor


def resonator_step(u: Tensor, state: State, w: Propagator) -> State:
    r"""One step of y'' = ω² (u − y) − (ω/q) y', exact for an input u that is held over the step.

    .. math::
        y_n &= y_{n-1} + a\,(u_n - y_{n-1}) + b\, z_{n-1} \\
        z_n &= z_{n-1} + b\,(u_n - y_{n-1}) - c\, z_{n-1}

    z is y'/ω, so that both are of the size of u. The increments are small where a step is a small
    part of a period: so nothing is lost in float32, as it would be in a product with cos(ω dt).
    """
    y, z = state
    e = u - y
    return State(y + w.a * e + w.b * z, z + w.b * e - w.c * z)


def propagator(frequency: Tensor, q: Tensor, elapsed: Tensor | float = 1.0) -> Propagator:
    r"""The coefficients of a step; computed in float64.

    With τ = ω dt, ζ = 1/(2q) and the solution of e'' + 2ζe' + e = 0 over τ,

    .. math::
        1 - a = C + ζ S, \quad b = S, \quad 1 - c = C - ζ S, \qquad
        C = e^{-ζτ} \cos(\sqrt{1 - ζ²}\, τ), \quad
        S = e^{-ζτ} \sin(\sqrt{1 - ζ²}\, τ) / \sqrt{1 - ζ²}

    above critical damping (ζ > 1) with cosh and sinh, and their common limit at ζ = 1.

    Args:
        frequency: ω, > 0, in radians per unit of time.
        q: Quality, > 0; below 1/2 the oscillator is overdamped.
        elapsed: dt, >= 0; it broadcasts against the others.

    Example:
        >>> a, b, c = propagator(torch.tensor([1.0]), torch.tensor([0.5]), 1.0)
        >>> a, b, c  # critically damped: 1 - 2/e, 1/e, 1
        (tensor([0.2642]), tensor([0.3679]), tensor([1.]))
    """
    dtype = frequency.dtype
    tau = frequency.double() * elapsed
    zeta = 0.5 / q.double()
    x = (1 - zeta * zeta) * tau * tau
    # Near x = 0 the square root has no derivative; the series in x has, and 4 terms suffice.
    near, over = x.abs() < 1e-3, x < 0
    root = torch.where(near, 1.0, x).abs().sqrt()
    # Each in its own region only, as a product 0 * inf in the backward pass would be NaN.
    angle, rate = torch.where(over, 0.0, root), torch.where(over & ~near, root, 0.0)
    decay = torch.exp(-zeta * tau)
    slow, fast = torch.exp(rate - zeta * tau), torch.exp(-rate - zeta * tau)
    C_far = torch.where(over, (slow + fast) / 2, decay * torch.cos(angle))
    S_far = torch.where(over, (slow - fast) / 2, decay * torch.sin(angle)) / root
    C_near = decay * (1 - x / 2 * (1 - x / 12 * (1 - x / 30 * (1 - x / 56))))
    S_near = decay * (1 - x / 6 * (1 - x / 20 * (1 - x / 42 * (1 - x / 72))))
    C, S = torch.where(near, C_near, C_far), torch.where(near, S_near, S_far) * tau
    # float64 leaves 1 - C enough digits for float32 down to a millionth of a period.
    return Propagator(*(v.to(dtype) for v in (1 - C - zeta * S, S, 1 - C + zeta * S)))
