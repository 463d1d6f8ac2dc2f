"""What the documents prove about skew-symmetric matrix fields ([N], section 2).

A field is a function of a point [d] that returns a matrix [d, d], or a vector [d].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.theory.bounds.graphcon_energy import features
from anharmonic.theory.bounds.ode_adjoints import skew_part
from anharmonic.theory.derivatives import derivative, jacobian
from anharmonic.theory.statements import Check, statement

PointField = Callable[[Tensor], Tensor]

_NODES = 40
"""Of Gauss and Legendre's rule on [0, 1]."""


def _mean_along(field: PointField, x: Tensor) -> Tensor:
    """∫_0^1 field(s x) ds."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    values = [w / 2 * field(x * float((1 + s) / 2)) for s, w in zip(nodes, weights, strict=True)]
    return torch.stack(values).sum(0)


def _skew(*matrices: Tensor) -> bool:
    return all(
        bool((m + m.mT).abs().max() <= 1e-10 * m.abs().max().clamp(min=1e-300)) for m in matrices
    )


def _rays(field: PointField, x: Tensor) -> list[Tensor]:
    return [field(x * s) for s in (0.0, 0.3, 0.7, 1.0)]


def _point(d: int = 4) -> Tensor:
    return features(d, 1, 5)[:, 0]


def _network() -> PointField:
    weight, out = features(4, 4, 0), features(4, 4, 1)
    return lambda x: out @ torch.tanh(weight @ x + 0.3)


def _skew_field() -> PointField:
    """A skew matrix that changes with x."""
    weight, out = features(4, 4, 0), features(16, 4, 1)
    return lambda x: skew_part((out @ torch.tanh(weight @ x)).reshape(4, 4))


def _affine() -> PointField:
    matrix = skew_part(features(4, 4, 0))
    return lambda x: matrix @ x + 1.0


@statement(
    "ode-mean-jacobian",
    number="N 2.4",
    chapter="Neural ODEs",
    claim="f continuously differentiable with Jacobian A: f(x) = f(0) + B(x)x, "
    "B(x) = ∫_0^1 A(sx) ds.",
    state="holds",
    example=lambda: mean_jacobian(_network(), _point()),
)
def mean_jacobian(field: PointField, x: Tensor) -> Check:
    """f(x) - f(0) against B(x)x, by quadrature.

    Args:
        field: f.
        x: The point.

    Shape:
        x, measured and bound [d].
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
    example=lambda: skew_mean(_skew_field(), _point()),
)
def skew_mean(field: PointField, x: Tensor) -> Check:
    """B against -Bᵀ, by quadrature.

    Args:
        field: A.
        x: The point.

    Shape:
        x [d]; measured and bound [d, d].
    """
    mean = _mean_along(field, x)
    return Check(
        measured=mean,
        bound=-mean.mT,
        relation="==",
        assumptions={"A skew": _skew(*_rays(field, x))},
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
    example=lambda: skew_generator(_skew_field(), _point()),
    remark="With this Q in place of the proof's, which is no function of sx.",
)
def skew_generator(field: PointField, x: Tensor) -> Check:
    """B(x) against the mean of Q, by quadrature.

    Args:
        field: B.
        x: The point.

    Shape:
        x [d]; measured and bound [d, d].
    """
    generator = _generator(field)
    return Check(
        measured=field(x),
        bound=_mean_along(generator, x),
        relation="==",
        tolerance=1e-9,
        assumptions={
            "B skew": _skew(*_rays(field, x)),
            "Q skew": _skew(*_rays(generator, x)),
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
    example=lambda: skew_generator_printed(_skew_field(), _point()),
    remark="Its value at s = 1/2 on the way to 2x and at s = 1 on the way to x differ, though "
    "both are at the point x.",
)
def skew_generator_printed(field: PointField, x: Tensor) -> Check:
    """The proof's Q at one point, reached on two ways.

    Args:
        field: B.
        x: The point.

    Shape:
        x [d]; measured and bound [d, d].
    """

    def proof(end: Tensor, s: float) -> Tensor:
        return derivative(field, s * end, end) + field(0 * end)

    return Check(
        measured=proof(2 * x, 0.5),
        bound=proof(x, 1.0),
        relation="==",
        tolerance=1e-9,
        assumptions={"B skew": _skew(*_rays(field, x))},
        axis="column j",
        quantity="Q_ij",
    )


def _two_by_two(x: Tensor) -> Tensor:
    zero = 0 * x[0]
    return torch.stack([torch.stack([zero, x[0]]), torch.stack([-x[0], zero])])


@statement(
    "ode-skew-no-jacobian",
    number="N 2.7",
    chapter="Neural ODEs",
    claim="A(x) = [[0, x1], [-x1, 0]] is skew but no Jacobian. In general a skew A that changes is "
    "none: max|∂_kA_ij - ∂_jA_ik| ≥ (2/3) max|∂_kA_ij|, where a Jacobian has 0.",
    state="holds",
    example=lambda: skew_no_jacobian(_two_by_two, torch.tensor([0.5, -1.0]).double()),
    remark="The document has the example; the inequality is what N 2.9 says at a point.",
)
def skew_no_jacobian(field: PointField, x: Tensor) -> Check:
    """How far the derivatives of a skew field are from those of a Jacobian.

    Args:
        field: A, not constant near x.
        x: The point.

    Shape:
        x [d]; measured and bound are numbers.
    """
    change = jacobian(field, x)
    return Check(
        measured=(change - change.mT).abs().max(),
        bound=2 / 3 * change.abs().max(),
        relation=">=",
        assumptions={"A skew": _skew(*_rays(field, x)), "A changes": bool(change.any())},
        quantity="max|∂_kA_ij - ∂_jA_ik|",
    )


@statement(
    "ode-skew-affine",
    number="N 2.9",
    chapter="Neural ODEs",
    claim="f twice differentiable with skew Jacobian everywhere is affine, f(x) = f(0) + Cx: only "
    "zero is antisymmetric in (i, j) and symmetric in (j, k).",
    state="holds",
    example=lambda: skew_affine(5),
)
def skew_affine(d: int) -> Check:
    """The rank of the linear conditions T_ijk = -T_jik = T_ikj on d³ unknowns, against d³.

    Args:
        d: Dimension, >= 1.

    Shape:
        measured and bound are numbers.

    Raises:
        ValueError: If d < 1.
    """
    _checks.positive_int("d", d)
    unit = torch.eye(d**3, dtype=torch.float64).reshape(-1, d, d, d)
    conditions = torch.cat([unit + unit.transpose(1, 2), unit - unit.transpose(2, 3)], dim=1)
    rank = torch.linalg.matrix_rank(conditions.reshape(d**3, -1))
    return Check(
        measured=rank, bound=torch.tensor(d**3), relation="==", tolerance=0.0, quantity="rank"
    )


@statement(
    "ode-skew-affine-field",
    number="N 2.9",
    chapter="Neural ODEs",
    claim="The same for a given f at given points: f(x) = f(0) + Cx, C the Jacobian at 0.",
    state="holds",
    example=lambda: skew_affine_field(_affine(), features(6, 4, 1)),
)
def skew_affine_field(field: PointField, points: Tensor) -> Check:
    """F against f(0) + Cx.

    Args:
        field: f.
        points: Where to look.

    Shape:
        points, measured and bound [K, d].
    """
    zero = torch.zeros_like(points[0])
    return Check(
        measured=torch.stack([field(x) for x in points]),
        bound=field(zero) + points @ jacobian(field, zero).T,
        relation="==",
        tolerance=1e-10,
        assumptions={"∂f/∂x skew": _skew(*(jacobian(field, x) for x in [zero, *points]))},
        axis="entry i",
        quantity="f_i(x)",
    )


@statement(
    "ode-cross-product",
    number="N 2.10",
    chapter="Neural ODEs",
    claim="The matrix B(x) of the cross product with x is skew and not constant, and B(x)x = 0.",
    state="holds",
    example=lambda: cross_product(_point(3)),
    remark="So f(x) = f(0) + B(x)x may be affine although B is not constant.",
)
def cross_product(x: Tensor) -> Check:
    """B(x)x against zero.

    Args:
        x: The point.

    Shape:
        x, measured and bound [3].
    """
    matrix = torch.linalg.cross(torch.eye(3, dtype=x.dtype), x.expand(3, 3)).mT
    other = torch.linalg.cross(torch.eye(3, dtype=x.dtype), (2 * x).expand(3, 3)).mT
    return Check(
        measured=(matrix @ x).abs().max(),
        bound=1e-15 * x.square().sum(),
        assumptions={"B skew": _skew(matrix), "B changes": not torch.equal(matrix, other)},
        quantity="max|B(x)x|",
    )
