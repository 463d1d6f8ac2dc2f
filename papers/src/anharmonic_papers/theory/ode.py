"""Neural ODEs ([N]): their adjoints, and fields and models with a skew-symmetric matrix.

z' = f(z, t); the adjoint a(t) = dL(z(t1))/dz(t) is a row vector. f is any function of a state [d]
and a time (a tensor without axes) that PyTorch can differentiate; wrap a model that takes batches
as ``lambda z, t: model(z[None], t)[0]``. Skew Symmetric is f(z, t) = f(0, t) + A(z, t) z (3.1) with
A = (B - Bᵀ)/√2 of a network's B.

Arguments: field, f, or a function of a point [d] that returns a vector [d] or a matrix [d, d];
z [d], the state at the first time; times [K], ascending; steps of the solver between two times;
last [d], a(t1); x [d], a point.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.diagnostics import adjoint_score
from anharmonic_papers.theory.graphs import features
from anharmonic_papers.theory.integrate import Field, derivatives, rk4
from anharmonic_papers.theory.statements import Check, statement

claim = partial(statement, chapter="Neural ODEs")
of_time = partial(claim, relation="==", axis="time t")
of_matrix = partial(claim, relation="==", axis="column j")
of_step = partial(claim, relation="==", axis="step t", quantity="|a_t|²")
of_entry = partial(claim, relation="==", axis="entry i")

PointField = Callable[[Tensor], Tensor]


def skew_part(matrix: Tensor) -> Tensor:
    """M - Mᵀ over the last two axes."""
    return matrix - matrix.mT


def is_skew(*matrices: Tensor) -> bool:
    """Whether all are skew-symmetric, up to rounding."""
    return all(
        bool((m + m.mT).abs().max() <= 1e-10 * m.abs().max().clamp(min=1e-300)) for m in matrices
    )


def derivative(function: PointField, x: Tensor, direction: Tensor) -> Tensor:
    """The derivative (direction·∇) f at x, [d] -> [...]."""
    found: Tensor = derivatives.jvp(function, x, direction)[1]
    return found


def jacobian(function: PointField, x: Tensor) -> Tensor:
    """All derivatives ∂f/∂x_k, [..., d], the last axis over k."""
    unit = torch.eye(len(x), dtype=x.dtype)
    return torch.stack([derivative(function, x, direction) for direction in unit], dim=-1)


def adjoint(field: Field, states: Tensor, last: Tensor, times: Tensor, steps: int) -> Tensor:
    """Solve da/dt = -a ∂f/∂z backwards beside z, from a(t1) = last; [K, d]."""

    def backward(both: Tensor, t: Tensor) -> Tensor:
        value, pulled = derivatives.vjp(lambda z: field(z, t), *both)
        return torch.stack([value, -pulled])

    found = rk4(backward, torch.stack([states[-1], last]), times.flip(0), steps)
    return found[:, 1].flip(0)


def jacobians_along(field: Field, states: Tensor, times: Tensor) -> Tensor:
    """∂f/∂z at every state of a solution, [K, d, d]."""

    def at(state: Tensor, t: Tensor) -> Tensor:
        return jacobian(lambda z: field(z, t), state)

    return torch.stack([at(*pair) for pair in zip(states, times, strict=True)])


def network(d: int = 4) -> Field:
    """A tanh network of an example, with d states."""
    weight, out = features(d, d, 0), features(d, d, 1)
    return lambda z, t: out @ torch.tanh(weight @ z + t)


def turning(d: int = 4) -> Field:
    """f0(t) + C(t) z with C skew."""
    first, second = skew_part(features(d, d, 0)), skew_part(features(d, d, 1))
    return lambda z, t: torch.cos(t) + (first + torch.sin(t) * second) @ z


def matrices(d: int = 4) -> Field:
    """B(z, t) [d, d] of an example."""
    weight, out = features(d, d, 0), features(d * d, d, 1)
    return lambda z, t: (out @ torch.tanh(weight @ z + t)).reshape(d, d)


def vector(seed: int, d: int = 4) -> Tensor:
    """A state, an adjoint or a point of an example."""
    return features(d, 1, seed)[:, 0]


def times_to(end: float, points: int) -> Tensor:
    """Evenly spaced times from 0."""
    return torch.linspace(0, end, points, dtype=torch.float64)


@of_time(
    "N 2.1, 2.2",
    "holds",
    lambda: (network(), vector(7), times_to(2, 11), lambda z: z.square().sum()),
    "adjoint a_i(t)",
    tolerance=1e-5,
)
def ode_adjoint(
    field: Field, z: Tensor, times: Tensor, loss: Callable[[Tensor], Tensor], steps: int = 5
) -> Check:
    """The adjoint a(t) = dL(z(t1))/dz(t) solves da/dt = -a ∂f/∂z."""
    states = [z.detach().requires_grad_()]
    for pair in times.unfold(0, 2, 1):
        states.append(rk4(field, states[-1], pair, steps)[-1])
    found = torch.stack(torch.autograd.grad(loss(states[-1]), states))
    solved = adjoint(field, torch.stack(states).detach(), found[-1], times, steps)
    return Check(found.T, solved.T, places=times)


@of_time(
    "N 2.3",
    "holds",
    lambda: (turning(), vector(7), times_to(5, 41), vector(3)),
    "|a(t)|",
    tolerance=1e-5,
)
def ode_skew_adjoint(field: Field, z: Tensor, times: Tensor, last: Tensor, steps: int = 5) -> Check:
    """If ∂f/∂z is skew-symmetric for all t, |a(t)| is constant."""
    states = rk4(field, z, times, steps)
    found = adjoint(field, states, last, times, steps).norm(dim=1)
    skew = {"∂f/∂z skew along the solution": is_skew(jacobians_along(field, states, times))}
    return Check(found, last.norm(), skew, times)


@of_time(
    "N 2.3",
    "holds",
    lambda: (network(), vector(7), times_to(2, 21), vector(3)),
    "change of |a|² over two intervals",
    tolerance=1e-3,
)
def ode_skew_necessary(
    field: Field, z: Tensor, times: Tensor, last: Tensor, steps: int = 5
) -> Check:
    """d|a|²/dt = -a (J + Jᵀ) aᵀ, J = ∂f/∂z: |a| is constant for every a only if J is skew."""
    # The integral of the rate by Simpson's rule; times are odd in number and evenly spaced.
    states = rk4(field, z, times, steps)
    row = adjoint(field, states, last, times, steps)
    along = jacobians_along(field, states, times)
    rate = -torch.einsum("ki,kij,kj->k", row, along + along.mT, row)
    size = row.square().sum(1)
    pairs = (times[1] - times[0]) / 3 * (rate[:-2:2] + 4 * rate[1:-1:2] + rate[2::2])
    return Check(size[2::2] - size[:-2:2], pairs, places=times[2::2])


def discrete(field: Field, z: Tensor, h: float, steps: int, last: Tensor) -> tuple[Tensor, Tensor]:
    """a_t of z_{t+1} = z_t + h f(z_t, t), t = 0 .. steps, and the Jacobians A_t."""
    states, times = [z.detach().requires_grad_()], [z.new_tensor(n * h) for n in range(steps)]
    for t in times:
        states.append(states[-1] + h * field(states[-1], t))
    rows = torch.autograd.grad(states[-1] @ last, states)
    visited = torch.stack(states[:-1]).detach()
    return torch.stack(rows), jacobians_along(field, visited, torch.stack(times))


@of_step("N 2.8", "holds", lambda: (network(), vector(7), 0.1, 100, vector(3)))
def ode_discrete_adjoint(field: Field, z: Tensor, h: float, steps: int, last: Tensor) -> Check:
    """For z_{t+1} = z_t + h f(z_t, t) with Jacobians A_t: |a_t|² = |a_{t+1}|² + h a_{t+1}(A_t +
    A_tᵀ)a_{t+1}ᵀ + h²|a_{t+1}A_t|².
    """
    rows, matrices = discrete(field, z, h, steps, last)
    after = rows[1:]
    moved = torch.einsum("ki,kij->kj", after, matrices)
    turned = torch.einsum("ki,kij,kj->k", after, matrices + matrices.mT, after)
    bound = after.square().sum(1) + h * turned + h**2 * moved.square().sum(1)
    return Check(rows[:-1].square().sum(1), bound)


@of_step("N 2.8", "holds", lambda: (turning(), vector(7), 0.05, 100, vector(3)))
def ode_discrete_skew(field: Field, z: Tensor, h: float, steps: int, last: Tensor) -> Check:
    """The same with skew A_t: |a_t|² = |a_0|² - h² Σ_{s<t}|a_{s+1}A_s|².

    Backwards in time |a| grows by terms of order h² per step.
    """
    rows, matrices = discrete(field, z, h, steps, last)
    moved = torch.einsum("ki,kij->kj", rows[1:], matrices).square().sum(1)
    lost = torch.cat([moved.new_zeros(1), moved.cumsum(0)])
    bound = rows[0].square().sum() - h**2 * lost
    return Check(rows.square().sum(1), bound, {"A_t skew": is_skew(matrices)})


def mean_along(field: PointField, x: Tensor) -> Tensor:
    """∫_0^1 field(s x) ds by Gauss and Legendre's rule with 40 points."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    values = [w / 2 * field(x * float((1 + s) / 2)) for s, w in zip(nodes, weights, strict=True)]
    return torch.stack(values).sum(0)


