"""coRNN: coupled oscillators with damping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Unpack

import torch
from torch import Tensor

from anharmonic._checks import choice
from anharmonic.ops.equation import Compiled, Equation, State
from anharmonic.ops.sequence import SequenceOptions, check_numbers, run

SCHEMES = ("explicit", "implicit")


class CoRNNWeights(NamedTuple):
    """Weights of one layer in one direction: V [H, F], W [H, H], 𝒲 [H, H], b [H] or None.

    Example:
        >>> weights = CoRNNWeights(torch.ones(8, 3), torch.zeros(8, 8), torch.zeros(8, 8), None)
        >>> weights.weight_ih.shape
        torch.Size([8, 3])
    """

    weight_ih: Tensor
    weight_hy: Tensor
    weight_hz: Tensor
    bias: Tensor | None


@dataclass(frozen=True)
class CoRNNEquation(Equation):
    r"""Equation (2.3), with A = W y + 𝒲 z + V u + b; ε acts on the old or the new velocity.

    .. math::
        \text{explicit: } z_n &= z_{n-1} + dt\,(\tanh A - \gamma y_{n-1} - \epsilon z_{n-1}) \\
        \text{implicit: } z_n &= (z_{n-1} + dt\,(\tanh A - \gamma y_{n-1})) / (1 + dt\,\epsilon) \\
        y_n &= y_{n-1} + dt\, z_n

    Here γ is ``frequency`` and ε ``damping``.

    Example:
        >>> CoRNNEquation(dt=0.1).shapes(3, 8)["weight_ih"]
        (8, 3)
    """

    dt: float | Tensor = 0.05
    frequency: float | Tensor = 1.0
    damping: float | Tensor = 1.0
    scheme: str = "explicit"

    kernel: ClassVar[str] = "cornn"
    Weights: ClassVar[Any] = CoRNNWeights

    def shapes(self, inputs: int, hidden: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of V, W, 𝒲 and b."""
        square = (hidden, hidden)
        return {
            "weight_ih": (hidden, inputs),
            "weight_hy": square,
            "weight_hz": square,
            "bias": (hidden,),
        }

    def prepare(self, w: CoRNNWeights) -> CoRNNWeights:
        """Return W and 𝒲, transposed."""
        return w._replace(weight_hy=w.weight_hy.t(), weight_hz=w.weight_hz.t())

    def step(self, u: Tensor, state: State, w: CoRNNWeights, dt: float | Tensor) -> State:
        """Take one step of the equation above."""
        y, z = state
        A = torch.addmm(torch.addmm(u, y, w.weight_hy), z, w.weight_hz)
        force = torch.tanh(A) - self.frequency * y
        if self.scheme == "explicit":
            z = z + dt * (force - self.damping * z)
        else:
            z = (z + dt * force) / (1 + dt * self.damping)
        return State(y + dt * z, z)

    def compiled(self) -> Compiled:
        """Return the arguments of csrc/cornn.h."""
        return Compiled(f"cornn_{self.scheme}", (self.dt, self.frequency, self.damping, 0.0))


def cornn(
    x: Tensor,
    weights: Sequence[CoRNNWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float | Tensor,
    frequency: float | Tensor,
    damping: float | Tensor,
    scheme: str = "explicit",
    **options: Unpack[SequenceOptions],
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Run a stack of coRNN layers over a sequence; ``CoRNNEquation`` is the equation.

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial positions.
        z0: Initial velocities.
        dt: Step, > 0; a number or a scalar tensor (then it gets a gradient).
        frequency: γ, >= 0; number or scalar tensor.
        damping: ε; number or scalar tensor.
        scheme: ``"explicit"`` or ``"implicit"`` damping.
        options: Directions, lengths, memory and others; see ``SequenceOptions``.

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H] with D directions. Returns outputs y [T, B, D * H]
        ([B, D * H] for ``output="last"``, None for "none"), final y and final z [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, a shape does not fit, or policy or backend do not support
            this input.

    Example:
        >>> import torch
        >>> w = CoRNNWeights(torch.ones(3, 2), torch.eye(3), torch.eye(3), None)
        >>> zero = torch.zeros(1, 4, 3)
        >>> x = torch.ones(5, 4, 2)
        >>> out, y, z = cornn(x, [w], zero, zero, dt=0.1, frequency=1.0, damping=1.0)
        >>> out.shape, torch.equal(out[-1], y[0])
        (torch.Size([5, 4, 3]), True)
    """
    check_numbers(dt=dt, frequency=frequency, damping=damping)
    equation = CoRNNEquation(dt, frequency, damping, choice("scheme", scheme, SCHEMES))
    return run(equation, x, weights, (y0, z0), **options)  # type: ignore[return-value]
