"""What the papers prove about the size of UnICORNN's states (thesis, section 3.2), from rest.

What the checks take, unless they say otherwise:

    layer: A stack in one direction, float64.
    x: The inputs.

Shape: x [T, B, F]; measured and bound [T], the larger of the two, and the largest of all neurons.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from anharmonic.nn import UnICORNN
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.bounds.unicornn_structure import step_sizes
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import trajectory


def largest_step(layer: UnICORNN) -> float:
    """The dt of a layer, the largest of a stack's."""
    return max(layer.dt) if isinstance(layer.dt, list) else layer.dt


def _numbers(x: Tensor) -> Tensor:
    return torch.arange(1, len(x) + 1, dtype=x.dtype)


def resonance(steps: int, dt: float = 0.01) -> tuple[UnICORNN, Tensor]:
    """The counterexample: α = 1, h = dt, w = 0, a square wave that saturates tanh."""
    layer = UnICORNN(1, 1, dt=dt, frequency=1.0, dtype=torch.float64)
    with torch.no_grad():
        for name, value in {
            "weight_ih": 1.0,
            "weight_hh": 0.0,
            "bias": 0.0,
            "timescale": 40.0,
        }.items():
            layer.get_parameter(f"{name}_l0").fill_(value)
    times = dt * torch.arange(steps, dtype=torch.float64)
    return layer, 20.0 * torch.sin(times).sign()[:, None, None]


@statement(
    "unicornn-states-printed",
    number="T 3.2.1 = U C.1",
    chapter="UnICORNN",
    claim=(
        "For α > 0 and β = max(1 + 2α, 4α²), |y_n^i| ≤ sqrt((2/α)(1 + 2β t_n)) and |z_n^i| ≤ "
        "sqrt(2 (1 + 2β t_n)) in every layer."
    ),
    state="false",
    remark=(
        "Its proof takes (1 + β dt)^n ≤ 1 + 2β t_n, true for β t_n up to about 1.256 only. "
        "Counterexample: a square wave at resonance, with ratios of 0.69, 1.23 and 2.24 at t = "
        "20, 60 and 200. The tuned models have N dt from 44 to 617 and β up to 3757."
    ),
    example=lambda: states_printed(*resonance(1200, 0.05)),
)
def states_printed(layer: UnICORNN, x: Tensor) -> Check:
    """The largest |y| and |z|, each over its printed bound."""
    alpha, path = layer.frequency, trajectory(layer, x)
    t = largest_step(layer) * _numbers(x)
    growth = (2 * (1 + 2 * max(1 + 2 * alpha, 4 * alpha**2) * t)).sqrt()
    y, z = (values[1:].abs().flatten(1).amax(1) for values in path)
    return Check(
        measured=torch.maximum(math.sqrt(alpha) * y, z) / growth,
        bound=torch.ones(()),
        assumptions={"α > 0": alpha > 0},
        quantity="larger of |y| and |z|, each over its bound",
    )


def stable(layer: UnICORNN) -> dict[str, bool]:
    """What every bound of the states asks for."""
    root = math.sqrt(layer.frequency)
    steps = [float(step_sizes(layer, level).max()) for level in range(layer.num_layers)]
    return {"h sqrt(α) < 2": max(steps) * root < 2}


def state_bounds(layer: UnICORNN, steps: int) -> tuple[Tensor, Tensor]:
    """What |y| and |z| of a single layer are at most after 0 to N steps from rest, [N + 1, H]."""
    n, h = torch.arange(steps + 1, dtype=torch.float64)[:, None], step_sizes(layer)
    if layer.frequency == 0:
        return h.square() * n * (n + 1) / 2, n * h
    root = math.sqrt(layer.frequency)
    z = n * h / (1 - h * root / 2).sqrt()
    return z / root, z


