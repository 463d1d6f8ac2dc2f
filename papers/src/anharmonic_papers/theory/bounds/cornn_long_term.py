"""What the papers prove about coRNN's long-term gradients (T 2.2.7 = C 3.3, T 2.2.11).

The partial gradient of E_n counts the use of W_ij at step k only, and k is much smaller than n.

What the checks take, unless they say otherwise:

    x: One sequence; its last step is n.
    target: The target of the last step.
    step: k, counted from 1, at most n.
    state: The initial state; zeros if None.
    fraction: Where k is, in [0, 1): k = 2 + fraction n.

Shape: x [n, 1, F]; target [1, H]; state [1, 1, H] each; measured and bound [H, H].
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn import CoRNN
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.bounds.cornn_energy import (
    drive,
    explicit_assumptions,
    large,
    scalars,
    unit_assumptions,
)
from anharmonic_papers.theory.bounds.cornn_jacobian import blocks
from anharmonic_papers.theory.gradients import column_sum, partial_gradient, row_sum
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import check_single, trajectory, weights


def _leading_term(
    layer: CoRNN, x: Tensor, target: Tensor, step: int, state: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor, Tensor]:
    """δ dt² tanh'(a), y_{k-1} and e + C*ᵀ e with e = y_n - ȳ_n, [H] each."""
    (dt, _, epsilon), values = scalars(layer), weights(layer)
    path = trajectory(layer, x, state)
    y, z = path.y[:, 0, 0], path.z[:, 0, 0]
    _, C = blocks(layer, x, state)
    power = chain = torch.zeros_like(C[0])
    power = torch.eye(len(chain), dtype=x.dtype)
    for factor in C[step:]:
        power = factor @ power
        chain = chain + power
    force = values["weight_hy"] @ y[step - 1] + values["weight_hz"] @ z[step - 1]
    slope = 1 - torch.tanh(force + drive(layer, x)[step - 1, 0]).square()
    delta = 1 / (1 + dt * epsilon) if layer.scheme == "implicit" else 1.0
    error = y[-1] - target[0]
    return delta * dt**2 * slope, y[step - 1], error + chain.T @ error


def _against(
    layer: CoRNN, x: Tensor, step: int, formula: Tensor, gradient: Tensor, **assumptions: bool
) -> Check:
    (dt, gamma, _), values = scalars(layer), weights(layer)
    span = (len(x) - step + 1) * dt
    size = gamma + float(column_sum(values["weight_hy"]) + column_sum(values["weight_hz"]))
    return Check(
        measured=gradient,
        bound=formula,
        relation="==",
        tolerance=span**2 * size,
        assumptions={
            "(t_n - t_k + dt)(1 + γ + ‖W‖_1 + ‖𝒲‖_1) ≤ 0.3": span * (1 + size) <= 0.3,
            **assumptions,
        },
        quantity="∂E_n^(k)/∂W_ij",
    )


def _from_a_state(scheme: str) -> tuple[CoRNN, Tensor, Tensor, int, tuple[Tensor, Tensor]]:
    """No input, no bias, ‖W‖∞ = dt, ‖𝒲‖∞ = 1, twelve steps from a state."""
    dt = 1e-3
    layer, *_ = large(scheme, dt)
    with torch.no_grad():
        layer.get_parameter("bias_l0").zero_()
        for name, norm in (("weight_hy_l0", dt), ("weight_hz_l0", 1.0)):
            weight = layer.get_parameter(name)
            weight.mul_(norm / row_sum(weight))
    y, z = torch.tensor([[1.0, -0.5, 0.3, 0.8], [0.2, 0.4, -0.9, 0.1]], dtype=torch.float64)
    x = torch.zeros(12, 1, 3, dtype=torch.float64)
    return layer, x, x.new_zeros(1, 4), 2, (y[None, None], z[None, None])


@statement(
    "cornn-long-term-printed",
    number="T 2.2.7 = C 3.3",
    chapter="coRNN",
    claim=(
        "To leading order ∂E_n^(k)/∂W_ij = δ dt² tanh'(a_i) [y_n^j y_{k-1}^j + (Σ_l C*_lj y_n^l) "
        "y_{k-1}^j], C* = Σ_{j=k}^{n-1} Π_{i=j}^{k} C_i, without inputs, biases and targets."
    ),
    state="false",
    remark="T (2.39) and C (35) with their indices; j in the brackets must be i.",
    example=lambda: long_term_printed(*_from_a_state("implicit")),
)
def long_term_printed(
    layer: CoRNN,
    x: Tensor,
    target: Tensor,
    step: int,
    state: tuple[Tensor, Tensor] | None = None,
) -> Check:
    """The partial gradient with respect to W against the formula with its printed indices.

    Args:
        layer: One layer, one direction, float64.
    """
    check_single(layer)
    found = partial_gradient(layer, x, target, step, state)["weight_hy_l0"]
    factor, before, after = _leading_term(layer, x, target, step, state)
    nothing = bool((x == 0).all() and (target == 0).all() and (weights(layer)["bias"] == 0).all())
    formula = factor[:, None] * (after * before)
    return _against(layer, x, step, formula, found, **{"u = b = ȳ = 0": nothing})


