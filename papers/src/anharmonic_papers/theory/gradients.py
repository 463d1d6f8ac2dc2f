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


def total_gradient(
    layer: SequenceLayer,
    x: Tensor,
    targets: Tensor,
    state: tuple[Tensor, Tensor] | None = None,
) -> dict[str, Tensor]:
    """The gradient of the mean of E_n over all steps with respect to every parameter, by name.

    Args:
        layer: A layer.
        x: One sequence.
        targets: The targets ȳ_n.
        state: The initial state; zeros if None.

    Shape:
        x [T, 1, F]; targets [T, 1, H].

    Raises:
        ValueError: If x is not one sequence.

    Example:
        >>> from anharmonic import CoRNN
        >>> found = total_gradient(CoRNN(2, 3), torch.randn(5, 1, 2), torch.zeros(5, 1, 3))
        >>> found["weight_hy_l0"].shape
        torch.Size([3, 3])
    """
    check_one_sequence(x)
    output, _ = layer(x, state)
    loss = 0.5 * (output - targets).square().sum() / len(x)
    names, values = zip(*layer.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, values), strict=True))


def last_gradient(
    layer: SequenceLayer,
    x: Tensor,
    target: Tensor,
    state: tuple[Tensor, Tensor] | None = None,
) -> dict[str, Tensor]:
    """The gradient of the last step's loss E_n with respect to every parameter, by name.

    Args:
        layer: A layer.
        x: One sequence; its last step is n.
        target: The target of the last step.
        state: The initial state; zeros if None.

    Shape:
        x [n, 1, F]; target [1, H].

    Raises:
        ValueError: If x is not one sequence.

    Example:
        >>> from anharmonic import LEM
        >>> last_gradient(LEM(2, 3), torch.randn(5, 1, 2), torch.zeros(1, 3))["bias_l0"].shape
        torch.Size([12])
    """
    check_one_sequence(x)
    output, _ = layer(x, state, output="last")
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
    """The partial gradient of the last step's loss: the weights count at one step only.

    Args:
        layer: A layer in one direction.
        x: One sequence; its last step is n.
        target: The target of the last step.
        step: k, counted from 1, at most n.
        state: The initial state; zeros if None.

    Shape:
        x [n, 1, F]; target [1, H].

    Raises:
        ValueError: If the step is not one of 1 to n, or x is not one sequence.

    Example:
        >>> from anharmonic import LEM
        >>> found = partial_gradient(LEM(2, 3), torch.randn(4, 1, 2), torch.zeros(1, 3), 2)
        >>> found["bias_l0"].shape
        torch.Size([12])
    """
    check_one_sequence(x)
    if not 1 <= step <= len(x):
        raise ValueError(
            _checks.message(
                f"step must be one of 1 to {len(x)}", f"step={step}", "steps count from 1"
            )
        )
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


def jacobians(
    layer: SequenceLayer, x: Tensor, state: tuple[Tensor, Tensor] | None = None
) -> Tensor:
    r"""The Jacobian ∂X_n/∂X_{n-1} of every step, X = [y; z] (of a stack: all y, then all z).

    Args:
        layer: A stack in one direction.
        x: One sequence.
        state: The initial state; zeros if None.

    Shape:
        x [T, 1, F]; returns [T, 2LH, 2LH].

    Raises:
        ValueError: If x is not one sequence.

    Example:
        >>> from anharmonic import UnICORNN
        >>> steps = jacobians(UnICORNN(1, 2), torch.ones(3, 1, 1))
        >>> torch.allclose(torch.linalg.det(steps), torch.ones(3))
        True
    """
    check_one_sequence(x)
    path = trajectory(layer, x, state)
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


def order_in_dt(values: list[Tensor]) -> Tensor:
    """The slope of log(values) over log(dt), dt halved from each value to the next."""
    return (values[0] / values[-1]).log2() / (len(values) - 1)
