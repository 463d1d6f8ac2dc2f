r"""Derivatives of a sequence layer, as the statements need them, by automatic differentiation.

The loss of step n is :math:`E_n = |y_n - \bar y_n|^2 / 2` with y of the top layer. The partial
gradient :math:`\partial E_n^{(k)} / \partial\theta` counts the use of the weights at step k only.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.func import functional_call

from anharmonic import _checks
from anharmonic.nn import SequenceLayer, State
from anharmonic_papers.theory.trajectories import check_one_sequence, trajectory


def total_gradient(layer: SequenceLayer, x: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """The gradient of the mean of E_n over all steps by each parameter; targets [T, 1, H]."""
    check_one_sequence(x)
    output, _ = layer(x)
    loss = 0.5 * (output - targets).square().sum() / len(x)
    names, values = zip(*layer.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, values), strict=True))


def last_gradient(layer: SequenceLayer, x: Tensor, target: Tensor) -> dict[str, Tensor]:
    """The gradient of the last step's loss E_n by each parameter; target [1, H]."""
    check_one_sequence(x)
    output, _ = layer(x, output="last")
    names, values = zip(*layer.named_parameters(), strict=True)
    found = torch.autograd.grad(0.5 * (output - target).square().sum(), values)
    return dict(zip(names, found, strict=True))


def partial_gradient(
    layer: SequenceLayer,
    x: Tensor,
    target: Tensor,
    step: int,
    state: tuple[Tensor, Tensor] | None = None,
) -> dict[str, Tensor]:
    """The gradient of the last step's loss where the weights count at step k only, from 1 to n."""
    check_one_sequence(x)
    expected = f"one of 1 to {len(x)}"
    _checks.require(1 <= step <= len(x), "step", step, expected, "steps count from 1")
    before, at, after = x[: step - 1], x[step - 1 : step], x[step:]
    weights = {n: p.detach().clone().requires_grad_() for n, p in layer.named_parameters()}
    with torch.no_grad():
        if len(before):
            _, state = layer(before, state, output="none")
    _, state = functional_call(layer, weights, (at, state))
    if len(after):
        frozen = {n: p.detach() for n, p in layer.named_parameters()}
        _, state = functional_call(layer, frozen, (after, state), {"output": "none"})
    assert isinstance(state, State)
    loss = 0.5 * (state.y[-1] - target).square().sum()
    found = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
    return {
        name: torch.zeros_like(weight) if grad is None else grad
        for (name, weight), grad in zip(weights.items(), found, strict=True)
    }


def jacobians(layer: SequenceLayer, x: Tensor) -> Tensor:
    """The Jacobian ∂X_n/∂X_{n-1} of every step, [T, 2LH, 2LH], X = [y; z] (all y, then all z)."""
    check_one_sequence(x)
    path = trajectory(layer, x)
    # The steps are independent given where each starts: they make one batch.
    y, z = (s[:-1, :, 0].transpose(0, 1).clone().requires_grad_() for s in path)
    frozen = {n: p.detach() for n, p in layer.named_parameters()}
    _, after = functional_call(layer, frozen, (x.transpose(0, 1), State(y, z)))
    rows = []
    for values in after:
        for level in range(layer.num_layers):
            for unit in range(layer.hidden_size):
                one = values[level, :, unit].sum()
                row = torch.autograd.grad(one, (y, z), retain_graph=True)
                rows.append(torch.cat([g.transpose(0, 1).flatten(1) for g in row], dim=1))
    return torch.stack(rows, dim=1)


def row_sum(matrices: Tensor) -> Tensor:
    """The largest row sum of absolute values, ‖·‖∞, of each matrix [..., H, H]."""
    return matrices.detach().abs().sum(-1).amax(-1)


def column_sum(matrices: Tensor) -> Tensor:
    """The largest column sum of absolute values, ‖·‖_1, of each matrix [..., H, H]."""
    return matrices.detach().abs().sum(-2).amax(-1)


def largest(gradients: dict[str, Tensor]) -> Tensor:
    """The largest entry of all gradients."""
    return torch.stack([gradient.abs().max() for gradient in gradients.values()]).max()


def small_inputs(x: Tensor) -> dict[str, bool]:
    """What statements on gradients assume of the inputs."""
    return {"|u| ≤ 1": bool(x.abs().max() <= 1)}


def order_in_dt(values: list[Tensor]) -> Tensor:
    """The slope of log(values) over log(dt), dt halved from each value to the next."""
    return (values[0] / values[-1]).log2() / (len(values) - 1)