@statement(
    "cornn-long-term",
    number="T 2.2.7 = C 3.3",
    chapter="coRNN",
    claim=(
        "To leading order ∂E_n^(k)/∂W_ij = δ dt² tanh'(a_i) [e^i + Σ_l C*_li e^l] y_{k-1}^j with "
        "e = y_n - ȳ_n and C* = Σ_{j=k}^{n-1} Π_{i=j}^{k} C_i."
    ),
    state="corrected",
    remark=(
        "Whatever the inputs; for the explicit scheme with δ = 1. The relative remainder is held "
        "against (t_n - t_k + dt)² (γ + ‖W‖_1 + ‖𝒲‖_1), and falls with dt²."
    ),
    example=lambda: long_term(*_from_a_state("implicit")),
)
def long_term(
    layer: CoRNN,
    x: Tensor,
    target: Tensor,
    step: int,
    state: tuple[Tensor, Tensor] | None = None,
) -> Check:
    """The partial gradient with respect to W against the formula with corrected indices.

    Args:
        layer: One layer, one direction, either scheme, float64.
    """
    check_single(layer)
    found = partial_gradient(layer, x, target, step, state)["weight_hy_l0"]
    factor, before, after = _leading_term(layer, x, target, step, state)
    return _against(layer, x, step, torch.outer(factor * after, before), found)


REFINED = (200, 400, 800)
"""Steps per unit of time at which orders in dt are measured."""


def _pushed(scheme: str) -> CoRNN:
    """Three neurons from rest that only their biases push."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return CoRNN(1, 3, scheme=scheme, dtype=torch.float64)


@statement(
    "cornn-long-term-order",
    number="T 2.2.7 = C 3.3",
    chapter="coRNN",
    claim="If y_k is of the order of sqrt(t_k), then ∂E_n^(k)/∂W_ij is of the order of dt^(3/2).",
    state="open",
    remark=(
        "A network at rest is not of that order: measured are slopes of 3 for fixed k and of 1 for "
        "k = n/5, both at t_n = 1. The next orders are ĉ δ(1+δ) dt^(5/2) in T, ĉ δ dt^(5/2) in C."
    ),
    example=lambda: long_term_order(_pushed("implicit"), fraction=0.0),
)
def long_term_order(layer: CoRNN, *, fraction: float) -> Check:
    """The order in dt of the partial gradient of the implicit scheme at t_n = 1, from rest.

    Args:
        layer: One layer, one direction, implicit scheme, float64; its biases push it, its own dt
            plays no part.

    Shape: measured and bound []: the slope in dt and 3/2.
    """
    return _order(layer, fraction, unit_assumptions(layer))


@statement(
    "cornn-long-term-order-explicit",
    number="T 2.2.11",
    chapter="coRNN",
    claim="As T 2.2.7 for the explicit scheme: the order of dt^(3/2)/γ if y_k ~ sqrt(t_k/γ).",
    state="open",
    remark="No proof in the thesis; the same slopes of 3 and 1 are measured.",
    example=lambda: long_term_order_explicit(_pushed("explicit"), fraction=0.0),
)
def long_term_order_explicit(layer: CoRNN, *, fraction: float) -> Check:
    """The order in dt of the partial gradient of the explicit scheme at t_n = 1, from rest.

    Args:
        layer: One layer, one direction, explicit scheme, float64; its biases push it, its own dt
            plays no part.

    Shape: measured and bound []: the slope in dt and 3/2.
    """
    return _order(layer, fraction, explicit_assumptions(layer))


def _order(layer: CoRNN, fraction: float, assumptions: dict[str, bool]) -> Check:
    check_single(layer)
    _checks.number("fraction", fraction, low=0.0, high=1.0, high_open=True)
    if layer.trainable_dt:
        raise ValueError(
            _checks.message(
                "the order is measured by setting dt", "trainable_dt=True", "pass a fixed dt"
            )
        )
    sizes, positions = [], []
    for n in REFINED:
        refined = copy.deepcopy(layer)
        refined.dt = 1 / n
        x = torch.zeros(n, 1, layer.input_size, dtype=torch.float64)
        step = 2 + int(fraction * n)
        target = x.new_zeros(1, layer.hidden_size)
        sizes.append(partial_gradient(refined, x, target, step)["weight_hy_l0"].abs().max())
        positions.append(refined(x[: step - 1], output="last")[0].detach().abs().max())
    slope, growth = (_slope(torch.stack(values)) for values in (sizes, positions))
    near = abs(growth - 0.5) < 0.1 if fraction == 0 else False
    return Check(
        measured=torch.tensor(slope),
        bound=torch.tensor(1.5),
        relation="==",
        tolerance=0.05,
        assumptions=assumptions | {"y_k is of the order of sqrt(t_k)": near},
        axis="",
        quantity="order in dt of ∂E_n^(k)/∂W_ij",
    )


def _slope(values: Tensor) -> float:
    """The slope of log(values) over log(dt), dt halved each time."""
    return float((values[0] / values[-1]).log2()) / (len(values) - 1)