def rays(field: PointField, x: Tensor) -> list[Tensor]:
    """A field at four points between zero and x."""
    return [field(x * s) for s in (0.0, 0.3, 0.7, 1.0)]


def skew_field(d: int = 4) -> PointField:
    """A skew matrix of an example that changes with x."""
    return lambda x: skew_part(matrices(d)(x, torch.zeros(())))


@of_entry(
    "N 2.4",
    "holds",
    lambda: (lambda x: network()(x, x.new_tensor(0.3)), vector(5)),
    "f_i(x) - f_i(0)",
    tolerance=1e-9,
)
def ode_mean_jacobian(field: PointField, x: Tensor) -> Check:
    """f continuously differentiable with Jacobian A: f(x) = f(0) + B(x)x, B(x) = ∫_0^1 A(sx) ds."""
    return Check(field(x) - field(0 * x), mean_along(lambda y: jacobian(field, y), x) @ x)


@of_matrix("N 2.5", "holds", lambda: (skew_field(), vector(5)), "B_ij")
def ode_skew_mean(field: PointField, x: Tensor) -> Check:
    """A(x) skew everywhere implies B(x) = ∫_0^1 A(sx) ds skew."""
    mean = mean_along(field, x)
    return Check(mean, -mean.mT, {"A skew": is_skew(*rays(field, x))})


