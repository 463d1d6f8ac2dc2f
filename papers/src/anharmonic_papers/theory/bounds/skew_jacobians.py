"""What the papers prove about Jacobians that are skew-symmetric ([N], 2.7, 2.9 and 2.10).

What the checks take, unless they say otherwise:

    x: The point.
"""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.bounds.ode_adjoints import skew_part
from anharmonic_papers.theory.bounds.skew_fields import PointField, is_skew, point, rays
from anharmonic_papers.theory.derivatives import jacobian
from anharmonic_papers.theory.statements import Check, statement


def _affine() -> PointField:
    matrix = skew_part(features(4, 4, 0))
    return lambda x: matrix @ x + 1.0


def _two_by_two(x: Tensor) -> Tensor:
    zero = 0 * x[0]
    return torch.stack([torch.stack([zero, x[0]]), torch.stack([-x[0], zero])])


def _nearly_a_jacobian(x: Tensor) -> Tensor:
    """A skew matrix in three dimensions that reaches the two thirds."""
    one, two, three = -x[0] / 3, -x[1] / 3, x[2]
    zero = 0 * x[0]
    rows = (zero, three, -two), (-three, zero, one), (two, -one, zero)
    return torch.stack([torch.stack(row) for row in rows])


@statement(
    "ode-skew-no-jacobian",
    number="N 2.7",
    chapter="Neural ODEs",
    claim="A(x) = [[0, x1], [-x1, 0]] is skew but no Jacobian. In general a skew A that changes is "
    "none: max|∂_kA_ij - ∂_jA_ik| ≥ (2/3) max|∂_kA_ij|, where a Jacobian has 0.",
    state="holds",
    example=lambda: skew_no_jacobian(_nearly_a_jacobian, torch.tensor([0.5, -1.0, 2.0]).double()),
    remark="The paper has that one, with 3/2 of the bound; the inequality is what N 2.9 says at "
    "a point, and is reached in three dimensions.",
)
def skew_no_jacobian(field: PointField, x: Tensor) -> Check:
    """How far the derivatives of a skew field are from those of a Jacobian.

    Args:
        field: A, not constant near x.

    Shape: x [d]; measured and bound are numbers.
    """
    change = jacobian(field, x)
    return Check(
        measured=(change - change.mT).abs().max(),
        bound=2 / 3 * change.abs().max(),
        relation=">=",
        assumptions={"A skew": is_skew(*rays(field, x)), "A changes": bool(change.any())},
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

    Shape: measured and bound are numbers.
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

    Shape: points, measured and bound [K, d].
    """
    zero = torch.zeros_like(points[0])
    return Check(
        measured=torch.stack([field(x) for x in points]),
        bound=field(zero) + points @ jacobian(field, zero).T,
        relation="==",
        tolerance=1e-10,
        assumptions={"∂f/∂x skew": is_skew(*(jacobian(field, x) for x in [zero, *points]))},
        axis="entry i",
        quantity="f_i(x)",
    )


@statement(
    "ode-cross-product",
    number="N 2.10",
    chapter="Neural ODEs",
    claim="The matrix B(x) of the cross product with x is skew and not constant, and B(x)x = 0.",
    state="holds",
    example=lambda: cross_product(point(3)),
    remark="So f(x) = f(0) + B(x)x may be affine although B is not constant.",
)
def cross_product(x: Tensor) -> Check:
    """B(x)x against zero.

    Shape: x, measured and bound [3].
    """
    matrix = torch.linalg.cross(torch.eye(3, dtype=x.dtype), x.expand(3, 3)).mT
    other = torch.linalg.cross(torch.eye(3, dtype=x.dtype), (2 * x).expand(3, 3)).mT
    return Check(
        measured=(matrix @ x).abs().max(),
        bound=1e-15 * x.square().sum(),
        assumptions={"B skew": is_skew(matrix), "B changes": not torch.equal(matrix, other)},
        quantity="max|B(x)x|",
    )
