"""What the papers prove about LEM's states (thesis, chapter 5)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn import LEM
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import check_single, states


def check_gates(layer: LEM) -> None:
    """Checks that a layer is single, with learned gates that are not clipped.

    Raises:
        ValueError: If it is not.
    """
    check_single(layer)
    if not layer.multiscale or layer.gate_floor is not None:
        raise ValueError(
            _checks.message(
                "the statement is about learned gates without a floor",
                f"multiscale={layer.multiscale}, gate_floor={layer.gate_floor}",
                "pass a layer with multiscale=True and gate_floor=None",
            )
        )


def scaled(hidden_size: int, dt: float, scale: float, steps: int) -> tuple[LEM, Tensor]:
    """An example: a layer with a multiple of its usual weights, and inputs in [-1, 1]."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        layer = LEM(2, hidden_size, dt=dt, dtype=torch.float64)
        with torch.no_grad():
            for weight in layer.parameters():
                weight.mul_(scale)
        return layer, 2 * torch.rand(steps, 1, 2, dtype=torch.float64) - 1


def open_gates(hidden_size: int, dt: float, scale: float, steps: int) -> tuple[LEM, Tensor]:
    """An example near the worst case: both gates fully open, z driven up, y at its steepest."""
    layer, x = scaled(hidden_size, dt, scale, steps)
    with torch.no_grad():
        bias = layer.get_parameter("bias_l0")
        bias.zero_()
        bias[: 3 * hidden_size] = 20.0
        layer.get_parameter("weight_ih_l0").zero_()
    return layer, x


def envelope(steps: int, dt: float) -> Tensor:
    """The min(1, D sqrt(t_n)) of T 5.2.1 for n = 1 to N, D = (1 + dt)/sqrt(2 - dt)."""
    if dt >= 2:
        return torch.ones(steps, dtype=torch.float64)
    n = torch.arange(1, steps + 1, dtype=torch.float64)
    return ((1 + dt) / math.sqrt(2 - dt) * (n * dt).sqrt()).clamp(max=1.0)


@statement(
    "lem-states",
    number="T 5.2.1 = L 4.1",
    chapter="LEM",
    claim="From rest, |z_n^i| and |y_n^i| ≤ min(1, D sqrt(t_n)), D = (1 + dt)/sqrt(2 - dt).",
    state="holds",
    remark="For dt ≤ 1; with dt in (1.5, 2) states above 50 were found. One tuned dt is 1.9.",
    example=lambda: pointwise(*scaled(4, 0.9, 6.0, 100)),
)
def pointwise(layer: LEM, x: Tensor) -> Check:
    """The largest state at every step against its bound.

    Args:
        layer: One layer, one direction, learned gates without a floor, float64.
        x: The inputs.

    Shape: x [T, B, F]; measured and bound [T].
    """
    check_gates(layer)
    y, z = states(layer, x)
    return Check(
        measured=torch.maximum(y.abs(), z.abs()).amax((1, 2)),
        bound=envelope(len(x), layer.dt),
        assumptions={"dt ≤ 1": layer.dt <= 1},
        quantity="largest |y_n^i|, |z_n^i|",
    )