@of_matrix("N 2.6", "corrected", lambda: (skew_field(), vector(5)), "B_ij(x)", tolerance=1e-9)
def ode_skew_generator(field: PointField, x: Tensor) -> Check:
    """B differentiable and skew iff B(x) = ∫_0^1 Q(sx) ds with Q skew; Q(y) = B(y) + (y·∇)B(y).

    This Q replaces the proof's, which is not a function of sx.
    """

    def generator(y: Tensor) -> Tensor:
        return field(y) + derivative(field, y, y)

    skew = {f"{name} skew": is_skew(*rays(f, x)) for name, f in (("B", field), ("Q", generator))}
    return Check(field(x), mean_along(generator, x), skew)


@of_matrix("N 2.6", "false", lambda: (skew_field(), vector(5)), "Q_ij", tolerance=1e-9)
def ode_skew_generator_printed(field: PointField, x: Tensor) -> Check:
    """The same with the proof's Q = d/ds B(sx) + B(0), taken as a function of sx.

    The point x is at s = 1/2 on the way to 2x and at s = 1 on the way to x, but Q differs there.
    """

    def proof(end: Tensor, s: float) -> Tensor:
        return derivative(field, s * end, end) + field(0 * end)

    return Check(proof(2 * x, 0.5), proof(x, 1.0), {"B skew": is_skew(*rays(field, x))})


