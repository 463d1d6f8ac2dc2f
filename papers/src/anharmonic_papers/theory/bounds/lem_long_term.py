"""What the papers prove about LEM's long-term gradients (T 5.2.4 = L E.2, T 5.2.5 = L 4.3).

The partial gradient of E_n counts the use of an entry of W_y at step k only.

What the checks take, unless they say otherwise:

    layer: One layer, one direction, learned gates without a floor, float64.
    x: One sequence; its last step is n.
    target: The target of the last step.
    step: k, counted from 1, at most n.

Shape: x [n, 1, F]; target [1, H]; measured and bound [H, H].
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn import LEM
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.bounds.lem_jacobian import eta, seen
from anharmonic_papers.theory.bounds.lem_states import check_gates, scaled
from anharmonic_papers.theory.gradients import partial_gradient
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import weights


def _representation(layer: LEM, x: Tensor, target: Tensor, step: int, sign: float) -> Check:
    """Both sides of T 5.2.4, with the sign of its last line."""
    found = partial_gradient(layer, x, target, step)["weight_zh_l0"]
    run, dt = seen(layer, x), layer.dt
    _, W2, _ = weights(layer)["weight_hh"].chunk(3)
    gate, error = torch.sigmoid(run.B), run.y[-1] - target[0]
    here = gate[step - 1] * (1 - torch.tanh(run.D[step - 1]).square())
    later = gate[step:]
    through = (later * (1 - later) * (torch.tanh(run.D[step:]) - run.y[step:-1])).sum(0)
    by_row = dt * error + dt**2 * (W2.T @ (error * through) + sign * later.sum(0) * error)
    reach = (len(x) - step + 1) * dt * (1 + eta(layer, columns=True))
    return Check(
        measured=found,
        bound=torch.outer(here * by_row, run.z[step]),
        relation="==",
        tolerance=reach**2,
        assumptions={"(t_n - t_{k-1})(1 + η) ≤ 0.3": reach <= 0.3},
        quantity="∂E_n^(k)/∂W_y",
    )


def _few_steps() -> tuple[LEM, Tensor, Tensor, int]:
    layer, x = scaled(4, 1e-3, 2.0, 12)
    return layer, x, torch.full((1, 4), 2.0, dtype=x.dtype), 3


@statement(
    "lem-long-term-printed",
    number="T 5.2.4 = L E.2",
    chapter="LEM",
    claim=(
        "∂E_n^(k)/∂(W_y)_ab = pre (dt e_a + dt² Σ_j e_j Σ_{l>k} σ̂'(B^j)(tanh D_l^j - y_{l-1}^j) "
        "(W_2)_ja + dt² Σ_{l>k} σ̂(B^a) e_a) + O(dt³), pre = σ̂(B_k^a) tanh'(D_k^a) z_k^b, e = "
        "y_n - ȳ_n."
    ),
    state="false",
    remark=(
        "The sign of the last sum, (5.39) as printed in the copy, must be minus: with plus the "
        "remainder is of the order of dt²."
    ),
    example=lambda: long_term_printed(*_few_steps()),
)
def long_term_printed(layer: LEM, x: Tensor, target: Tensor, step: int) -> Check:
    """The partial gradient with respect to W_y, from rest, against the printed formula."""
    return _representation(layer, x, target, step, 1.0)


@statement(
    "lem-long-term",
    number="T 5.2.4 = L E.2",
    chapter="LEM",
    claim=(
        "∂E_n^(k)/∂(W_y)_ab = pre (dt e_a + dt² Σ_j e_j Σ_{l>k} σ̂'(B^j)(tanh D_l^j - y_{l-1}^j) "
        "(W_2)_ja - dt² Σ_{l>k} σ̂(B^a) e_a) + O(dt³), pre = σ̂(B_k^a) tanh'(D_k^a) z_k^b, e = "
        "y_n - ȳ_n."
    ),
    state="corrected",
    remark=(
        "For fixed n and k. The relative remainder is held against ((t_n - t_{k-1})(1 + η))², η by "
        "column sums, and falls with dt²."
    ),
    example=lambda: long_term(*_few_steps()),
)
def long_term(layer: LEM, x: Tensor, target: Tensor, step: int) -> Check:
    """The partial gradient with respect to W_y, from rest, against the corrected formula."""
    return _representation(layer, x, target, step, -1.0)


REFINED = (200, 400, 800)
"""Steps per unit of time at which orders in dt are measured."""


@statement(
    "lem-long-term-order",
    number="T 5.2.5 = L 4.3",
    chapter="LEM",
    claim="For targets of order one ∂E_n^(k)/∂(W_y)_ab is of the order of dt^(3/2), for all k, n.",
    state="open",
    remark=(
        "It needs z_k of the order of sqrt(dt); from rest z_k is of the order of k dt. Measured "
        "slopes are 2 for fixed k and 1 for k = n/5, both at t_n = 1."
    ),
    example=lambda: long_term_order(scaled(4, 0.1, 1.0, 1)[0], fraction=0.0),
)
def long_term_order(layer: LEM, *, fraction: float) -> Check:
    """The order in dt of the partial gradient at t_n = 1, from rest, input one.

    Args:
        layer: One layer, one direction, learned gates without a floor, float64; its own dt plays no
            part.
        fraction: Where k is, in [0, 1): k = 2 + fraction n.

    Shape: measured and bound []: the slope in dt and 3/2.
    """
    check_gates(layer)
    _checks.number("fraction", fraction, low=0.0, high=1.0, high_open=True)
    sizes, states = [], []
    for n in REFINED:
        refined = copy.deepcopy(layer)
        refined.dt = 1 / n
        x = torch.ones(n, 1, layer.input_size, dtype=torch.float64)
        step = 2 + int(fraction * n)
        target = -x.new_ones(1, layer.hidden_size)
        sizes.append(partial_gradient(refined, x, target, step)["weight_zh_l0"].abs().max())
        states.append(refined(x[:step], output="none")[1].z.detach().abs().max())
    slope, growth = ((values[0] / values[-1]).log2() / 2 for values in (sizes, states))
    return Check(
        measured=slope,
        bound=torch.tensor(1.5),
        relation="==",
        tolerance=0.05,
        assumptions={"z_k is of the order of sqrt(dt)": abs(float(growth) - 0.5) < 0.1},
        axis="",
        quantity="order in dt of ∂E_n^(k)/∂W_y",
    )
