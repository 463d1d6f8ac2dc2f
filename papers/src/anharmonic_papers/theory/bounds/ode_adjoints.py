"""What the papers prove about adjoints of neural ODEs ([N], section 2).

z' = f(z, t); the adjoint a(t) = dL(z(t1))/dz(t) is a row vector. f is any function of a state [d]
and a time (a tensor without axes) that PyTorch can differentiate; a model that takes batches is
wrapped as ``lambda z, t: model(z[None], t)[0]``.

What the checks take, unless they say otherwise:

    field: f.
    z: The state at the first time.
    times: Where to look, ascending.
    steps: Steps of the solver between two times.
    last: a(t1).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.derivatives import jacobian
from anharmonic_papers.theory.integrate import Field, rk4
from anharmonic_papers.theory.statements import Check, statement


def skew_part(matrix: Tensor) -> Tensor:
    """M - Mᵀ over the last two axes."""
    return matrix - matrix.mT


def _jacobian(field: Field, z: Tensor, t: Tensor) -> Tensor:
    """∂f/∂z, [d, d]."""
    return jacobian(lambda state: field(state, t), z)


def _is_skew(matrices: Tensor) -> bool:
    size = matrices.abs().max()
    return bool((matrices + matrices.mT).abs().max() <= 1e-10 * size)


def adjoint(field: Field, states: Tensor, last: Tensor, times: Tensor, steps: int) -> Tensor:
    """Solves da/dt = -a ∂f/∂z backwards beside z, from a(t1) = last; [K, d]."""

    def backward(both: Tensor, t: Tensor) -> Tensor:
        with torch.enable_grad():
            z = both[0].detach().requires_grad_()
            value = field(z, t)
            (pulled,) = torch.autograd.grad(value, z, both[1])
        return torch.stack([value.detach(), -pulled])

    found = rk4(backward, torch.stack([states[-1], last]), times.flip(0), steps)
    return found[:, 1].flip(0)


def network(seed: int) -> Field:
    """A tanh network of an example, with four states."""
    weight, out = features(4, 4, seed), features(4, 4, seed + 1)
    return lambda z, t: out @ torch.tanh(weight @ z + t)


def _turning(seed: int) -> Field:
    """f0(t) + C(t) z with C skew."""
    first, second = skew_part(features(4, 4, seed)), skew_part(features(4, 4, seed + 1))
    return lambda z, t: torch.cos(t) + (first + torch.sin(t) * second) @ z


def start() -> Tensor:
    """An example's state, or adjoint."""
    return features(4, 1, 7)[:, 0]


def _times(end: float, points: int) -> Tensor:
    return torch.linspace(0, end, points, dtype=torch.float64)


@statement(
    "ode-adjoint",
    number="N 2.1, 2.2",
    chapter="Neural ODEs",
    claim="The adjoint a(t) = dL(z(t1))/dz(t) solves da/dt = -a ∂f/∂z.",
    state="holds",
    example=lambda: adjoint_equation(
        network(0), start(), _times(2, 11), lambda z: z.square().sum()
    ),
)
def adjoint_equation(
    field: Field, z: Tensor, times: Tensor, loss: Callable[[Tensor], Tensor], steps: int = 5
) -> Check:
    """The norm of a(t), by differentiating through the solution and by the adjoint equation.

    Args:
        loss: L, of the last state.

    Shape: z [d]; times [K]; measured and bound [d, K].
    """
    states = [z.detach().requires_grad_()]
    for pair in times.unfold(0, 2, 1):
        states.append(rk4(field, states[-1], pair, steps)[-1])
    value = loss(states[-1])
    found = torch.stack(torch.autograd.grad(value, states))
    solved = adjoint(field, torch.stack(states).detach(), found[-1], times, steps)
    return Check(
        measured=found.T,
        bound=solved.T,
        relation="==",
        tolerance=1e-5,
        places=times,
        axis="time t",
        quantity="adjoint a_i(t)",
    )


@statement(
    "ode-skew-adjoint",
    number="N 2.3",
    chapter="Neural ODEs",
    claim="If ∂f/∂z is skew-symmetric for all t, |a(t)| is constant.",
    state="holds",
    example=lambda: skew_adjoint(_turning(0), start(), _times(5, 41), features(4, 1, 3)[:, 0]),
)
def skew_adjoint(field: Field, z: Tensor, times: Tensor, last: Tensor, steps: int = 5) -> Check:
    """|a(t)| against its value at the end.

    Shape: z, last [d]; times, measured and bound [K].
    """
    states = rk4(field, z, times, steps)
    along = torch.stack([_jacobian(field, s, t) for s, t in zip(states, times, strict=True)])
    return Check(
        measured=adjoint(field, states, last, times, steps).norm(dim=1),
        bound=last.norm(),
        relation="==",
        tolerance=1e-5,
        assumptions={"∂f/∂z skew along the solution": _is_skew(along)},
        places=times,
        axis="time t",
        quantity="|a(t)|",
    )


