"""What the papers prove about skew-symmetric matrix fields ([N], 2.4 to 2.6).

A field is a function of a point [d] that returns a matrix [d, d], or a vector [d].

What the checks take, unless they say otherwise:

    field: B.
    x: The point.

Shape: x [d]; measured and bound [d, d].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.bounds.ode_adjoints import skew_part
from anharmonic_papers.theory.derivatives import derivative, jacobian
from anharmonic_papers.theory.statements import Check, statement

PointField = Callable[[Tensor], Tensor]

_NODES = 40
"""Of Gauss and Legendre's rule on [0, 1]."""


def _mean_along(field: PointField, x: Tensor) -> Tensor:
    """∫_0^1 field(s x) ds."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    values = [w / 2 * field(x * float((1 + s) / 2)) for s, w in zip(nodes, weights, strict=True)]
    return torch.stack(values).sum(0)


def is_skew(*matrices: Tensor) -> bool:
    """Whether all are skew-symmetric, up to rounding."""
    return all(
        bool((m + m.mT).abs().max() <= 1e-10 * m.abs().max().clamp(min=1e-300)) for m in matrices
    )


def rays(field: PointField, x: Tensor) -> list[Tensor]:
    """A field at four points between zero and x."""
    return [field(x * s) for s in (0.0, 0.3, 0.7, 1.0)]


def point(d: int = 4) -> Tensor:
    """The point of an example."""
    return features(d, 1, 5)[:, 0]


def _network() -> PointField:
    weight, out = features(4, 4, 0), features(4, 4, 1)
    return lambda x: out @ torch.tanh(weight @ x + 0.3)


def skew_field() -> PointField:
    """A skew matrix that changes with x."""
    weight, out = features(4, 4, 0), features(16, 4, 1)
    return lambda x: skew_part((out @ torch.tanh(weight @ x)).reshape(4, 4))


@statement(
    "ode-mean-jacobian",
    number="N 2.4",
    chapter="Neural ODEs",
    claim="f continuously differentiable with Jacobian A: f(x) = f(0) + B(x)x, "
    "B(x) = ∫_0^1 A(sx) ds.",
    state="holds",
    example=lambda: mean_jacobian(_network(), point()),
)
def mean_jacobian(field: PointField, x: Tensor) -> Check:
    """f(x) - f(0) against B(x)x, by quadrature.

    Args:
        field: f.

    Shape: x, measured and bound [d].
    """
    return Check(
        measured=field(x) - field(0 * x),
        bound=_mean_along(lambda y: jacobian(field, y), x) @ x,
        relation="==",
        tolerance=1e-9,
        axis="entry i",
        quantity="f_i(x) - f_i(0)",
    )


@statement(
    "ode-skew-mean",
    number="N 2.5",
    chapter="Neural ODEs",
    claim="A(x) skew everywhere implies B(x) = ∫_0^1 A(sx) ds skew.",
    state="holds",
    example=lambda: skew_mean(skew_field(), point()),
)
def skew_mean(field: PointField, x: Tensor) -> Check:
    """B against -Bᵀ, by quadrature.

    Args:
        field: A.
    """
    mean = _mean_along(field, x)
    return Check(
        measured=mean,
        bound=-mean.mT,
        relation="==",
        assumptions={"A skew": is_skew(*rays(field, x))},
        axis="column j",
        quantity="B_ij",
    )


def _generator(field: PointField) -> PointField:
    """Q(y) = B(y) + (y·∇)B(y)."""
    return lambda y: field(y) + derivative(field, y, y)


@statement(
    "ode-skew-generator",
    number="N 2.6",
    chapter="Neural ODEs",
    claim="B differentiable and skew iff B(x) = ∫_0^1 Q(sx) ds with Q skew; Q(y) = B(y) + "
    "(y·∇)B(y).",
    state="corrected",
    example=lambda: skew_generator(skew_field(), point()),
    remark="With this Q in place of the proof's, which is no function of sx.",
)
def skew_generator(field: PointField, x: Tensor) -> Check:
    """B(x) against the mean of Q, by quadrature."""
    generator = _generator(field)
    return Check(
        measured=field(x),
        bound=_mean_along(generator, x),
        relation="==",
        tolerance=1e-9,
        assumptions={
            "B skew": is_skew(*rays(field, x)),
            "Q skew": is_skew(*rays(generator, x)),
        },
        axis="column j",
        quantity="B_ij(x)",
    )


@statement(
    "ode-skew-generator-printed",
    number="N 2.6",
    chapter="Neural ODEs",
    claim="The same with the proof's Q = d/ds B(sx) + B(0), taken as a function of sx.",
    state="false",
    example=lambda: skew_generator_printed(skew_field(), point()),
    remark="Its value at s = 1/2 on the way to 2x and at s = 1 on the way to x differ, though "
    "both are at the point x.",
)
def skew_generator_printed(field: PointField, x: Tensor) -> Check:
    """The proof's Q at one point, reached on two ways."""

    def proof(end: Tensor, s: float) -> Tensor:
        return derivative(field, s * end, end) + field(0 * end)

    return Check(
        measured=proof(2 * x, 0.5),
        bound=proof(x, 1.0),
        relation="==",
        tolerance=1e-9,
        assumptions={"B skew": is_skew(*rays(field, x))},
        axis="column j",
        quantity="Q_ij",
    )
