"""What the papers say about models with a skew-symmetric matrix ([N], section 3 to appendix A).

f(z, t) = f(0, t) + A(z, t) z (3.1) with A = (B - Bᵀ)/√2 of a network's B: Skew Symmetric.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.bounds.ode_adjoints import adjoint, skew_part, start
from anharmonic_papers.theory.derivatives import jacobian
from anharmonic_papers.theory.integrate import Field, rk4
from anharmonic_papers.theory.statements import Check, statement


def _draws(x: Tensor) -> Tensor:
    """B_0 + Σ_k b_k x_k with independent normal entries, 4000 draws."""
    generator = torch.Generator().manual_seed(0)
    parts = torch.randn(len(x) + 1, 4000, len(x), len(x), generator=generator).to(x.dtype)
    return parts[0] + torch.einsum("knij,k->nij", parts[1:], x)


@statement(
    "ode-symmetric-part",
    number="N 3.1 = A.1",
    chapter="Neural ODEs",
    claim="g(z) = g(0) + B(z)z with B_ij i.i.d. and independent of all ∂_kB_ij; f with "
    "A = (B - Bᵀ)/√2 in place of B: E[(Sym J_f)_ij²] ≤ E[(Sym J_g)_ij²].",
    state="holds",
    example=lambda: symmetric_part(_draws, torch.ones(5).double()),
    remark="By Monte Carlo, 4 standard errors on the safe side. The expectation is over random "
    "parameters: it says something at the start of training only, where entries are independent.",
)
def symmetric_part(fields: Callable[[Tensor], Tensor], x: Tensor) -> Check:
    """Mean squares of the symmetric parts, plus and minus four standard errors.

    Args:
        fields: B of n independent draws of its parameters.
        x: The point z.

    Shape: x [d]; fields(x) [n, d, d]; measured and bound [d, d].
    """

    def squares(matrices: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        found = jacobian(lambda z: matrices(z) @ z, x)
        square = ((found + found.mT) / 2).square()
        return square.mean(0), square.std(0) / len(square) ** 0.5

    ours, our_error = squares(lambda z: skew_part(fields(z)) / 2**0.5)
    theirs, their_error = squares(fields)
    return Check(
        measured=ours + 4 * our_error,
        bound=theirs - 4 * their_error,
        axis="column j",
        quantity="E[(Sym J_f)_ij²]",
    )


def _orthogonal(h: float) -> Tensor:
    """Cayley's map of a skew matrix."""
    half, eye = h / 2 * skew_part(features(4, 4, 0)), torch.eye(4, dtype=torch.float64)
    rotation: Tensor = torch.linalg.solve(eye - half, eye + half)
    return rotation


@statement(
    "ode-orthogonal-limit",
    number="N A.1.2",
    chapter="Neural ODEs",
    claim="OrthoRNN with identity σ and W = I + hA + o(h) orthogonal: A is skew, its limit is the "
    "linear case of (3.1). For every h, A_h = (W - I)/h has A_h + A_hᵀ = -h A_hᵀA_h.",
    state="holds",
    example=lambda: orthogonal_limit(_orthogonal(0.01), 0.01),
)
def orthogonal_limit(weight: Tensor, h: float) -> Check:
    """A_h + A_hᵀ against -h A_hᵀA_h.

    Args:
        weight: W.
        h: Step size.

    Shape: weight, measured and bound [d, d].
    """
    eye = torch.eye(len(weight), dtype=weight.dtype)
    slope = (weight - eye) / h
    return Check(
        measured=slope + slope.mT,
        bound=-h * slope.mT @ slope,
        relation="==",
        tolerance=1e-15 / h**2 + 1e-12,
        assumptions={"W orthogonal": torch.allclose(weight.mT @ weight, eye, atol=1e-13)},
        axis="column j",
        quantity="(A_h + A_hᵀ)_ij",
    )


def _score(field: Field, z: Tensor, times: Tensor, last: Tensor, steps: int) -> Tensor:
    """q95(|a|)/q05(|a|) over the times."""
    norms = adjoint(field, rk4(field, z, times, steps), last, times, steps).norm(dim=1)
    low, high = norms.quantile(norms.new_tensor([0.05, 0.95]))
    score: Tensor = high / low
    return score


@statement(
    "ode-skew-trained",
    number="N 4",
    chapter="Neural ODEs",
    claim="Skew Symmetric, f = f(0, t) + A(z, t) z with A skew, keeps the adjoint score "
    "q95(|a|)/q05(|a|) below that of Regular, in training too.",
    state="open",
    example=lambda: skew_against_regular(
        _matrix_network(0, skew=True),
        _matrix_network(0, skew=False),
        start(),
        torch.linspace(0, 2, 100, dtype=torch.float64),
        features(4, 1, 3)[:, 0],
    ),
    remark="Shown in two experiments only. A skew A(z, t) that depends on z does not make ∂f/∂z "
    "skew (N 2.9), so N 2.3 does not say it. The example is one draw of random weights, with B "
    "itself in place of Regular.",
)
def skew_against_regular(
    skew: Field, regular: Field, z: Tensor, times: Tensor, last: Tensor, steps: int = 1
) -> Check:
    """The adjoint score of one field against that of another.

    Args:
        skew: The field with a skew matrix.
        regular: The field without.
        z: The state at the first time.
        times: The times of the quantiles (the paper: 100).
        last: a(t1).
        steps: Steps of the solver between two times.

    Shape: z, last [d]; times [K]; measured and bound are numbers.
    """
    return Check(
        measured=_score(skew, z, times, last, steps),
        bound=_score(regular, z, times, last, steps),
        quantity="adjoint score",
    )


def _matrix_network(seed: int, skew: bool) -> Field:
    """A(z, t) z with A = B or (B - Bᵀ)/√2 of the same network B."""
    weight, out = features(4, 4, seed), features(16, 4, seed + 1) / 2

    def field(z: Tensor, t: Tensor) -> Tensor:
        matrix = (out @ torch.tanh(weight @ z + t)).reshape(4, 4)
        return (skew_part(matrix) / 2**0.5 if skew else matrix) @ z

    return field
