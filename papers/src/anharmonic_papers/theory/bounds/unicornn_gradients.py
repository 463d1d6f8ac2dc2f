r"""What the papers prove about the size of UnICORNN's gradients (T 3.2.2 = U 3.1 = U C.2).

E is the mean of E_n over all N steps, T = N dt, Ȳ the largest entry of the targets, θ any entry of
w, V, b and c. With β = max(1 + 2α, 4α²), g = max(2, ‖w‖∞ + α), γ = g + g²/2, V̄ the product of
max(1, ‖V‖∞) over the layers and :math:`F = \sqrt{(2/\alpha)(1 + 2\beta T)}`,

.. math::
    |\partial E / \partial\theta| \le \frac{1 - dt^L}{1 - dt}\, T (1 + 2\gamma T)\,
    \bar V (\bar Y + F)\, \Delta, \quad
    \Delta = 2 + \sqrt{2 (1 + 2\beta T)} + (2 + \alpha) F.

For one layer, where a weight touches its own neuron only, ours goes with the scheme itself. With
the bounds Y_n and Z_n of ``unicornn-states`` and h' = 1 - σ̂(c), from zero,

.. math::
    b_n &= b_{n-1} + h\,[(|w| + \alpha) a_{n-1} + s_n], \quad
    a_n = a_{n-1} + h\,(b_n + r_n)

bound |∂z_n/∂θ| and |∂y_n/∂θ|: :math:`s_n = \max(1, Y_{n-1})` and r_n = 0 for w, V and b,
:math:`s_n = h' (1 + \alpha Y_{n-1})` and :math:`r_n = h' Z_n` for c.

What the checks take, unless they say otherwise:

    layer: One layer, one direction, float64.
    x: One sequence.
    targets: The targets.

Shape: x [N, 1, F]; targets [N, 1, H]; measured and bound [].
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from anharmonic.nn import UnICORNN
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.bounds.unicornn_energy import largest_step, stable, state_bounds
from anharmonic_papers.theory.bounds.unicornn_structure import large, step_sizes
from anharmonic_papers.theory.gradients import row_sum, total_gradient
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import check_single, weights


def _check(layer: UnICORNN, x: Tensor, targets: Tensor, **more: bool) -> Check:
    alpha, dt, L = layer.frequency, largest_step(layer), layer.num_layers
    span = len(x) * dt
    room, gamma = _beta(alpha) * span, _gamma(layer)
    F = math.sqrt(2 / alpha * (1 + 2 * room)) if alpha > 0 else math.inf
    delta = 2 + math.sqrt(2 * (1 + 2 * room)) + (2 + alpha) * F
    size = math.prod(max(1.0, float(row_sum(weights(layer, k)["weight_ih"]))) for k in range(L))
    layers = sum(dt**k for k in range(L))  # (1 - dt^L)/(1 - dt)
    reach = float(targets.abs().max()) + F
    found = total_gradient(layer, x, targets)
    return Check(
        measured=torch.stack([g.abs().max() for g in found.values()]).max(),
        bound=torch.tensor(layers * span * (1 + 2 * gamma * span) * size * reach * delta),
        assumptions={"α > 0": alpha > 0, "|u| ≤ 1": bool(x.abs().max() <= 1), **more},
        quantity="largest |∂E/∂θ|",
    )


def _beta(alpha: float) -> float:
    return max(1 + 2 * alpha, 4 * alpha**2)


def _gamma(layer: UnICORNN) -> float:
    top = weights(layer, layer.num_layers - 1)["weight_hh"]
    g = max(2.0, float(top.abs().max()) + layer.frequency)
    return g + g * g / 2


def _passed_on(h: Tensor, pull: Tensor, sources: Tensor, moved: Tensor) -> Tensor:
    """The a_n of the module's docstring, [N, H], from s_n and r_n [N, H]."""
    a, b, found = torch.zeros_like(h), torch.zeros_like(h), []
    for s, r in zip(sources, moved, strict=True):
        b = b + h * (pull * a + s)
        a = a + h * (b + r)
        found.append(a)
    return torch.stack(found)


def _own_bound(layer: UnICORNN, x: Tensor, targets: Tensor) -> Tensor:
    """The largest of all neurons and of both kinds of weights."""
    alpha, values, h = layer.frequency, weights(layer), step_sizes(layer)
    slow = 1 - torch.sigmoid(values["timescale"])
    y, z = state_bounds(layer, len(x))
    reach = y[1:] + targets.abs().max()
    kinds = (y[:-1].clamp(min=1.0), 0 * z[1:]), (slow * (1 + alpha * y[:-1]), slow * z[1:])
    pull = values["weight_hh"].abs() + alpha
    passed = torch.stack([_passed_on(h, pull, *kind) for kind in kinds])
    return (reach * passed).mean(1).max()


