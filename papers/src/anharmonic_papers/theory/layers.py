r"""States and derivatives of a sequence layer at every step, as the statements need them.

The loss of step n is :math:`E_n = |y_n - \bar y_n|^2 / 2` with y of the top layer. The partial
gradient :math:`\partial E_n^{(k)} / \partial\theta` counts the use of the weights at step k only.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from anharmonic import _checks
from anharmonic.nn import SequenceLayer, State
from anharmonic_papers.theory.integrate import derivatives


@contextmanager
def seeded(seed: int = 0) -> Iterator[None]:
    """Draw the random numbers of an example from a seed, and leave the generator as it was."""
    with torch.random.fork_rng(devices=()), torch.no_grad():
        torch.manual_seed(seed)
        yield


def set_weights(layer: SequenceLayer, **values: float | Tensor) -> None:
    """Set weights of the first layer; the names lack the ``_l0``."""
    with torch.no_grad():
        for name, value in values.items():
            layer.get_parameter(f"{name}_l0").copy_(torch.as_tensor(value, dtype=torch.float64))


def check_single(layer: SequenceLayer) -> None:
    """Refuse a layer with more than one layer or direction."""
    is_single, advice = layer.num_layers == 1 and not layer.bidirectional, "pass a single layer"
    _checks.require(is_single, "layer", layer, "one layer in one direction", advice)


def check_one_sequence(x: Tensor) -> None:
    """Refuse inputs that are not one sequence in a batch of one, time first."""
    is_one, advice = x.dim() == 3 and x.shape[1] == 1, "pass one sequence of the batch, x[:, :1]"
    _checks.require(is_one, "x", x, "one sequence, [T, 1, F]", advice)


def weights(layer: SequenceLayer, level: int | None = None) -> dict[str, Tensor]:
    """The weights of one layer of a stack, without gradient, by their names less the ``_l0``.

    Without a level the layer must be single. A layer without bias has a bias of zeros here.
    """
    if level is None:
        check_single(layer)
    end = f"_l{level or 0}"
    found = {
        name.removesuffix(end): value
        for name, value in layer.state_dict().items()
        if name.endswith(end)
    }
    found.setdefault("bias", found["weight_ih"].new_zeros(len(found["weight_ih"])))
    return found


def trajectory(
    layer: SequenceLayer, x: Tensor, state: tuple[Tensor, Tensor] | None = None
) -> State:
    """All states of a stack in one direction, the initial one first: y, z [T + 1, L, B, H]."""
    if state is None:
        zeros = x.new_zeros(layer.num_layers, x.shape[1], layer.hidden_size)
        state = State(zeros, zeros)
    ys, zs = [state[0].clone()], [state[1].clone()]
    with torch.no_grad():
        for x_t in x:
            _, state = layer.step(x_t, state)
            ys.append(state[0].clone())
            zs.append(state[1].clone())
    return State(torch.stack(ys), torch.stack(zs))


def states(layer: SequenceLayer, x: Tensor) -> tuple[Tensor, Tensor]:
    """The y and z of a single layer after every step, from rest, [T, B, H] each."""
    check_single(layer)
    y, z = trajectory(layer, x)
    return y[1:, 0], z[1:, 0]


def _gradients(off: Tensor, count: int, weights: dict[str, Any]) -> dict[str, Tensor]:
    """The gradients of |off|²/2, a mean over ``count`` steps."""
    found = torch.autograd.grad(
        0.5 * off.square().sum() / count,
        list(weights.values()),
        allow_unused=True,
        materialize_grads=True,
    )
    return dict(zip(weights, found, strict=True))


def total_gradient(layer: SequenceLayer, x: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """The gradient of the mean of E_n over all steps by each parameter; targets [T, 1, H]."""
    check_one_sequence(x)
    return _gradients(layer(x)[0] - targets, len(x), dict(layer.named_parameters()))


def last_gradient(layer: SequenceLayer, x: Tensor, target: Tensor) -> dict[str, Tensor]:
    """The gradient of the last step's loss E_n by each parameter; target [1, H]."""
    check_one_sequence(x)
    output, _ = layer(x, output="last")
    return _gradients(output - target, 1, dict(layer.named_parameters()))


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
    frozen = {n: p.detach() for n, p in layer.named_parameters()}
    used = {n: p.clone().requires_grad_() for n, p in frozen.items()}
    for weights, part in ((frozen, x[: step - 1]), (used, x[step - 1 : step]), (frozen, x[step:])):
        if len(part):
            _, state = functional_call(layer, weights, (part, state), {"output": "none"})
    assert isinstance(state, State)
    return _gradients(state.y[-1] - target, 1, used)


