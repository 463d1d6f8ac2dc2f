"""One step of the neural oscillators, symplectic Euler or velocity Verlet: the equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic.ops.recurrence import Layer, State

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "sin": torch.sin,
    "identity": lambda A: A,
}
"""σ by name."""


class OscillatorWeights(NamedTuple):
    """Weights of one layer in one direction: V [H, F], W [H, H] or a vector w [H], b or None."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor | None


class OscillatorTerms(NamedTuple):
    """What a layer is made of: its weights, and which of a step's variables it gives."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor | None
    output: int


class OscillatorState(NamedTuple):
    """The state after a step, and the position that a layer above sees."""

    y: Tensor
    z: Tensor
    seen: Tensor


def oscillator_layer(terms: OscillatorTerms, inputs: list[Tensor], dt: float) -> Layer:
    """A layer ready for a stretch of time; its drive is V u_n + b, a matrix W is transposed."""
    W = terms.weight_hh
    drive = F.linear(inputs[-1], terms.weight_ih, terms.bias)
    return Layer(drive, W.t() if W.dim() == 2 else W, dt, terms.output)


def euler_step(
    u: Tensor, state: State, W: Tensor, dt: float | Tensor, activation: str
) -> OscillatorState:
    r"""Symplectic Euler of y'' = σ(W y + V u + b), (4.1); (4.2) for a vector w.

    .. math::
        z_n = z_{n-1} + dt\,\sigma(W y_{n-1} + V u_n + b), \quad y_n = y_{n-1} + dt\, z_n
    """
    y, z = state
    z = z + dt * _force(u, y, W, activation)
    y = y + dt * z
    return OscillatorState(y, z, y)


def verlet_step(
    u: Tensor, state: State, W: Tensor, dt: float | Tensor, activation: str
) -> OscillatorState:
    r"""Velocity Verlet of the same equation, with f(y) = σ(W y + V u_n + b).

    .. math::
        z_{n-1/2} = z_{n-1} + \tfrac{dt}{2} f(y_{n-1}), \quad
        y_n = y_{n-1} + dt\, z_{n-1/2}, \quad z_n = z_{n-1/2} + \tfrac{dt}{2} f(y_n)

    A layer above sees the middle of the step, :math:`y_{n-1} + \tfrac{dt}{2} z_{n-1/2}`.
    """
    y, z = state
    z_half = z + dt / 2 * _force(u, y, W, activation)
    y_new = y + dt * z_half
    z_new = z_half + dt / 2 * _force(u, y_new, W, activation)
    return OscillatorState(y_new, z_new, y + dt / 2 * z_half)


def _force(u: Tensor, y: Tensor, W: Tensor, activation: str) -> Tensor:
    A = torch.addmm(u, y, W) if W.dim() == 2 else u + W * y
    return ACTIVATIONS[activation](A)
