"""What the papers prove about coRNN's partial gradients, a block of T 2.2.6 = C 3.2.

The partial gradient of E_n counts the use of θ, an entry of W, 𝒲, V or b, at step k only.

What the checks take, unless they say otherwise:

    layer: One layer, one direction, implicit scheme, ε = γ = 1, float64.
    x: One sequence; its last step is n.
    target: The target of the last step.
    r: The exponent of the assumption.
    steps: The steps k, counted from 1.
    parameter: "weight_hy" (W), "weight_hz" (𝒲), "weight_ih" (V) or "bias".

Shape: x [n, 1, F]; target [1, H]; measured and bound [len(steps)].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn import CoRNN
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.bounds.cornn_energy import scalars, unit_assumptions
from anharmonic_papers.theory.bounds.cornn_gradients import SOURCES, passed_on, unstable_neuron
from anharmonic_papers.theory.bounds.cornn_jacobian import condition
from anharmonic_papers.theory.gradients import partial_gradient
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import check_single


def _partials(
    layer: CoRNN, x: Tensor, target: Tensor, steps: Sequence[int], parameter: str
) -> Tensor:
    """The largest entry of each partial gradient, steps k -> [len(steps)]."""
    check_single(layer)
    _checks.choice("parameter", parameter, SOURCES)
    name = f"{parameter}_l0"
    found = [partial_gradient(layer, x, target, k)[name].abs().max() for k in steps]
    return torch.stack(found)


def _sources(layer: CoRNN, x: Tensor, steps: Sequence[int], parameter: str) -> Tensor:
    """What θ is multiplied with at each step: largest entry of y_{k-1}, z_{k-1}, u_k, or 1."""
    found = []
    for k in steps:
        if parameter == "bias":
            source = x.new_ones(1)
        elif parameter == "weight_ih":
            source = x[k - 1]
        elif k == 1:
            source = x.new_zeros(1)
        else:
            _, (y, z) = layer(x[: k - 1], output="none")
            source = y if parameter == "weight_hy" else z
        found.append(source.detach().abs().max())
    return torch.stack(found)


def _rest(n: int, steps: Sequence[int]) -> Tensor:
    """The n - k of every step."""
    return torch.tensor([float(n - k) for k in steps], dtype=torch.float64)


def _ahead(layer: CoRNN, n: int, steps: Sequence[int]) -> Tensor:
    """The a_n of a single unit source at step k, for every step."""
    impulse = torch.zeros(n, dtype=torch.float64)
    impulse[0] = 1.0
    return passed_on(layer, impulse)[[n - k for k in steps]]


def _reach(layer: CoRNN, x: Tensor, target: Tensor) -> float:
    """‖y_n‖∞ + ‖ȳ_n‖∞."""
    return float(layer(x, output="last")[0].detach().abs().max() + target.abs().max())


def _early() -> tuple[CoRNN, Tensor, Tensor]:
    layer, x = unstable_neuron("implicit")
    return layer, x, torch.full((1, 1), 10.0, dtype=x.dtype)


@statement(
    "cornn-partial-gradient-printed",
    number="T 2.2.6 = C 3.2",
    chapter="coRNN",
    claim=(
        "If η ≤ dt^r, then |∂E_n^(k)/∂W_ij| ≤ (‖y_n‖∞ + ‖ȳ_n‖∞)(1 + 3(n-k) dt^r) δ dt ‖y_{k-1}‖∞; "
        "z_{k-1}, u_k and 1 for 𝒲, V and b."
    ),
    state="false",
    remark="The counterexample is that of the whole gradient, with the bias at k = 1.",
    example=lambda: partial_printed(*_early(), r=0.5, steps=[1], parameter="bias"),
)
def partial_printed(
    layer: CoRNN,
    x: Tensor,
    target: Tensor,
    *,
    r: float,
    steps: Sequence[int],
    parameter: str = "weight_hy",
) -> Check:
    """The largest entry of partial gradients of the last step against the printed bound."""
    dt = scalars(layer)[0]
    measured = _partials(layer, x, target, steps, parameter)
    source = dt / (1 + dt) * _sources(layer, x, steps, parameter)
    ahead = 1 + 3 * _rest(len(x), steps) * dt**r
    return Check(
        measured=measured,
        bound=_reach(layer, x, target) * ahead * source,
        assumptions=unit_assumptions(layer) | condition(layer, r),
        places=torch.tensor(steps),
        axis="step k",
        quantity="largest |∂E_n^(k)/∂θ|",
    )


@statement(
    "cornn-partial-gradient-any-printed",
    number="T 2.2.6 = C 3.2",
    chapter="coRNN",
    claim="If η ≤ dt^r and t_n ≤ 1, then |∂E_n^(k)/∂θ| ≤ 3 δ dt (m + sqrt(m) ‖ȳ_n‖∞) in all cases.",
    state="false",
    remark="The counterexample is that of the whole gradient, with the bias at k = 1.",
    example=lambda: partial_any_printed(*_early(), r=0.5, steps=[1], parameter="bias"),
)
def partial_any_printed(
    layer: CoRNN,
    x: Tensor,
    target: Tensor,
    *,
    r: float,
    steps: Sequence[int],
    parameter: str = "weight_hy",
) -> Check:
    """The largest entry of partial gradients against the printed bound for all cases."""
    dt, m = scalars(layer)[0], layer.hidden_size
    size = m + math.sqrt(m) * float(target.abs().max())
    return Check(
        measured=_partials(layer, x, target, steps, parameter),
        bound=torch.tensor(3 * dt / (1 + dt) * size),
        assumptions=unit_assumptions(layer)
        | condition(layer, r)
        | {"t_n ≤ 1": len(x) * dt <= 1 + 1e-12, "|u| ≤ 1": bool(x.abs().max() <= 1)},
        places=torch.tensor(steps),
        axis="step k",
        quantity="largest |∂E_n^(k)/∂θ|",
    )


def _driven_away() -> tuple[CoRNN, Tensor, Tensor]:
    layer, x = unstable_neuron("implicit", 200)
    return layer, x, torch.full((1, 1), 10.0, dtype=x.dtype)


@statement(
    "cornn-partial-gradient",
    number="T 2.2.6 = C 3.2",
    chapter="coRNN",
    claim=(
        "|∂E_n^(k)/∂W_ij| ≤ (‖y_n‖∞ + ‖ȳ_n‖∞) a_n ‖y_{k-1}‖∞; z_{k-1}, u_k and 1 for 𝒲, V and b: "
        "b_k = δ dt and a_k = dt b_k, then a_j = a_{j-1} + dt b_j, b_j = δ [(1 + dt ‖𝒲‖_1) b_{j-1} "
        "+ dt (1 + ‖W‖_1) a_{j-1}]."
    ),
    state="corrected",
    remark="Ours: column sums for row sums, and no expansion.",
    example=lambda: partial(*_driven_away(), steps=range(1, 201, 20), parameter="bias"),
)
def partial(
    layer: CoRNN,
    x: Tensor,
    target: Tensor,
    *,
    steps: Sequence[int],
    parameter: str = "weight_hy",
) -> Check:
    """The largest entry of partial gradients of the last step against a safe bound."""
    measured = _partials(layer, x, target, steps, parameter)
    source = _sources(layer, x, steps, parameter)
    return Check(
        measured=measured,
        bound=_reach(layer, x, target) * _ahead(layer, len(x), steps) * source,
        assumptions=unit_assumptions(layer),
        places=torch.tensor(steps),
        axis="step k",
        quantity="largest |∂E_n^(k)/∂θ|",
    )
