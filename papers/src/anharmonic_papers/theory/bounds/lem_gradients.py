r"""What the papers prove about the size of LEM's gradients (T 5.2.2 = L 4.2, T 5.2.3).

η is the largest norm ‖·‖∞ of W_1, W_2, W_z and W_y, Γ = 2 (1 + η)(1 + 3η), Ȳ = ‖ȳ_n‖∞ and θ any
weight. The papers multiply sup norms, where a row vector needs the l1 norm; η by column sums
repairs it, since θ touches one neuron only, and so does a factor m.

What the checks take, unless they say otherwise:

    layer: One layer, one direction, learned gates without a floor, float64.
    x: One sequence; its last step is n.
    target: The target of the last step.
    steps: The steps k, counted from 1.

Shape: x [n, 1, F]; target [1, H]; measured and bound [].
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn import LEM
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.bounds.lem_jacobian import eta
from anharmonic_papers.theory.bounds.lem_states import (
    check_gates,
    envelope,
    open_gates,
    scaled,
)
from anharmonic_papers.theory.gradients import last_gradient, partial_gradient
from anharmonic_papers.theory.statements import Check

RECURRENT = ("weight_hh_l0", "weight_zh_l0")


def _rate(layer: LEM, columns: bool) -> float:
    """The Γ of the module's docstring."""
    most = eta(layer, columns=columns)
    return 2 * (1 + most) * (1 + 3 * most)


def _assumptions(layer: LEM, x: Tensor, columns: bool) -> dict[str, bool]:
    return {
        "dt ≤ 1": layer.dt <= 1,
        "Γ t_n ≤ 2.51": _rate(layer, columns) * len(x) * layer.dt <= 2.51,
        "|u| ≤ 1": bool(x.abs().max() <= 1),
    }


def _whole(layer: LEM, x: Tensor, target: Tensor, columns: bool, factor: float) -> Check:
    check_gates(layer)
    t, reach = len(x) * layer.dt, 1 + float(target.abs().max())
    found = last_gradient(layer, x, target)
    return Check(
        measured=torch.stack([g.abs().max() for g in found.values()]).max(),
        bound=torch.tensor(factor * reach * t * (1 + _rate(layer, columns) * t)),
        assumptions=_assumptions(layer, x, columns),
        quantity="largest |∂E_n/∂θ|",
    )


