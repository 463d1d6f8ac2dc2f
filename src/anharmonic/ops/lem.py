"""LEM: long expressive memory, two states with learned time scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor

from anharmonic.ops.equation import Compiled, Equation, State
from anharmonic.ops.sequence import SequenceOptions, check_numbers, run


class LEMWeights(NamedTuple):
    """Weights of one layer in one direction.

    weight_ih [4H, F] (V1, V2, Vz, Vy), weight_hh [3H, H] (W1, W2, Wz), weight_zh [H, H] (Wy),
    bias [4H] or None; without multiscale [2H, F] (Vz, Vy), [H, H] (Wz), [H, H], [2H].

    Example:
        >>> weights = LEMWeights(torch.ones(32, 3), torch.zeros(24, 8), torch.zeros(8, 8), None)
        >>> weights.weight_hh.shape
        torch.Size([24, 8])
    """

    weight_ih: Tensor
    weight_hh: Tensor
    weight_zh: Tensor
    bias: Tensor | None


class LEMTerms(NamedTuple):
    """A drive, or transposed matrices, split into the maps of y_{n-1} and the map of z_n."""

    gates_z: Tensor
    y: Tensor


@dataclass(frozen=True)
class LEMEquation(Equation):
    r"""Equation (5.3); without ``multiscale`` both gates are dt.

    .. math::
        a_n &= dt\,\hat\sigma(W_1 y_{n-1} + V_1 u_n + b_1), \quad
        e_n = dt\,\hat\sigma(W_2 y_{n-1} + V_2 u_n + b_2) \\
        z_n &= (1 - a_n) \odot z_{n-1} + a_n \odot \tanh(W_z y_{n-1} + V_z u_n + b_z) \\
        y_n &= (1 - e_n) \odot y_{n-1} + e_n \odot \tanh(W_y z_n + V_y u_n + b_y)

    With ``gate_floor`` a and e are clipped to [gate_floor, 1].

    Example:
        >>> LEMEquation(dt=0.1).shapes(3, 8)["weight_ih"]
        (32, 3)
    """

    dt: float = 1.0
    multiscale: bool = True
    gate_floor: float | None = None

    kernel: ClassVar[str] = "lem"
    Weights: ClassVar[Any] = LEMWeights

    def shapes(self, inputs: int, hidden: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of V and b of gates, z and y; W of gates and z; W of y."""
        blocks = 4 if self.multiscale else 2
        return {
            "weight_ih": (blocks * hidden, inputs),
            "weight_hh": ((blocks - 1) * hidden, hidden),
            "weight_zh": (hidden, hidden),
            "bias": (blocks * hidden,),
        }

    def drive(self, x: Tensor, w: LEMWeights) -> LEMTerms:
        """Return V u_n + b, split."""
        drive = F.linear(x, w.weight_ih, w.bias)
        H = w.weight_zh.shape[0]
        return LEMTerms(*drive.split_with_sizes([drive.shape[-1] - H, H], dim=-1))

    def prepare(self, w: LEMWeights) -> LEMTerms:
        """Return W, transposed."""
        return LEMTerms(w.weight_hh.t(), w.weight_zh.t())

    def step(self, u: LEMTerms, state: State, w: LEMTerms, dt: float | Tensor) -> State:
        """Take one step of the equation above."""
        y, z = state
        H = y.shape[-1]
        A_z, a, e = torch.addmm(u.gates_z, y, w.gates_z), dt, dt
        if self.multiscale:
            A_gates, A_z = A_z.split_with_sizes([2 * H, H], dim=1)
            gates = dt * torch.sigmoid(A_gates)
            if self.gate_floor is not None:
                gates = gates.clamp(self.gate_floor, 1.0)
            a, e = gates.chunk(2, dim=1)
        z = torch.lerp(z, torch.tanh(A_z), a)
        y = torch.lerp(y, torch.tanh(torch.addmm(u.y, z, w.y)), e)
        return State(y, z)

    def compiled(self) -> Compiled:
        """Return the arguments of csrc/lem.h."""
        model = "lem" if self.gate_floor is None else "lem_clipped"
        numbers = (self.dt, 0.0, 0.0, self.gate_floor or 0.0)
        return Compiled(model if self.multiscale else "lem_single_scale", numbers)


def lem(
    x: Tensor,
    weights: Sequence[LEMWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    multiscale: bool = True,
    gate_floor: float | None = None,
    **options: Unpack[SequenceOptions],
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Run a stack of LEM layers over a sequence; ``LEMEquation`` is the equation.

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial slow states.
        z0: Initial fast states.
        dt: Step, > 0; states stay bounded for dt <= 1.
        multiscale: Whether the gates are learned; if not, both equal dt.
        gate_floor: Clips both gates to [gate_floor, 1] if given (multiscale only).
        options: Directions, lengths, memory and others; see ``SequenceOptions``.

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H] with D directions. Returns outputs y [T, B, D * H]
        ([B, D * H] for ``output="last"``, None for "none"), final y and final z [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, a shape does not fit, or policy or backend do not support
            this input.

    Example:
        >>> import torch
        >>> w = LEMWeights(torch.ones(12, 2), torch.zeros(9, 3), torch.eye(3), None)
        >>> zero = torch.zeros(1, 4, 3)
        >>> out, y, z = lem(torch.ones(5, 4, 2), [w], zero, zero, dt=1.0)
        >>> out.shape, torch.equal(out[-1], y[0])
        (torch.Size([5, 4, 3]), True)
    """
    check_numbers(dt=dt)
    return run(LEMEquation(dt, multiscale, gate_floor), x, weights, (y0, z0), **options)  # type: ignore[return-value]
