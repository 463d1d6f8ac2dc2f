r"""What the papers prove about the gradients of coRNN in continuous time (T 2.2.3).

For θ = W_ij, all pairs at once, the variational system (2.7) of (2.2) is

.. math::
    y_\theta' = z_\theta, \quad
    z_\theta' = \tanh'(A) \odot (W y_\theta + \mathcal{W} z_\theta + e_i y_j)
                - \gamma y_\theta - \epsilon z_\theta.

What the checks take, unless they say otherwise:

    layer: One layer, one direction, float64.
    x: One sequence, constant over each interval of length dt.
    substeps: Runge-Kutta steps in an interval.

Shape: x [T, 1, F]; measured and bound [T].
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from anharmonic.nn import CoRNN
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.bounds.cornn_energy import drive, scalars, times
from anharmonic_papers.theory.gradients import column_sum, row_sum
from anharmonic_papers.theory.integrate import rk4
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import check_one_sequence, check_single, weights


def variation(layer: CoRNN, x: Tensor, substeps: int) -> Tensor:
    """Q = y_θ·y_θ + z_θ·z_θ/γ at the times n dt, from rest, x [T, 1, F] -> [T, H, H] by W_ij."""
    check_single(layer)
    check_one_sequence(x)
    dt, gamma, epsilon = scalars(layer)
    values, H = weights(layer), layer.hidden_size
    W, Wz = values["weight_hy"], values["weight_hz"]
    unit = torch.eye(H, dtype=x.dtype)

    def field(state: Tensor, _: Tensor, force: Tensor) -> Tensor:
        # state [2, 1 + H², H]: y and z, then their derivatives with respect to each W_ij
        (y, by_y), (z, by_z) = (half.split([1, H * H]) for half in state)
        value = torch.tanh(y @ W.T + z @ Wz.T + force)
        source = (unit[:, None] * y[0, :, None]).flatten(0, 1)  # row (i, j): e_i y_j
        by_force = (1 - value.square()) * (by_y @ W.T + by_z @ Wz.T + source)
        forces = torch.cat([value, by_force])
        return torch.stack([state[1], forces - gamma * state[0] - epsilon * state[1]])

    state, found = x.new_zeros(2, 1 + H * H, H), []
    step = x.new_tensor([0.0, dt])
    for force in drive(layer, x):
        state = rk4(partial(field, force=force), state, step, substeps)[-1]
        by_y, by_z = state[:, 1:]
        found.append((by_y.square() + by_z.square() / gamma).sum(-1).view(H, H))
    return torch.stack(found)


def _assumptions(layer: CoRNN) -> dict[str, bool]:
    values = weights(layer)
    total = row_sum(values["weight_hy"]) + row_sum(values["weight_hz"])
    epsilon = scalars(layer)[2]
    return {"‖W‖∞ + ‖𝒲‖∞ ≤ ε": bool(total <= epsilon), "ε ≥ 1/2": epsilon >= 0.5}


def _unstable_rest() -> Check:
    """A neuron at rest that W drives away from it, watched through another that is pushed."""
    layer = CoRNN(1, 2, dt=0.5, frequency=0.1, damping=0.5, dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        layer.get_parameter("weight_hy_l0")[0, 0] = 0.5
        layer.get_parameter("bias_l0")[1] = 20.0
    return gradient_printed(layer, torch.zeros(60, 1, 1, dtype=torch.float64))


@statement(
    "cornn-gradient-continuous-printed",
    number="T 2.2.3",
    chapter="coRNN",
    claim="For θ = W_ij, from rest, Q(t) ≤ m t²/(2γ²) with Q = y_θ·y_θ + z_θ·z_θ/γ.",
    state="unread",
    remark=(
        "Read from a damaged line, with Q(0) = 0. Counterexample: a neuron at rest with W_11 > γ, "
        "whose derivative with respect to W_12 grows exponentially."
    ),
    example=_unstable_rest,
)
def gradient_printed(layer: CoRNN, x: Tensor, substeps: int = 4) -> Check:
    """The largest Q over all W_ij against the printed bound."""
    dt, gamma, _ = scalars(layer)
    t = times(x, dt)
    return Check(
        measured=variation(layer, x, substeps).amax((1, 2)),
        bound=layer.hidden_size * t.square() / (2 * gamma**2),
        assumptions=_assumptions(layer),
        places=t,
        axis="time t",
        quantity="largest Q of all W_ij",
    )


def _watching() -> tuple[CoRNN, Tensor]:
    """A neuron at rest that watches another, which its input pushes; no weights, ε = 1/2."""
    layer = CoRNN(1, 2, dt=0.2, frequency=0.3, damping=0.5, dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        layer.get_parameter("weight_ih_l0")[1] = 20.0
    return layer, torch.ones(40, 1, 1, dtype=torch.float64)


@statement(
    "cornn-gradient-continuous",
    number="T 2.2.3",
    chapter="coRNN",
    claim=(
        "For θ = W_ij, from rest, Q(t) ≤ (1/γ²) ∫_0^t s e^(C(t-s)) ds with C = max(0, ‖W‖_1/γ, "
        "‖W‖∞ + ‖𝒲‖∞ + ‖𝒲‖_1 + 1 - 2ε)."
    ),
    state="corrected",
    remark=(
        "What Grönwall's lemma gives from dQ/dt ≤ C Q + t/γ², for ε ≥ 1/2 and any weights: T 2.2.1 "
        "bounds each neuron's y_j² by t/γ."
    ),
    example=lambda: gradient_continuous(*_watching()),
)
def gradient_continuous(layer: CoRNN, x: Tensor, substeps: int = 4) -> Check:
    """The largest Q over all W_ij against the bound by Grönwall's lemma."""
    (dt, gamma, epsilon), values = scalars(layer), weights(layer)
    t, W, Wz = times(x, dt), values["weight_hy"], values["weight_hz"]
    by_z = row_sum(W) + row_sum(Wz) + column_sum(Wz) + 1 - 2 * epsilon
    C = max(0.0, float(column_sum(W)) / gamma, float(by_z))
    integral = t.square() / 2 if C == 0 else (torch.expm1(C * t) - C * t) / C**2
    return Check(
        measured=variation(layer, x, substeps).amax((1, 2)),
        bound=integral / gamma**2,
        assumptions={"ε ≥ 1/2": epsilon >= 0.5},
        places=t,
        axis="time t",
        quantity="largest Q of all W_ij",
    )
