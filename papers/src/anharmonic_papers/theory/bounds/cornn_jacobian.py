r"""What the papers say about the Jacobian of a coRNN step (thesis, section 2.2; C, supplement).

With X = [y; z] and A_n the argument of tanh at step n,

.. math::
    \partial X_n / \partial X_{n-1} = \begin{pmatrix} I + dt\,B & dt\,C \\ B & C \end{pmatrix},

where, with δ = 1/(1 + ε dt) for the implicit scheme,
:math:`B = \delta\,dt\,(\mathrm{diag}(\tanh' A) W - \gamma I)` and
:math:`C = \delta\,(I + dt\,\mathrm{diag}(\tanh' A) \mathcal{W})`, for the explicit one
:math:`B = dt\,(\mathrm{diag}(\tanh' A) W - \gamma I)` and
:math:`C = (1 - \epsilon\,dt) I + dt\,\mathrm{diag}(\tanh' A) \mathcal{W}`.

What the checks take, unless they say otherwise:

    layer: One layer, one direction, implicit scheme, ε = γ = 1, float64.
    x: One sequence.

Shape: x [T, 1, F]; measured and bound [T].
"""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic.nn import CoRNN
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.bounds.cornn_energy import drive, large, scalars, unit_assumptions
from anharmonic_papers.theory.gradients import column_sum, jacobians, row_sum
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import (
    check_one_sequence,
    check_single,
    trajectory,
    weights,
)


