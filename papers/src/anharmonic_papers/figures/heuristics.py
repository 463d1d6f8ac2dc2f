r"""Systems of one and two oscillators that motivate coRNN (C, supplement B).

.. math::
    y' = z, \qquad z' = \sigma(W y + \mathcal{W} z + V u + b) - \gamma y - \epsilon z

with the time step (2.3):
:math:`z_n = z_{n-1} + dt\,(\sigma(A_n) - \gamma y_{n-1} - \epsilon z_{n-1})`,
:math:`y_n = y_{n-1} + dt\, z_n`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from anharmonic import _checks

Matrix = tuple[tuple[float, ...], ...]
Activation = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class FewOscillators:
    """A few coupled oscillators with one input.

    Args:
        W: The coupling of the positions, a square matrix.
        coupling: The coupling 𝒲 of the velocities, a square matrix.
        V: The weights of the input, one per oscillator.
        bias: The bias b, one per oscillator.
        damping: ε.
        frequency: γ.
        activation: "tanh", "identity", or "duffing", σ(x) = x - x³/3.
        start: Initial positions; velocities start at zero.
    """

    W: Matrix = ((0.0,),)
    coupling: Matrix = ((0.0,),)
    V: tuple[float, ...] = (0.0,)
    bias: tuple[float, ...] = (0.0,)
    damping: float = 0.0
    frequency: float = 1.0
    activation: str = "tanh"
    start: tuple[float, ...] = (0.0,)

    def trajectory(self, inputs: Tensor, dt: float) -> Tensor:
        """Return the positions [T + 1, n] at the times 0, dt, 2 dt, ... of the inputs [T].

        They may become infinite with the activation "duffing", which is unbounded.
        """
        dt = _checks.number("dt", dt, low=0.0, low_open=True)
        advice = "pass one number per step"
        _checks.require(inputs.dim() == 1, "inputs", inputs, "of shape [T]", advice)
        sigma = _ACTIVATIONS[self.activation]
        W, other, V, b, y = (
            torch.tensor(part, dtype=torch.float64)
            for part in (self.W, self.coupling, self.V, self.bias, self.start)
        )
        z, found = torch.zeros_like(y), [y]
        for u in inputs.double():
            force = sigma(W @ y + other @ z + V * u + b)
            z = z + dt * (force - self.frequency * y - self.damping * z)
            y = y + dt * z
            found.append(y)
        return torch.stack(found)


_ACTIVATIONS: dict[str, Activation] = {
    "tanh": torch.tanh,
    "identity": lambda x: x,
    "duffing": lambda x: x - x**3 / 3,
}

_CONTROLLED = FewOscillators(((-2.0,),), ((0.75,),), (2.0,), (0.25,), 0.25, activation="identity")
_PAIR = FewOscillators(
    ((-2.0, 0.0), (3.0, -2.0)),
    ((0.75, 0.0), (-1.0, 0.75)),
    (2.0, 2.0),
    (0.25, 0.25),
    0.25,
    start=(0.0, 0.0),
)

OSCILLATORS: dict[str, FewOscillators] = {
    "SHO": FewOscillators(start=(1.0,)),
    "FHO": FewOscillators(V=(1.0,), activation="identity"),
    "FDO": FewOscillators(V=(1.0,), damping=0.25, activation="identity"),
    "CFDO": _CONTROLLED,
    "coRNN": replace(_CONTROLLED, activation="tanh"),
    "DUFF": replace(_CONTROLLED, activation="duffing"),
    "UC": replace(_PAIR, W=((-2.0, 0.0), (0.0, -2.0)), coupling=((0.75, 0.0), (0.0, 0.75))),
    "ORD": _PAIR,
    "FC": replace(_PAIR, W=((-2.0, 1.0), (3.0, -2.0)), coupling=((0.75, 0.3), (-1.0, 0.75))),
}
"""The simple, forced, forced damped and controlled harmonic oscillator, coRNN's neuron and the
Duffing oscillator; and two coRNN neurons: uncoupled, ordered and fully connected. SHO has no input
and starts at 1. Its W, V and b are zero, so σ has no effect."""
