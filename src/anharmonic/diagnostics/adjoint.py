r"""The gradient with respect to the state of a neural ODE over time.

The adjoint of a neural ODE z' = f(z, t), with a loss L of the end state,

.. math::
    a(t) = \frac{dL(z(t_1))}{dz(t)}, \qquad a' = -a \,\frac{\partial f}{\partial z}

is solved backwards together with z. Its norm is constant if the Jacobian of f is skew-symmetric.
The adjoint score is the ratio of two quantiles of the norm over time, q95 / q05; 1 is best.

Reference: Nestaas, Theoretically Motivated Neural ODE Architectures for Stable Adjoint Behavior,
2022, Proposition 2.2 and Lemma 2.3.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic._checks import require
from anharmonic.nn.ode.matrix_form import NeuralODE
from anharmonic.nn.ode.network import NeuralODENetwork
from anharmonic.nn.ode.solve import solve

POINTS = 100
"""Number of times at which the paper computes the norm."""


def adjoint_norms(
    ode: NeuralODE, z: Tensor, loss: Callable[[Tensor], Tensor], points: int = POINTS
) -> Tensor:
    """Return the norms ``|a(t)|`` of a neural ODE at equally spaced times from 0 to ``end_time``.

    Uses the ODE's own solver and tolerances. Its ``nfe`` counts only the solve of z.

    Args:
        ode: The neural ODE.
        z: The initial states.
        loss: Loss of the end states, summed over the batch.
        points: Number of times, >= 2.

    Shape:
        z [B, H]; result [points, B], starting with the norm at time 0.

    Raises:
        TypeError: If ode is not a neural ODE.
        ValueError: If there are fewer than two times, z does not fit, or the loss is not a number.
        StiffError: If a solve needs too small steps or too many evaluations.

    Example:
        >>> ode = NeuralODE(3, "skew")
        >>> adjoint_norms(ode, torch.ones(2, 3), lambda end: end.square().sum()).shape
        torch.Size([100, 2])
    """
    advice = "pass network.ode of a NeuralODENetwork; state_gradients serves recurrent layers"
    require(isinstance(ode, NeuralODE), "ode", type(ode).__name__, "a NeuralODE", advice, TypeError)
    require(_checks.positive_int("points", points) >= 2, "points", points, ">= 2", "take about 100")
    with torch.no_grad():
        end = ode(z)
    with torch.enable_grad():
        end = end.requires_grad_()
        value = loss(end)
        require(
            value.numel() == 1 and value.requires_grad,
            "the result of loss",
            value,
            "one number that depends on the end states",
            "sum over the batch, and do not detach",
        )
        (a,) = torch.autograd.grad(value.sum(), end)
    # The equation is linear, so solve for directions, which are never below the tolerance.
    sizes = a.norm(dim=-1, keepdim=True).clamp_min(torch.finfo(a.dtype).tiny)
    last = ode.end_time

    def backwards(s: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return d/ds of z and a at the time last - s."""
        z, a = state
        with torch.enable_grad():
            z = z.detach().requires_grad_()
            f = ode.vector_field(z, last - s)
        (grown,) = torch.autograd.grad(f, z, a)
        return -f.detach(), grown

    times = torch.linspace(0.0, last, points, dtype=z.dtype, device=z.device)
    plain = ode.solver_settings._replace(adjoint=False)
    with torch.no_grad():
        (_, path), _ = solve(backwards, (end.detach(), a / sizes), times, plain)
    norms: Tensor = path.flip(0).norm(dim=-1) * sizes[:, 0]
    return norms


def network_adjoint_norms(
    network: NeuralODENetwork, x: Tensor, loss: Callable[[Tensor], Tensor], points: int = POINTS
) -> Tensor:
    """Return ``adjoint_norms`` of a whole network for rows of features and a loss.

    The network's training mode is not changed.

    Args:
        network: Encoder, neural ODE and decoder.
        x: The rows.
        loss: Loss of the predictions [B, O], summed over the batch.
        points: Number of times, >= 2.

    Shape:
        x [B, F]; result [points, B].

    Raises:
        ValueError: As in ``adjoint_norms``.
        StiffError: As in ``adjoint_norms``.

    Example:
        >>> network = NeuralODENetwork(5, 1, hidden_size=3)
        >>> network_adjoint_norms(network, torch.ones(2, 5), lambda o: o.square().sum(), 10).shape
        torch.Size([10, 2])
    """
    with torch.no_grad():
        start = network.encoder(x)
    return adjoint_norms(network.ode, start, lambda end: loss(network.decoder(end)), points)


def adjoint_score(norms: Tensor) -> Tensor:
    """Return the ratio q95 / q05 of norms over time; 1 if they are constant, otherwise larger.

    Args:
        norms: Norms, time first.

    Shape:
        norms [T, B]; result float64 [B].

    Example:
        >>> adjoint_score(torch.tensor([[1.0, 1.0], [1.0, 3.0]])).tolist()
        [1.0, 2.636...]
    """
    low, high = torch.quantile(
        norms.double(), torch.tensor([0.05, 0.95], dtype=torch.float64, device=norms.device), dim=0
    ).clamp_min(torch.finfo(torch.float64).tiny)
    score: Tensor = high / low
    return score