def cross_matrix(axis: Tensor) -> Tensor:
    """The matrix of the cross product of a vector of three entries with this one."""
    matrix: Tensor = torch.linalg.cross(torch.eye(3, dtype=axis.dtype), axis.expand(3, 3)).mT
    return matrix


@claim(
    "N 2.7",
    "holds",
    lambda: (
        lambda x: cross_matrix(x / x.new_tensor([3.0, 3.0, -1.0])),
        torch.tensor([0.5, -1.0, 2.0]).double(),
    ),
    "max|∂_kA_ij - ∂_jA_ik|",
    relation=">=",
)
def ode_skew_no_jacobian(field: PointField, x: Tensor) -> Check:
    """A(x) = [[0, x1], [-x1, 0]] is skew but no Jacobian. In general a skew A that changes is none:
    max|∂_kA_ij - ∂_jA_ik| ≥ (2/3) max|∂_kA_ij|, where a Jacobian has 0.

    The paper has this A, whose left side is 3/2 of the bound. The inequality is what N 2.9 says at
    a point. It is reached in three dimensions.
    """
    change = jacobian(field, x)
    met = {"A skew": is_skew(*rays(field, x)), "A changes": bool(change.any())}
    return Check((change - change.mT).abs().max(), 2 / 3 * change.abs().max(), met)


@claim("N 2.9", "holds", lambda: (5,), "rank", relation="==", tolerance=0.0)
def ode_skew_affine(d: int) -> Check:
    """f twice differentiable with skew Jacobian everywhere is affine, f(x) = f(0) + Cx: only zero
    is antisymmetric in (i, j) and symmetric in (j, k).
    """
    # The rank of the conditions T_ijk = -T_jik = T_ikj on d³ unknowns.
    _checks.positive_int("d", d)
    unit = torch.eye(d**3, dtype=torch.float64).reshape(-1, d, d, d)
    conditions = torch.cat([unit + unit.transpose(1, 2), unit - unit.transpose(2, 3)], dim=1)
    return Check(torch.linalg.matrix_rank(conditions.reshape(d**3, -1)), torch.tensor(d**3))


@of_entry(
    "N 2.9",
    "holds",
    lambda: (lambda x: skew_part(features(4, 4, 0)) @ x + 1.0, features(6, 4, 1)),
    "f_i(x)",
    tolerance=1e-10,
)
def ode_skew_affine_field(field: PointField, points: Tensor) -> Check:
    """The same for a given f at given points: f(x) = f(0) + Cx, C the Jacobian at 0."""
    zero = torch.zeros_like(points[0])
    slopes = [jacobian(field, x) for x in (zero, *points)]
    bound = field(zero) + points @ slopes[0].T
    met = {"∂f/∂x skew": is_skew(*slopes)}
    return Check(torch.stack([field(x) for x in points]), bound, met)


@claim("N 2.10", "holds", lambda: (vector(5, 3),), "max|B(x)x|")
def ode_cross_product(x: Tensor) -> Check:
    """The matrix B(x) of the cross product with x is skew and not constant, and B(x)x = 0.

    So f(x) = f(0) + B(x)x may be affine although B is not constant.
    """
    matrix, other = cross_matrix(x), cross_matrix(2 * x)
    met = {"B skew": is_skew(matrix), "B changes": not torch.equal(matrix, other)}
    return Check((matrix @ x).abs().max(), 1e-15 * x.square().sum(), met)


def draws(x: Tensor, count: int = 4000) -> Tensor:
    """B_0 + Σ_k b_k x_k with independent normal entries."""
    generator = torch.Generator().manual_seed(0)
    parts = torch.randn(len(x) + 1, count, len(x), len(x), generator=generator).to(x.dtype)
    return parts[0] + torch.einsum("knij,k->nij", parts[1:], x)


