r"""What the papers prove about UnICORNN's long-term gradients (T 3.2.3 = U 3.2 = U C.3).

The partial gradient of E_n counts the use of w at step k only. Its source is
:math:`\partial^+ z_k / \partial w_p = -h_p \tanh'(A_{k-1}^p)\, y_{k-1}^p` with h = dt σ̂(c).

What the checks take, unless they say otherwise:

    layer: One layer, one direction, float64.
    x: One sequence; its last step is n.
    target: The target of the last step.
    step: k, counted from 1, at most n.
    state: The initial state; zeros if None.

Shape: x [n, 1, F]; target [1, H]; state [1, 1, H] each; measured and bound [H].
"""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic.nn import UnICORNN
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.bounds.unicornn_energy import largest_step
from anharmonic_papers.theory.bounds.unicornn_structure import step_sizes
from anharmonic_papers.theory.gradients import partial_gradient
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import check_single, trajectory, weights

Start = tuple[Tensor, Tensor]


def slopes(layer: UnICORNN, x: Tensor, path: Start, level: int) -> Tensor:
    """The tanh'(A) of one layer of a plain stack at every step, [T, H]."""
    values = weights(layer, level)
    below = x[:, 0] if level == 0 else path[0][1:, level - 1, 0]
    force = below @ values["weight_ih"].T + values["bias"]
    return 1 - torch.tanh(values["weight_hh"] * path[0][:-1, level, 0] + force).square()


def measured_partial(
    layer: UnICORNN, x: Tensor, target: Tensor, step: int, state: Start | None
) -> Tensor:
    """The partial gradient with respect to the first layer's w, [H]."""
    return partial_gradient(layer, x, target, step, state)["weight_hh_l0"]


def source(layer: UnICORNN, x: Tensor, path: Start, step: int) -> Tensor:
    """The ∂⁺z_k/∂w of the first layer, [H]."""
    return -step_sizes(layer) * slopes(layer, x, path, 0)[step - 1] * path[0][step - 1, 0, 0]


def ready(layers: int, span: float, steps: int) -> tuple[UnICORNN, Tensor, Tensor, int, Start]:
    """An example: three neurons a layer, α = 1, from random positions, k = 2, t_n = span."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        layer = UnICORNN(2, 3, layers, dt=span / steps, dtype=torch.float64)
        with torch.no_grad():
            for level in range(1, layers):
                layer.get_parameter(f"weight_ih_l{level}").mul_(3.0)
        y = torch.randn(layers, 1, 3, dtype=torch.float64)
        x = torch.zeros(steps, 1, 2, dtype=torch.float64)
    return layer, x, torch.ones(1, 3, dtype=x.dtype), 2, (y, torch.zeros_like(y))


@statement(
    "unicornn-long-term-printed",
    number="T 3.2.3 = U 3.2 = U C.3",
    chapter="UnICORNN",
    claim=(
        "∂E_n^(k)/∂w_p = -dt σ̂(c_p)² t_n tanh'(A_{k-1}^p) y_{k-1}^p (y_n^p - ȳ_n^p) + O(dt²), one "
        "layer."
    ),
    state="false",
    remark=(
        "It takes Π(I + dt C_j) for I + dt ΣC_j, which needs small t_n. The remainder is held "
        "against 100 dt of the formula. Exact over formula, at w = 0.9, α = 2, k = 2, dt = 1e-3: "
        "0.98, 0.99, 0.88, 0.22 and 0.09 at t_n = 0.05, 0.2, 1, 3 and 10."
    ),
    example=lambda: long_term_printed(*ready(1, 10.0, 2000)),
)
def long_term_printed(
    layer: UnICORNN, x: Tensor, target: Tensor, step: int, state: Start | None = None
) -> Check:
    """The partial gradient with respect to w against the printed formula."""
    check_single(layer)
    measured, path = measured_partial(layer, x, target, step, state), trajectory(layer, x, state)
    error = path.y[-1, 0, 0] - target[0]
    return Check(
        measured=measured,
        bound=len(x) * step_sizes(layer) * source(layer, x, path, step) * error,
        relation="==",
        tolerance=100 * largest_step(layer),
        assumptions={"k << n (20 k ≤ n)": 20 * step <= len(x)},
        quantity="∂E_n^(k)/∂w",
    )


@statement(
    "unicornn-long-term",
    number="T 3.2.3 = U 3.2 = U C.3",
    chapter="UnICORNN",
    claim=(
        "∂E_n^(k)/∂w_p = P_p ∂⁺z_k/∂w_p (y_n^p - ȳ_n^p), P_p the entry (y, z) of the product of "
        "the Jacobians of steps k to n of neuron p, one layer."
    ),
    state="corrected",
    remark=(
        "Exact, up to the rounding of 1 - tanh². P is of unit-determinant 2 × 2 matrices, near "
        "h sin(ω τ)/ω: bounded in t_n where the neuron oscillates, so that the gradient neither "
        "grows with t_n nor dies away with n - k."
    ),
    example=lambda: long_term(*ready(1, 10.0, 500)),
)
def long_term(
    layer: UnICORNN, x: Tensor, target: Tensor, step: int, state: Start | None = None
) -> Check:
    """The partial gradient with respect to w against the exact formula."""
    check_single(layer)
    measured, path = measured_partial(layer, x, target, step, state), trajectory(layer, x, state)
    h, w = step_sizes(layer), weights(layer)["weight_hh"]
    pulls = slopes(layer, x, path, 0) * w + layer.frequency
    y, z = h, torch.ones_like(h)  # what a unit of z_k moves, in y_k and z_k
    for pull in pulls[step:]:
        z = z - h * pull * y
        y = y + h * z
    return Check(
        measured=measured,
        bound=y * source(layer, x, path, step) * (path.y[-1, 0, 0] - target[0]),
        relation="==",
        quantity="∂E_n^(k)/∂w",
    )