def blocks(
    layer: CoRNN, x: Tensor, state: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """The B and C of every step, x [T, 1, F] -> [T, H, H] each."""
    check_single(layer)
    check_one_sequence(x)
    dt, gamma, epsilon = scalars(layer)
    path, values = trajectory(layer, x, state), weights(layer)
    W, Wz = values["weight_hy"], values["weight_hz"]
    force = path.y[:-1, 0, 0] @ W.T + path.z[:-1, 0, 0] @ Wz.T + drive(layer, x)[:, 0]
    slope = 1 - torch.tanh(force).square().unsqueeze(-1)
    one = torch.eye(layer.hidden_size, dtype=x.dtype)
    if layer.scheme == "implicit":
        delta = 1 / (1 + epsilon * dt)
        return delta * dt * (slope * W - gamma * one), delta * (one + dt * slope * Wz)
    return dt * (slope * W - gamma * one), (1 - epsilon * dt) * one + dt * slope * Wz


def eta(layer: CoRNN) -> float:
    """The η = max(dt (1 + ‖W‖∞), dt ‖𝒲‖∞)/(1 + dt) of condition (2.16)."""
    dt, values = scalars(layer)[0], weights(layer)
    W, Wz = float(row_sum(values["weight_hy"])), float(row_sum(values["weight_hz"]))
    return max(dt * (1 + W), dt * Wz) / (1 + dt)


@statement(
    "cornn-jacobian",
    number="T 2.2.6 = C 3.2",
    chapter="coRNN",
    claim="∂X_n/∂X_{n-1} = [[I + dt B, dt C], [B, C]] with X = [y; z].",
    state="holds",
    remark="The papers give B and C for the implicit scheme with ε = γ = 1.",
    example=lambda: jacobian(*large("implicit", 0.1)),
)
def jacobian(layer: CoRNN, x: Tensor) -> Check:
    """The Jacobian of every step by automatic differentiation against its blocks, from rest.

    Args:
        layer: One layer, one direction, either scheme, float64.

    Shape: x [T, 1, F]; measured and bound [T, 2H, 2H].
    """
    dt = scalars(layer)[0]
    B, C = blocks(layer, x)
    one = torch.eye(layer.hidden_size, dtype=x.dtype)
    formula = torch.cat([torch.cat([one + dt * B, dt * C], -1), torch.cat([B, C], -1)], -2)
    return Check(jacobians(layer, x), formula, relation="==", quantity="entries of ∂X_n/∂X_{n-1}")


@statement(
    "cornn-jacobian-blocks",
    number="T 2.2.6 = C 3.2",
    chapter="coRNN",
    claim="‖B‖∞ ≤ η, ‖C‖∞ ≤ η + δ and ‖∂X_n/∂X_{n-1}‖∞ ≤ max(1 + dt(δ + 2η), δ + 2η).",
    state="holds",
    example=lambda: jacobian_blocks(*large("implicit", 0.1)),
)
def jacobian_blocks(layer: CoRNN, x: Tensor) -> Check:
    """The three norms of every step over their bounds, the largest of the three against 1."""
    (B, C), small = blocks(layer, x), eta(layer)
    dt = scalars(layer)[0]
    most = 1 / (1 + dt) + 2 * small
    ratios = [
        row_sum(B) / small,
        row_sum(C) / (small + 1 / (1 + dt)),
        row_sum(jacobians(layer, x)) / max(1 + dt * most, most),
    ]
    return Check(
        measured=torch.stack(ratios).amax(0),
        bound=torch.ones(()),
        assumptions=unit_assumptions(layer),
        quantity="largest of three norms, each over its bound",
    )


def _as_large_as_allowed(dt: float, r: float) -> tuple[CoRNN, Tensor]:
    """One neuron at rest with η = dt^r by both of its weights."""
    layer = CoRNN(1, 1, dt=dt, scheme="implicit", dtype=torch.float64)
    largest = dt ** (r - 1) * (1 + dt) * (1 - 1e-12)
    with torch.no_grad():
        for name, weight in layer.named_parameters():
            weight.fill_({"weight_hy_l0": 1 - largest, "weight_hz_l0": largest}.get(name, 0.0))
    return layer, torch.zeros(2, 1, 1, dtype=torch.float64)


@statement(
    "cornn-jacobian-norm",
    number="T 2.2.6 = C 3.2",
    chapter="coRNN",
    claim="If η ≤ dt^r, then ‖∂X_n/∂X_{n-1}‖∞ ≤ 1 + 3 dt^r.",
    state="holds",
    example=lambda: jacobian_norm(*_as_large_as_allowed(0.01, 0.5), r=0.5),
)
def jacobian_norm(layer: CoRNN, x: Tensor, *, r: float) -> Check:
    """What the norm of the Jacobian of every step has above 1, against 3 dt^r.

    Args:
        r: The exponent of the assumption, in [1/2, 1].
    """
    dt = scalars(layer)[0]
    check_single(layer)
    return Check(
        measured=row_sum(jacobians(layer, x)) - 1,
        bound=torch.tensor(3 * dt**r),
        assumptions=unit_assumptions(layer) | condition(layer, r),
        quantity="‖∂X_n/∂X_{n-1}‖∞ - 1",
    )


def condition(layer: CoRNN, r: float) -> dict[str, bool]:
    """Condition (2.16) on the weights."""
    dt = scalars(layer)[0]
    return {"η ≤ dt^r": eta(layer) <= dt**r, "1/2 ≤ r ≤ 1": 0.5 <= r <= 1}


def _product(C: Tensor) -> Tensor:
    """C_last ··· C_first, the identity for none."""
    result = torch.eye(C.shape[-1], dtype=C.dtype)
    for factor in C:
        result = factor @ result
    return result


def _corners(layer: CoRNN, x: Tensor, shift: int) -> Check:
    """The off-diagonal blocks of ∂X_N/∂X_0 against the product formula, to second order."""
    (dt, gamma, _), H = scalars(layer), layer.hidden_size
    B, C = blocks(layer, x)
    steps = range(len(x))
    exact = _product(jacobians(layer, x))
    upper = dt * torch.stack([_product(C[: max(0, j + 1 - shift)]) for j in steps]).sum(0)
    lower = torch.stack([_product(C[j + 1 :]) @ B[j] for j in steps]).sum(0)
    values = weights(layer)
    size = gamma + float(column_sum(values["weight_hy"]) + column_sum(values["weight_hz"]))
    span = len(x) * dt
    return Check(
        measured=torch.stack([exact[:H, H:], exact[H:, :H]]),
        bound=torch.stack([upper, lower]),
        relation="==",
        tolerance=span**2 * size,
        assumptions={"(t_n - t_k)(1 + γ + ‖W‖_1 + ‖𝒲‖_1) ≤ 0.3": span * (1 + size) <= 0.3},
        quantity="off-diagonal blocks of ∂X_n/∂X_k",
    )


def _two_steps() -> tuple[CoRNN, Tensor]:
    layer, *inputs = large("implicit", 1e-3)
    return layer, inputs[0][:2]


@statement(
    "cornn-product",
    number="T 2.2.7",
    chapter="coRNN",
    claim=(
        "To leading order ∂X_n/∂X_k has the blocks dt Σ_{j=k}^{n-1} Π_{i=j}^{k} C_i (upper right) "
        "and Σ_{j=k}^{n-1} (Π_{i=n-1}^{j+1} C_i) B_j (lower left)."
    ),
    state="holds",
    remark=(
        "C_i and B_i are those of step i + 1. Leading order is taken as a relative remainder of at "
        "most (t_n - t_k)² (γ + ‖W‖_1 + ‖𝒲‖_1)."
    ),
    example=lambda: product(*_two_steps()),
)
def product(layer: CoRNN, x: Tensor) -> Check:
    """Two blocks of ∂X_N/∂X_0, from rest, against the formula of the thesis.

    Args:
        layer: One layer, one direction, float64.

    Shape: x [T, 1, F]; measured and bound [2, H, H].
    """
    return _corners(layer, x, shift=0)


@statement(
    "cornn-product-paper",
    number="C 3.3",
    chapter="coRNN",
    claim=(
        "To leading order the upper right block of ∂X_n/∂X_k is dt Σ_{j=k}^{n-1} Π_{i=j-1}^{k} C_i."
    ),
    state="false",
    remark="A misprint, one factor is missing: two steps show it, with a remainder of order dt.",
    example=lambda: product_paper(*_two_steps()),
)
def product_paper(layer: CoRNN, x: Tensor) -> Check:
    """Two blocks of ∂X_N/∂X_0, from rest, against the formula as the paper prints it.

    Args:
        layer: One layer, one direction, float64.

    Shape: x [T, 1, F]; measured and bound [2, H, H].
    """
    return _corners(layer, x, shift=1)