def _expansions(layer: UnICORNN, x: Tensor) -> dict[str, bool]:
    """Where (1 + a dt)^n ≤ 1 + 2 a t_n holds for the two rates of the proof."""
    span = len(x) * largest_step(layer)
    return {"max(γ, β) T ≤ 1.256": max(_gamma(layer), _beta(layer.frequency)) * span <= 1.256}


def _two_wells(steps: int) -> tuple[UnICORNN, Tensor, Tensor]:
    """A neuron at rest between two wells, w = -9, that its target pulls away from there."""
    layer = UnICORNN(1, 1, dt=1e-3, frequency=1.0, dtype=torch.float64)
    values = {"weight_ih": 0.0, "weight_hh": -9.0, "bias": 0.0, "timescale": 40.0}
    with torch.no_grad():
        for name, value in values.items():
            layer.get_parameter(f"{name}_l0").fill_(value)
    x = torch.zeros(steps, 1, 1, dtype=torch.float64)
    return layer, x, torch.full_like(x, 1000.0)


@statement(
    "unicornn-gradient-printed",
    number="T 3.2.2 = U 3.1 = U C.2",
    chapter="UnICORNN",
    claim=(
        "|∂E/∂θ| ≤ (1 - dt^L)/(1 - dt) T (1 + 2γT) V̄ (Ȳ + F) Δ, so gradients grow like T³ at most."
    ),
    state="false",
    remark=(
        "The expansion (1 + γ dt)^n ≤ 1 + 2γ t_n fails for long times. Counterexample: one neuron "
        "at rest with w = -9, α = 1, T = 7, whose derivatives grow exponentially. Δ is that of U's "
        "main text; its supplement, (15), lacks the factor 2 under the first root."
    ),
    example=lambda: gradient_printed(*_two_wells(7000)),
)
def gradient_printed(layer: UnICORNN, x: Tensor, targets: Tensor) -> Check:
    """The largest entry of the gradient of one layer against the printed bound."""
    check_single(layer)
    return _check(layer, x, targets)


@statement(
    "unicornn-gradient",
    number="T 3.2.2 = U 3.1 = U C.2",
    chapter="UnICORNN",
    claim=(
        "For one layer, from rest and |u| ≤ 1, |∂E/∂θ| is for w, V and b at most the mean of (Y_n "
        "+ Ȳ) a_n with Y_n = n h/sqrt(α (1 - h sqrt(α)/2)), a_n = a_{n-1} + h b_n, b_n = b_{n-1} + "
        "h [(|w| + α) a_{n-1} + max(1, Y_{n-1})]; likewise for c."
    ),
    state="corrected",
    remark=(
        "Ours, for all times: the scheme itself in place of an expansion, and the state bound that "
        "holds. It grows exponentially with T sqrt(|w| + α), as the gradient at the counterexample."
    ),
    example=lambda: gradient(*_two_wells(1500)),
)
def gradient(layer: UnICORNN, x: Tensor, targets: Tensor) -> Check:
    """The largest entry of the gradient of one layer against our bound."""
    check_single(layer)
    found = total_gradient(layer, x, targets)
    return Check(
        measured=torch.stack([g.abs().max() for g in found.values()]).max(),
        bound=_own_bound(layer, x, targets),
        assumptions=stable(layer) | {"|u| ≤ 1": bool(x.abs().max() <= 1)},
        quantity="largest |∂E/∂θ|",
    )


def _short_run() -> tuple[UnICORNN, Tensor, Tensor]:
    layer, x = large(3, dt=0.002)
    return layer, x.clamp(-1, 1), torch.ones(60, 1, 3, dtype=x.dtype)


@statement(
    "unicornn-gradient-deep",
    number="T 3.2.2 = U 3.1 = U C.2",
    chapter="UnICORNN",
    claim="For several layers and max(γ, β) T ≤ 1.256 the printed bound holds.",
    state="open",
    remark=(
        "Its proof follows one path through the grid of times and layers, where the derivative is "
        "the sum over all monotone ones. Not proved; no violation was found."
    ),
    example=lambda: gradient_deep(*_short_run()),
)
def gradient_deep(layer: UnICORNN, x: Tensor, targets: Tensor) -> Check:
    """The largest entry of the gradient of a stack against the bound, for short times.

    Args:
        layer: A stack in one direction, float64.
    """
    return _check(layer, x, targets, **_expansions(layer, x))