def jacobians(layer: SequenceLayer, x: Tensor) -> Tensor:
    """The Jacobian ∂X_n/∂X_{n-1} of every step, [T, 2LH, 2LH], X = [y; z] (all y, then all z)."""
    check_one_sequence(x)
    # The steps are independent given where each starts: they make one batch.
    starts = torch.stack(trajectory(layer, x))[:, :-1, :, 0].transpose(1, 2)  # [2, L, T, H]

    def sums(starts: Tensor) -> Tensor:
        _, after = layer(x.transpose(0, 1), State(*starts))
        return torch.stack(after).sum(2).flatten()

    found: Tensor = derivatives.jacobian(sums, starts)
    return found.permute(3, 0, 1, 2, 4).flatten(2)


def row_sum(matrices: Tensor) -> Tensor:
    """The largest row sum of absolute values, ‖·‖∞, of each matrix [..., H, H]."""
    return matrices.detach().abs().sum(-1).amax(-1)


def column_sum(matrices: Tensor) -> Tensor:
    """The largest column sum of absolute values, ‖·‖_1, of each matrix [..., H, H]."""
    return row_sum(matrices.mT)


def largest(gradients: dict[str, Tensor]) -> Tensor:
    """The largest entry of all gradients."""
    return torch.stack([gradient.abs().max() for gradient in gradients.values()]).max()


def passed_on(
    sources: Tensor,
    h: float | Tensor,
    kept: float,
    pull: float | Tensor,
    moved: Tensor | None = None,
) -> Tensor:
    """The a_n = a_{n-1} + h (b_n + r_n) of b_n = κ b_{n-1} + h (p a_{n-1} + s_n), from zero."""
    a, b, found = torch.zeros_like(sources[0]), torch.zeros_like(sources[0]), []
    for s, r in zip(sources, torch.zeros_like(sources) if moved is None else moved, strict=True):
        b = kept * b + h * (pull * a + s)
        a = a + h * (b + r)
        found.append(a)
    return torch.stack(found)


def step_numbers(x: Tensor) -> Tensor:
    """1 to T."""
    return torch.arange(1, len(x) + 1, dtype=x.dtype)


def small_inputs(x: Tensor) -> dict[str, bool]:
    """What statements on gradients assume of the inputs."""
    return {"|u| ≤ 1": bool(x.abs().max() <= 1)}


def orders_in_dt(layer: SequenceLayer, name: str, fraction: float, inputs: float) -> Tensor:
    """The orders in dt of the partial gradient by a weight, of y_{k-1} and of z_k, at t_n = 1.

    They are measured at k = 2 + fraction n, from rest, for equal inputs and targets -inputs.
    """
    check_single(layer)
    _checks.number("fraction", fraction, low=0.0, high=1.0, high_open=True)
    found = []
    for n in (200, 800):
        refined, step = copy.deepcopy(layer), 2 + int(fraction * n)
        refined.dt = 1 / n
        x = torch.full((n, 1, layer.input_size), inputs, dtype=torch.float64)
        target = x.new_full((1, layer.hidden_size), -inputs)
        path = trajectory(refined, x[:step])
        sizes = partial_gradient(refined, x, target, step)[name], path.y[-2], path.z[-1]
        found.append(torch.stack([values.abs().max() for values in sizes]))
    return (found[0] / found[1]).log2() / 2