def _scaled(layer: UnICORNN, y: Tensor, z: Tensor) -> Tensor:
    """(α y² + z²)(1 - h sqrt(α)/2)/h² of each neuron, [T + 1, L, B, H] -> [T], the largest."""
    alpha = layer.frequency
    h = torch.stack([step_sizes(layer, level) for level in range(layer.num_layers)])[:, None]
    energy = (alpha * y.square() + z.square()) * (1 - h * math.sqrt(alpha) / 2) / h.square()
    return energy[1:].flatten(1).amax(1)


@statement(
    "unicornn-states",
    number="T 3.2.1 = U C.1",
    chapter="UnICORNN",
    claim="α (y_n^i)² + (z_n^i)² ≤ (n h_i)²/(1 - h_i sqrt(α)/2) in every layer.",
    state="corrected",
    remark=(
        "For all n: α y² - h α y z + z² is conserved without force, and a force changes its root "
        "by h at most. Linear in n, where the printed bound has sqrt(n)."
    ),
    example=lambda: states(*resonance(1200, 0.05)),
)
def states(layer: UnICORNN, x: Tensor) -> Check:
    """The energy of each neuron, in units of its h²/(1 - h sqrt(α)/2), against n².

    Shape: x [T, B, F]; measured and bound [T], the largest over neurons, layers and batch.
    """
    return Check(
        measured=_scaled(layer, *trajectory(layer, x)),
        bound=_numbers(x).square(),
        assumptions=stable(layer),
        quantity="(α y² + z²)(1 - h sqrt(α)/2)/h²",
    )


def _pushed_free() -> tuple[UnICORNN, Tensor]:
    """Neurons without restoring force that their input pushes one way."""
    layer, x = resonance(100)
    layer.frequency = 0.0
    return layer, torch.full_like(x, 20.0)


@statement(
    "unicornn-states-free",
    number="T 3.2.1 = U C.1",
    chapter="UnICORNN",
    claim="For α = 0, |z_n^i| ≤ n h_i and |y_n^i| ≤ h_i² n(n+1)/2 in every layer.",
    state="corrected",
    remark="The printed statement leaves α = 0 out, which EigenWorms is tuned to.",
    example=lambda: states_free(*_pushed_free()),
)
def states_free(layer: UnICORNN, x: Tensor) -> Check:
    """The largest |y| and |z| without restoring force, each over its bound."""
    h = torch.stack([step_sizes(layer, level) for level in range(layer.num_layers)])[:, None]
    path, n = trajectory(layer, x), _numbers(x)
    z = (path.z[1:].abs() / h).flatten(1).amax(1) / n
    y = (path.y[1:].abs() / h.square()).flatten(1).amax(1) / (n * (n + 1) / 2)
    return Check(
        measured=torch.maximum(y, z),
        bound=torch.ones(()),
        assumptions={"α = 0": layer.frequency == 0},
        quantity="larger of |y| and |z|, each over its bound",
    )


@statement(
    "unicornn-sensitivity",
    number="T 3.2, after 3.2.1",
    chapter="UnICORNN",
    claim="Two inputs: α Δy² + Δz² ≤ (2 n h)²/(1 - h sqrt(α)/2) for each neuron: no chaos.",
    state="corrected",
    remark="The papers say that it follows as 3.2.1 does; this is the form that holds.",
    example=lambda: sensitivity(*(case := resonance(1200, 0.05)), -case[1]),
)
def sensitivity(layer: UnICORNN, x: Tensor, other: Tensor) -> Check:
    """How far two inputs drive each neuron apart, in units of its energy's bound, against (2n)².

    Args:
        other: Other inputs.

    Shape: x, other [T, B, F]; measured and bound [T], the largest over neurons, layers and batch.
    """
    one, two = trajectory(layer, x), trajectory(layer, other)
    return Check(
        measured=_scaled(layer, one.y - two.y, one.z - two.z),
        bound=4 * _numbers(x).square(),
        assumptions=stable(layer),
        quantity="(α Δy² + Δz²)(1 - h sqrt(α)/2)/h²",
    )
