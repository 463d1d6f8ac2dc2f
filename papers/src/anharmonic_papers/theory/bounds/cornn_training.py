"""How long gradient descent keeps coRNN's weights small enough (the remark after T 2.2.6).

What the checks take, unless they say otherwise:

    layer: One layer, one direction, implicit scheme, ε = γ = 1, float64; a copy is trained, with W
        = 𝒲 = 0 at first.
    x: One sequence.
    targets: The targets.
    rate: The learning rate ζ, > 0.
    r: The exponent of the assumption.

Shape: x [N, 1, F]; targets [N, 1, H]; measured and bound, one for each training step.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import torch
from torch import Tensor

from anharmonic.nn import CoRNN
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.bounds.cornn_energy import scalars, unit_assumptions
from anharmonic_papers.theory.bounds.cornn_gradients import passed_on, short, target_size
from anharmonic_papers.theory.bounds.cornn_jacobian import eta
from anharmonic_papers.theory.gradients import column_sum, row_sum, total_gradient
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import check_single, weights


def _descent(
    layer: CoRNN,
    x: Tensor,
    targets: Tensor,
    rate: float,
    steps: int,
    size: Callable[[CoRNN], float],
) -> Tensor:
    """A size after every step of gradient descent from W = 𝒲 = 0; the layer is left alone."""
    check_single(layer)
    layer, found = copy.deepcopy(layer), []
    with torch.no_grad():
        for name in ("weight_hy_l0", "weight_hz_l0"):
            layer.get_parameter(name).zero_()
    for _ in range(steps):
        gradient = total_gradient(layer, x, targets)
        with torch.no_grad():
            for name, weight in layer.named_parameters():
                weight.sub_(rate * gradient[name])
        found.append(size(layer))
    return torch.tensor(found, dtype=torch.float64)


def _all_zero(steps: int) -> tuple[CoRNN, Tensor, Tensor, float]:
    """One neuron of zeros, target 10, and a rate for which the printed number of steps is given."""
    n = 10_000
    layer = CoRNN(1, 1, dt=1 / n, scheme="implicit", dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
    x = torch.zeros(n, 1, 1, dtype=torch.float64)
    return layer, x, torch.full_like(x, 10.0), 2 * (1 + 1 / n) / (3 * 11 * steps)


@statement(
    "cornn-training-printed",
    number="T 2.2.6, remark = C 3.2, remark",
    chapter="coRNN",
    claim=(
        "Gradient descent with rate ζ from W = 𝒲 = 0 keeps η ≤ dt^r for at least 2/(3 ζ (m + Ȳ "
        "sqrt(m)) m dt^(1-r) δ) steps."
    ),
    state="unread",
    remark=(
        "Read from a damaged line. It forgets the 1 in 1 + ‖W‖∞ (at r = 1 the condition is ‖W‖∞ ≤ "
        "dt) and rests on the printed bound of the gradient. Counterexample at r = 1: one neuron, "
        "all weights zero, dt = 1e-4. The paper has 1/(C ζ m² dt^(1-r) δ²), C not given."
    ),
    example=lambda: training_printed(*(case := _all_zero(4))[:3], rate=case[3], r=1.0),
)
def training_printed(layer: CoRNN, x: Tensor, targets: Tensor, *, rate: float, r: float) -> Check:
    """Runs as many steps of gradient descent as are promised and holds η against dt^r."""
    dt, m = scalars(layer)[0], layer.hidden_size
    promised = 2 * (1 + dt) / (3 * rate * target_size(layer, targets) * m * dt ** (1 - r))
    return Check(
        measured=_descent(layer, x, targets, rate, max(1, math.floor(promised * (1 + 1e-9))), eta),
        bound=torch.tensor(dt**r),
        assumptions=unit_assumptions(layer) | short(layer, x) | {"1/2 ≤ r ≤ 1": 0.5 <= r <= 1},
        axis="training step",
        quantity="η",
    )


def _watched() -> Check:
    """A free neuron that watches others, which their input pushes, and is asked for 100."""
    layer = CoRNN(1, 16, dt=0.01, scheme="implicit", dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        layer.get_parameter("weight_ih_l0")[1:] = 20.0
    x = torch.ones(100, 1, 1, dtype=torch.float64)
    targets = torch.zeros(100, 1, 16, dtype=x.dtype)
    targets[..., 0] = 100.0
    return training(layer, x, targets, rate=1e-5, r=1.0)


@statement(
    "cornn-training",
    number="T 2.2.6, remark = C 3.2, remark",
    chapter="coRNN",
    claim=(
        "Gradient descent with rate ζ from W = 𝒲 = 0 keeps row and column sums of W and 𝒲 at most "
        "ρ = min(1, dt^(r-1)(1 + dt) - 1), and η ≤ dt^r, for at least ρ/(ζ m g) steps, g the mean "
        "over n of (sqrt(t_n) + Ȳ) a_n for ‖W‖_1 = ‖𝒲‖_1 = ρ and sources sqrt(t_{n-1})."
    ),
    state="corrected",
    remark="Ours: until rows or columns sum to ρ, the corrected bound of the gradient holds.",
    example=_watched,
)
def training(layer: CoRNN, x: Tensor, targets: Tensor, *, rate: float, r: float) -> Check:
    """Runs as many steps of gradient descent as are promised and holds row sums against ρ."""
    dt, m = scalars(layer)[0], layer.hidden_size
    room = min(1.0, dt ** (r - 1) * (1 + dt) - 1)
    roots = (dt * torch.arange(len(x) + 1, dtype=torch.float64)).sqrt()
    reach = roots[1:] + float(targets.abs().max())
    steepest = float((reach * passed_on(layer, roots[:-1], room, room)).mean())
    promised = math.floor(room / (rate * m * steepest))
    return Check(
        measured=_descent(layer, x, targets, rate, max(1, promised), largest_sum) / room,
        bound=torch.ones(()),
        assumptions=unit_assumptions(layer)
        | short(layer, x)
        | {"1/2 ≤ r ≤ 1": 0.5 <= r <= 1, "one step or more": promised >= 1},
        axis="training step",
        quantity="largest sum of W or 𝒲, over ρ",
    )


def largest_sum(layer: CoRNN) -> float:
    """The largest row or column sum of absolute values of W and 𝒲."""
    values = weights(layer)
    sums = [f(values[name]) for f in (row_sum, column_sum) for name in ("weight_hy", "weight_hz")]
    return float(torch.stack(sums).max())