@statement(
    "ode-skew-necessary",
    number="N 2.3",
    chapter="Neural ODEs",
    claim="d|a|²/dt = -a (J + Jᵀ) aᵀ, J = ∂f/∂z: |a| is constant for every a only if J is skew.",
    state="holds",
    example=lambda: skew_necessary(network(0), start(), _times(2, 21), features(4, 1, 3)[:, 0]),
)
def skew_necessary(field: Field, z: Tensor, times: Tensor, last: Tensor, steps: int = 5) -> Check:
    """What |a|² changes between two times against the integral of its rate, by Simpson's rule.

    Args:
        times: An odd number of times, ascending and evenly spaced.

    Shape: z, last [d]; times [K]; measured and bound [(K - 1) / 2].
    """
    states = rk4(field, z, times, steps)
    row = adjoint(field, states, last, times, steps)
    along = torch.stack([_jacobian(field, s, t) for s, t in zip(states, times, strict=True)])
    rate = -torch.einsum("ki,kij,kj->k", row, along + along.mT, row)
    size = row.square().sum(1)
    pairs = (times[1] - times[0]) / 3 * (rate[:-2:2] + 4 * rate[1:-1:2] + rate[2::2])
    return Check(
        measured=size[2::2] - size[:-2:2],
        bound=pairs,
        relation="==",
        tolerance=1e-3,
        places=times[2::2],
        axis="time t",
        quantity="change of |a|² over two intervals",
    )


def _discrete(field: Field, z: Tensor, h: float, steps: int, last: Tensor) -> tuple[Tensor, Tensor]:
    """a_t of z_{t+1} = z_t + h f(z_t, t), t = 0 .. steps, and the Jacobians A_t."""
    jacobians, states = [], [z.detach().requires_grad_()]
    for n in range(steps):
        t = z.new_tensor(n * h)
        jacobians.append(_jacobian(field, states[-1].detach(), t))
        states.append(states[-1] + h * field(states[-1], t))
    rows = torch.autograd.grad(states[-1] @ last, states)
    return torch.stack(rows), torch.stack(jacobians)


@statement(
    "ode-discrete-adjoint",
    number="N 2.8",
    chapter="Neural ODEs",
    claim="For z_{t+1} = z_t + h f(z_t, t) with Jacobians A_t: |a_t|² = |a_{t+1}|² + "
    "h a_{t+1}(A_t + A_tᵀ)a_{t+1}ᵀ + h²|a_{t+1}A_t|².",
    state="holds",
    example=lambda: discrete_adjoint(network(0), start(), 0.1, 100, features(4, 1, 3)[:, 0]),
)
def discrete_adjoint(field: Field, z: Tensor, h: float, steps: int, last: Tensor) -> Check:
    """|a_t|² against the identity, at every step.

    Args:
        z: z_0.
        h: Step size.
        steps: How many.
        last: The adjoint after the last step.

    Shape: z, last [d]; measured and bound [steps].
    """
    rows, matrices = _discrete(field, z, h, steps, last)
    after = rows[1:]
    moved = torch.einsum("ki,kij->kj", after, matrices)
    turned = torch.einsum("ki,kij,kj->k", after, matrices + matrices.mT, after)
    return Check(
        measured=rows[:-1].square().sum(1),
        bound=after.square().sum(1) + h * turned + h**2 * moved.square().sum(1),
        relation="==",
        axis="step t",
        quantity="|a_t|²",
    )


@statement(
    "ode-discrete-skew",
    number="N 2.8",
    chapter="Neural ODEs",
    claim="The same with skew A_t: |a_t|² = |a_0|² - h² Σ_{s<t}|a_{s+1}A_s|².",
    state="holds",
    example=lambda: discrete_skew(_turning(0), start(), 0.05, 100, features(4, 1, 3)[:, 0]),
    remark="Backwards in time |a| grows, by terms of order h² per step.",
)
def discrete_skew(field: Field, z: Tensor, h: float, steps: int, last: Tensor) -> Check:
    """|a_t|² against the sum, at every step; arguments as ``discrete_adjoint``.

    Shape: z, last [d]; measured and bound [steps + 1].
    """
    rows, matrices = _discrete(field, z, h, steps, last)
    moved = torch.einsum("ki,kij->kj", rows[1:], matrices).square().sum(1)
    lost = torch.cat([moved.new_zeros(1), moved.cumsum(0)])
    return Check(
        measured=rows.square().sum(1),
        bound=rows[0].square().sum() - h**2 * lost,
        relation="==",
        assumptions={"A_t skew": _is_skew(matrices)},
        axis="step t",
        quantity="|a_t|²",
    )