def one_feeds_all(m: int) -> tuple[LEM, Tensor, Tensor]:
    """The counterexample: W_y is one column of ones, nothing else; dt = 0.01, n = 15, ȳ = -10."""
    layer = LEM(1, m, dt=0.01, dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        layer.get_parameter("weight_zh_l0")[:, 0] = 1.0
    x = torch.zeros(15, 1, 1, dtype=torch.float64)
    return layer, x, x.new_full((1, m), -10.0)


@statement(
    "lem-gradient-printed",
    number="T 5.2.2 = L 4.2",
    chapter="LEM",
    claim="|∂E_n/∂θ| ≤ (1 + Ȳ) t_n + (1 + Ȳ) Γ t_n².",
    state="false",
    remark=(
        '"dt sufficiently small" means Γ t_n ≤ 2.51. Counterexample: one unit that feeds all m; '
        "the derivative is 2.9, 28.6 and 286 for m = 100, 1000 and 10000, the bound 5.6."
    ),
    example=lambda: gradient_printed(*one_feeds_all(400)),
)
def gradient_printed(layer: LEM, x: Tensor, target: Tensor) -> Check:
    """The largest entry of the gradient of the last step against the printed bound."""
    return _whole(layer, x, target, False, 1.0)


def _wide_open(hidden_size: int, dt: float, scale: float) -> tuple[LEM, Tensor, Tensor]:
    layer, x = open_gates(hidden_size, dt, scale, 20)
    return layer, x, torch.full((1, hidden_size), -9.0, dtype=x.dtype)


@statement(
    "lem-gradient",
    number="T 5.2.2 = L 4.2",
    chapter="LEM",
    claim="|∂E_n/∂θ| ≤ (1 + Ȳ) t_n + (1 + Ȳ) Γ t_n² with η by column sums.",
    state="corrected",
    remark="For Γ t_n ≤ 2.51. The tuned models have N dt from 29 to 1490, where it says nothing.",
    example=lambda: gradient(*_wide_open(3, 0.001, 0.1)),
)
def gradient(layer: LEM, x: Tensor, target: Tensor) -> Check:
    """The largest entry of the gradient of the last step against the bound by column sums."""
    return _whole(layer, x, target, True, 1.0)


@statement(
    "lem-gradient-wide",
    number="T 5.2.2 = L 4.2",
    chapter="LEM",
    claim="|∂E_n/∂θ| ≤ m ((1 + Ȳ) t_n + (1 + Ȳ) Γ t_n²).",
    state="corrected",
    remark="η by row sums as printed, with a factor m; for Γ t_n ≤ 2.51.",
    example=lambda: gradient_wide(*_wide_open(1, 0.001, 0.1)),
)
def gradient_wide(layer: LEM, x: Tensor, target: Tensor) -> Check:
    """The largest entry of the gradient of the last step against m times the printed bound."""
    return _whole(layer, x, target, False, float(layer.hidden_size))


def _each(
    layer: LEM, x: Tensor, target: Tensor, steps: Sequence[int], recurrent: bool, columns: bool
) -> Check:
    check_gates(layer)
    found = []
    for k in steps:
        partial = partial_gradient(layer, x, target, k)
        chosen = [g for name, g in partial.items() if not recurrent or name in RECURRENT]
        found.append(torch.stack([g.abs().max() for g in chosen]).max())
    ceiling = envelope(len(x), layer.dt)
    source = ceiling[torch.tensor([k - 1 for k in steps])]
    reach = float(target.abs().max()) + float(ceiling[-1])
    ahead = 1 + _rate(layer, columns) * len(x) * layer.dt
    return Check(
        measured=torch.stack(found),
        bound=layer.dt * source * reach * ahead,
        assumptions=_assumptions(layer, x, columns),
        places=torch.tensor(steps),
        axis="step k",
        quantity="largest |∂E_n^(k)/∂θ|",
    )


def _no_weights() -> tuple[LEM, Tensor, Tensor]:
    layer, x, target = one_feeds_all(1)
    with torch.no_grad():
        layer.get_parameter("weight_zh_l0").zero_()
    return layer, x, target


@statement(
    "lem-partial-gradient-printed",
    number="T 5.2.2 = L 4.2",
    chapter="LEM",
    claim="|∂E_n^(k)/∂θ| ≤ dt min(1, D sqrt(t_k)) (Ȳ + min(1, D sqrt(t_n))) (1 + Γ t_n).",
    state="false",
    remark=(
        "Beside its norms: a bias is multiplied with 1, not with a state, so that the factor "
        "min(1, D sqrt(t_k)) is not there. Counterexample: one neuron without weights, k = 1."
    ),
    example=lambda: partial_printed(*_no_weights(), steps=[1, 2]),
)
def partial_printed(layer: LEM, x: Tensor, target: Tensor, *, steps: Sequence[int]) -> Check:
    """The largest entry of partial gradients, of all weights, against the printed bound.

    Shape: x [n, 1, F]; target [1, H]; measured and bound [len(steps)].
    """
    return _each(layer, x, target, steps, recurrent=False, columns=False)


@statement(
    "lem-partial-gradient",
    number="T 5.2.2 = L 4.2",
    chapter="LEM",
    claim=(
        "For θ in W_1, W_2, W_z, W_y and η by column sums, |∂E_n^(k)/∂θ| ≤ dt min(1, D sqrt(t_k)) "
        "(Ȳ + min(1, D sqrt(t_n))) (1 + Γ t_n)."
    ),
    state="corrected",
    remark="For Γ t_n ≤ 2.51. For biases and V the factor min(1, D sqrt(t_k)) is 1.",
    example=lambda: partial(*_wide_open(3, 0.02, 0.01), steps=range(1, 21)),
)
def partial(layer: LEM, x: Tensor, target: Tensor, *, steps: Sequence[int]) -> Check:
    """The largest entry of partial gradients, of the recurrent weights, against the safe bound.

    Shape: x [n, 1, F]; target [1, H]; measured and bound [len(steps)].
    """
    return _each(layer, x, target, steps, recurrent=True, columns=True)


@statement(
    "lem-step-size",
    number="T 5.2.3, 5.2.6",
    chapter="LEM",
    claim=(
        "With dt = N^(-s) the gradient is O(N^(2(1-s))) and its long-term part O(N^(-3s/2)): "
        "bounded at s = 1, linear at s = 1/2, balanced at s = 4/7; s = 1/2 works in practice."
    ),
    state="open",
    remark=(
        "From the printed bounds, which need Γ t_n ≤ 2.51, so that only s = 1 is covered. "
        "Measured is the growth of the largest |∂E_N/∂θ| from N = 100 to 800."
    ),
    example=lambda: step_size(scaled(4, 0.1, 1.0, 1)[0], s=0.5),
)
def step_size(layer: LEM, *, s: float) -> Check:
    """The power of N with which the gradient grows for dt = N^(-s), against 2(1 - s).

    Args:
        layer: One layer, one direction, learned gates without a floor, float64; its own dt plays no
            part.
        s: The exponent, in [0, 1].

    Shape: measured and bound [].
    """
    check_gates(layer)
    _checks.number("s", s, low=0.0, high=1.0)
    sizes, lengths = [], (100, 800)
    for n in lengths:
        refined = copy.deepcopy(layer)
        refined.dt = n**-s
        x = torch.ones(n, 1, layer.input_size, dtype=torch.float64)
        found = last_gradient(refined, x, -x.new_ones(1, layer.hidden_size))
        sizes.append(torch.stack([g.abs().max() for g in found.values()]).max())
    return Check(
        measured=(sizes[1] / sizes[0]).log2() / 3,
        bound=torch.tensor(2 * (1 - s)),
        assumptions={"Γ t_n ≤ 2.51": _rate(layer, False) * max(lengths) ** (1 - s) <= 2.51},
        axis="",
        quantity="power of N in the largest |∂E_N/∂θ|",
    )