@claim(
    "N 3.1 = A.1",
    "holds",
    lambda: (draws, torch.ones(5).double()),
    "E[(Sym J_f)_ij²]",
    axis="column j",
)
def ode_symmetric_part(fields: Callable[[Tensor], Tensor], x: Tensor) -> Check:
    """g(z) = g(0) + B(z)z with B_ij i.i.d. and independent of all ∂_kB_ij; f with A = (B - Bᵀ)/√2
    in place of B: E[(Sym J_f)_ij²] ≤ E[(Sym J_g)_ij²].

    It is checked by Monte Carlo, with 4 standard errors on the safe side. The expectation is over
    random parameters. So it applies only to the start of training, where entries are independent.
    """
    # fields(x) are the matrices B of n independent draws of its parameters, [n, d, d].

    def squares(matrices: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        found = jacobian(lambda z: matrices(z) @ z, x)
        square = ((found + found.mT) / 2).square()
        return square.mean(0), square.std(0) / len(square) ** 0.5

    ours, our_error = squares(lambda z: skew_part(fields(z)) / 2**0.5)
    theirs, their_error = squares(fields)
    return Check(ours + 4 * our_error, theirs - 4 * their_error)


def orthogonal(h: float) -> Tensor:
    """Cayley's map of a skew matrix."""
    half, eye = h / 2 * skew_part(features(4, 4, 0)), torch.eye(4, dtype=torch.float64)
    rotation: Tensor = torch.linalg.solve(eye - half, eye + half)
    return rotation


@of_matrix("N A.1.2", "holds", lambda: (orthogonal(0.01), 0.01), "(A_h + A_hᵀ)_ij")
def ode_orthogonal_limit(weight: Tensor, h: float) -> Check:
    """OrthoRNN with identity σ and W = I + hA + o(h) orthogonal: A is skew, its limit is the linear
    case of (3.1). For every h, A_h = (W - I)/h has A_h + A_hᵀ = -h A_hᵀA_h.
    """
    eye = torch.eye(len(weight), dtype=weight.dtype)
    slope = (weight - eye) / h
    met = {"W orthogonal": torch.allclose(weight.mT @ weight, eye, atol=1e-13)}
    off = 1e-15 / h**2 + 1e-12
    return Check(slope + slope.mT, -h * slope.mT @ slope, met, tolerance=off)


def score(field: Field, z: Tensor, times: Tensor, last: Tensor, steps: int) -> Tensor:
    """q95(|a|)/q05(|a|) over the times."""
    found = adjoint(field, rk4(field, z, times, steps), last, times, steps)
    return adjoint_score(found.norm(dim=1, keepdim=True))[0]


def matrix_network(skew: bool) -> Field:
    """A(z, t) z with A = B or (B - Bᵀ)/√2 of the same network B."""

    def field(z: Tensor, t: Tensor) -> Tensor:
        B = matrices()(z, t) / 2
        return (skew_part(B) / 2**0.5 if skew else B) @ z

    return field


@claim(
    "N 4",
    "open",
    lambda: (matrix_network(True), matrix_network(False), vector(7), times_to(2, 100), vector(3)),
    "adjoint score",
)
def ode_skew_trained(
    skew: Field, regular: Field, z: Tensor, times: Tensor, last: Tensor, steps: int = 1
) -> Check:
    """Skew Symmetric, f = f(0, t) + A(z, t) z with A skew, keeps the adjoint score
    q95(|a|)/q05(|a|) below that of Regular, in training too.

    Only two experiments show it. N 2.3 does not imply it, because a skew A(z, t) that depends on z
    does not make ∂f/∂z skew (N 2.9). The example is one draw of random weights, with B itself in
    place of Regular.
    """
    return Check(score(skew, z, times, last, steps), score(regular, z, times, last, steps))
