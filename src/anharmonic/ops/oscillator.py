"""Neural oscillators: undamped oscillators, coupled or independent, in two schemes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Unpack

import torch
from torch import Tensor

from anharmonic._checks import choice
from anharmonic.ops.cornn import CoRNNEquation, CoRNNWeights
from anharmonic.ops.equation import Compiled, Equation, State
from anharmonic.ops.sequence import SequenceOptions, check_numbers, run
from anharmonic.ops.unicornn import UnICORNNEquation, UnICORNNWeights

SCHEMES = ("symplectic-euler", "velocity-verlet")
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "sin": torch.sin,
    "identity": lambda A: A,
}
"""σ by name."""


class OscillatorWeights(NamedTuple):
    """Weights of one layer in one direction: V [H, F], W [H, H] or a vector w [H], b or None.

    Example:
        >>> OscillatorWeights(torch.ones(8, 3), -torch.eye(8), None).weight_hh.shape
        torch.Size([8, 8])
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor | None


@dataclass(frozen=True)
class OscillatorEquation(Equation):
    r"""A step of y'' = f(y) = σ(W y + V u_n + b), (4.1); (4.2) if the oscillators are independent.

    .. math::
        \text{symplectic-euler: } z_n &= z_{n-1} + dt\, f(y_{n-1}), \quad
            y_n = y_{n-1} + dt\, z_n \\
        \text{velocity-verlet: } z_{n-1/2} &= z_{n-1} + \tfrac{dt}{2} f(y_{n-1}), \quad
            y_n = y_{n-1} + dt\, z_{n-1/2}, \quad z_n = z_{n-1/2} + \tfrac{dt}{2} f(y_n)

    In velocity Verlet, a layer above reads the middle of the step, :math:`y_{n-1} + \tfrac{dt}{2}
    z_{n-1/2} = (y_{n-1} + y_n) / 2`.

    Example:
        >>> OscillatorEquation(dt=0.1).shapes(3, 8)["weight_ih"]
        (8, 3)
    """

    dt: float = 0.05
    scheme: str = "symplectic-euler"
    activation: str = "tanh"
    independent: bool = False

    kernel: ClassVar[str] = "oscillator"
    Weights: ClassVar[Any] = OscillatorWeights

    @property
    def invertible(self) -> bool:  # type: ignore[override]
        """Whether it can run on UnICORNN's grid."""
        return self.independent and self.compiled() is not None

    def shapes(self, inputs: int, hidden: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of V, W or w, and b."""
        own = (hidden,) if self.independent else (hidden, hidden)
        return {"weight_ih": (hidden, inputs), "weight_hh": own, "bias": (hidden,)}

    def prepare(self, w: OscillatorWeights) -> Tensor:
        """Return W, transposed, or w."""
        return w.weight_hh if self.independent else w.weight_hh.t()

    def step(self, u: Tensor, state: State, w: Tensor, dt: float | Tensor) -> State:
        """Take one step of the equation above."""
        y, z = state
        if self.scheme == "symplectic-euler":
            z = z + dt * self._force(u, y, w)
            return State(y + dt * z, z)
        z_half = z + dt / 2 * self._force(u, y, w)
        y = y + dt * z_half
        return State(y, z_half + dt / 2 * self._force(u, y, w))

    def _force(self, u: Tensor, y: Tensor, w: Tensor) -> Tensor:
        A = u + w * y if self.independent else torch.addmm(u, y, w)
        return ACTIVATIONS[self.activation](A)

    def passed_up(self, output: Tensor, start: State) -> Tensor:
        """Return the middle of each step in velocity Verlet."""
        if self.scheme == "symplectic-euler":
            return output
        return (torch.cat([start.y[None], output[:-1]]) + output) / 2

    def compiled(self) -> Compiled | None:
        """Return symplectic Euler with tanh: coRNN with 𝒲 = 0, γ = ε = 0 for W; UnICORNN for w."""
        if (self.scheme, self.activation) != ("symplectic-euler", "tanh"):
            return None
        if self.independent:
            return replace(self._unicornn(1).compiled(), weights=_unicornn_weights)
        return replace(CoRNNEquation(self.dt, 0.0, 0.0).compiled(), weights=_cornn_weights)

    def on_grid(self, weights: Sequence[Any]) -> tuple[UnICORNNEquation, Sequence[Any]]:
        """Return equation and weights as those of UnICORNN, which has a grid."""
        return self._unicornn(len(weights)), [_unicornn_weights(w) for w in weights]

    def _unicornn(self, layers: int) -> UnICORNNEquation:
        """Return UnICORNN with α = 0, where z falls by h tanh(A) with h = dt σ̂(c), σ̂(0) = 1/2."""
        return UnICORNNEquation((2 * self.dt,) * layers, 0.0)


def _cornn_weights(w: OscillatorWeights) -> CoRNNWeights:
    """Return coRNN's weights with 𝒲 = 0."""
    return CoRNNWeights(w.weight_ih, w.weight_hh, torch.zeros_like(w.weight_hh), w.bias)


def _unicornn_weights(w: OscillatorWeights) -> UnICORNNWeights:
    """Return UnICORNN's weights with opposite sign, as tanh is odd, and c = 0."""
    b = None if w.bias is None else -w.bias
    return UnICORNNWeights(-w.weight_ih, -w.weight_hh, b, torch.zeros_like(w.weight_hh))


def oscillator(
    x: Tensor,
    weights: Sequence[OscillatorWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    scheme: str = "symplectic-euler",
    activation: str = "tanh",
    **options: Unpack[SequenceOptions],
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Run a stack of neural oscillators over a sequence; ``OscillatorEquation`` is the equation.

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial positions.
        z0: Initial velocities.
        dt: Step, > 0.
        scheme: ``"symplectic-euler"`` or ``"velocity-verlet"``.
        activation: σ: ``"tanh"``, ``"sin"`` or ``"identity"``.
        options: Directions, lengths, memory and others; see ``SequenceOptions``.
            ``memory="reversible"`` needs vectors w with tanh and symplectic Euler in one direction.
            It uses UnICORNN's grid.

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H] with D directions. Returns outputs y [T, B, D * H]
        ([B, D * H] for ``output="last"``, None for "none"), final y and final z [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, a shape does not fit, or policy or backend do not support
            this input.
        OverflowError: If states leave the grid of the reversible policy.

    Example:
        >>> import torch
        >>> w = OscillatorWeights(torch.ones(3, 2), -torch.ones(3), None)
        >>> zero = torch.zeros(1, 4, 3)
        >>> out, y, z = oscillator(torch.ones(5, 4, 2), [w], zero, zero, dt=0.1)
        >>> out.shape, torch.equal(out[-1], y[0])
        (torch.Size([5, 4, 3]), True)
    """
    check_numbers(dt=dt)
    choice("scheme", scheme, SCHEMES)
    choice("activation", activation, ACTIVATIONS)
    independent = bool(weights) and weights[0].weight_hh.dim() == 1
    equation = OscillatorEquation(dt, scheme, activation, independent)
    return run(equation, x, weights, (y0, z0), **options)  # type: ignore[return-value]
