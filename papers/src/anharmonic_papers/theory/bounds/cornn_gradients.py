r"""What the papers prove about the size of coRNN's gradients (thesis, section 2.2; C 3.2).

E is the mean of E_n over all steps, Ȳ the largest entry of the targets; θ is any entry of W, 𝒲, V
and b. Where the papers' proof breaks, ours goes with column sums, for only one neuron is
touched by θ: :math:`\|\partial X_n / \partial X_{n-1}\|_1 \le G`, where

.. math::
    G = 1 + dt \max(1 + \|W\|_1, \|\mathcal{W}\|_1)

for the implicit scheme with ε = γ = 1, and :math:`G = \max(1 + dt (1 + dt)(\gamma + \|W\|_1),
(1 + dt)(|1 - dt\,\epsilon| + dt \|\mathcal{W}\|_1))` for the explicit one.

What the checks take, unless they say otherwise:

    layer: One layer, one direction, implicit scheme, ε = γ = 1, float64.
    x: One sequence.
    targets: The targets.
    r: The exponent of the assumption.

Shape: x [N, 1, F]; targets [N, 1, H]; measured and bound [].
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from anharmonic.nn import CoRNN
from anharmonic_papers.theory.bounds.cornn_energy import (
    explicit_assumptions,
    large,
    scalars,
    unit_assumptions,
)
from anharmonic_papers.theory.bounds.cornn_jacobian import condition
from anharmonic_papers.theory.gradients import column_sum, row_sum, total_gradient
from anharmonic_papers.theory.statements import Check, statement
from anharmonic_papers.theory.trajectories import check_single, weights

SOURCES = ("weight_hy", "weight_hz", "weight_ih", "bias")
"""The weights W, 𝒲, V and b by name."""


def growth(layer: CoRNN) -> float:
    """The G of the module's docstring."""
    (dt, gamma, epsilon), values = scalars(layer), weights(layer)
    W, Wz = float(column_sum(values["weight_hy"])), float(column_sum(values["weight_hz"]))
    if layer.scheme == "implicit":
        return 1 + dt * max(1 + W, Wz)
    return max(1 + dt * (1 + dt) * (gamma + W), (1 + dt) * (abs(1 - dt * epsilon) + dt * Wz))


def largest_gradient(layer: CoRNN, x: Tensor, targets: Tensor) -> Tensor:
    """The largest entry of the gradient of E with respect to W, 𝒲, V and b."""
    check_single(layer)
    found = total_gradient(layer, x, targets)
    return torch.stack([found[f"{name}_l0"].abs().max() for name in SOURCES]).max()


def target_size(layer: CoRNN, targets: Tensor) -> float:
    """The m + Ȳ sqrt(m) of the papers."""
    m = layer.hidden_size
    return m + float(targets.abs().max()) * math.sqrt(m)


def short(layer: CoRNN, x: Tensor) -> dict[str, bool]:
    """What T 2.2.6 assumes of the inputs."""
    return {
        "t_N ≤ 1": len(x) * scalars(layer)[0] <= 1 + 1e-12,
        "|u| ≤ 1": bool(x.abs().max() <= 1),
    }


def unstable_neuron(scheme: str) -> tuple[CoRNN, Tensor]:
    """The counterexample at r = 1/2: one neuron at rest that W = 99 drives away, dt = 1e-4."""
    layer = CoRNN(1, 1, dt=1e-4, scheme=scheme, dtype=torch.float64)
    with torch.no_grad():
        for name, weight in layer.named_parameters():
            weight.fill_(99.0 if name == "weight_hy_l0" else 0.0)
    return layer, torch.zeros(10_000, 1, 1, dtype=torch.float64)


def _short_run(scheme: str) -> tuple[CoRNN, Tensor, Tensor]:
    layer, *inputs = large(scheme, 0.02)
    x = inputs[0][:50].clamp(-1, 1)
    return layer, x, torch.ones(50, 1, 4, dtype=x.dtype)


@statement(
    "cornn-gradient-printed",
    number="T 2.2.6 = C 3.2",
    chapter="coRNN",
    claim="If η ≤ dt^r, 1/2 ≤ r ≤ 1, then |∂E/∂θ| ≤ (3/2)(m + Ȳ sqrt(m)).",
    state="false",
    remark=(
        "Its proof puts 1 + 3(n-k) dt^r for (1 + 3 dt^r)^(n-k). Counterexample at r = 1/2: m = 1, "
        "dt = 1e-4, N = 1e4, W = 99, target 10: 69.6 against 16.5. The paper has C m δ with a "
        "constant C it does not give."
    ),
    example=lambda: gradient_printed(
        *(network := unstable_neuron("implicit")), torch.full_like(network[1], 10.0), r=0.5
    ),
)
def gradient_printed(layer: CoRNN, x: Tensor, targets: Tensor, *, r: float) -> Check:
    """The largest entry of the gradient against the printed bound."""
    return Check(
        measured=largest_gradient(layer, x, targets),
        bound=torch.tensor(1.5 * target_size(layer, targets)),
        assumptions=unit_assumptions(layer) | condition(layer, r) | short(layer, x),
        quantity="largest |∂E/∂θ|",
    )


@statement(
    "cornn-gradient",
    number="T 2.2.6 = C 3.2",
    chapter="coRNN",
    claim=(
        "|∂E/∂θ| ≤ (m + Ȳ sqrt(m)) t_N exp(t_N max(1 + ‖W‖_1, ‖𝒲‖_1)) for t_N ≤ 1, whatever the "
        "weights."
    ),
    state="corrected",
    remark="Ours. The tuned models have t_N between 33 and 80, where it says nothing.",
    example=lambda: gradient(*_short_run("implicit")),
)
def gradient(layer: CoRNN, x: Tensor, targets: Tensor) -> Check:
    """The largest entry of the gradient against a bound that needs no r."""
    return Check(
        measured=largest_gradient(layer, x, targets),
        bound=_safe(layer, x, targets),
        assumptions=unit_assumptions(layer) | short(layer, x),
        quantity="largest |∂E/∂θ|",
    )


def _safe(layer: CoRNN, x: Tensor, targets: Tensor) -> Tensor:
    """A bound of the gradient by column sums, for both schemes."""
    dt, gamma, _ = scalars(layer)
    span, m = len(x) * dt, layer.hidden_size
    G = torch.tensor(growth(layer), dtype=torch.float64)
    if layer.scheme == "implicit":  # t_N ≤ 1
        return target_size(layer, targets) * span * (len(x) * (G - 1)).exp()
    y = math.sqrt(m * span / gamma)
    source = max(1.0, y, math.sqrt(m * span))
    return (y + float(targets.abs().max())) * source * (1 + dt) * span * G.clamp(min=1) ** len(x)


@statement(
    "cornn-gradient-explicit-printed",
    number="T 2.2.10",
    chapter="coRNN",
    claim="If max(dt(γ + ‖W‖∞), dt ‖𝒲‖∞) ≤ C̃ dt^r, then |∂E/∂θ| ≤ 3 C̃ (m + Ȳ sqrt(m))/(2γ).",
    state="false",
    remark=(
        "Read from a damaged line, without proof there; C̃ is taken as small as it may be, and t_N "
        "≤ 1 as in T 2.2.6. The counterexample is that of T 2.2.6."
    ),
    example=lambda: gradient_explicit_printed(
        *(network := unstable_neuron("explicit")), torch.full_like(network[1], 10.0), r=0.5
    ),
)
def gradient_explicit_printed(layer: CoRNN, x: Tensor, targets: Tensor, *, r: float) -> Check:
    """The largest entry of the gradient of the explicit scheme against the printed bound.

    Args:
        layer: One layer, one direction, explicit scheme, float64.
    """
    (dt, gamma, epsilon), values = scalars(layer), weights(layer)
    W, Wz = float(row_sum(values["weight_hy"])), float(row_sum(values["weight_hz"]))
    constant = max(dt * (gamma + W), dt * Wz) / dt**r
    return Check(
        measured=largest_gradient(layer, x, targets),
        bound=torch.tensor(1.5 * constant * target_size(layer, targets) / gamma),
        assumptions={
            "explicit scheme": layer.scheme == "explicit",
            "ε > 1/2": epsilon > 0.5,
            "1/2 ≤ r ≤ 1": 0.5 <= r <= 1,
        }
        | short(layer, x),
        quantity="largest |∂E/∂θ|",
    )


@statement(
    "cornn-gradient-explicit",
    number="T 2.2.10",
    chapter="coRNN",
    claim=(
        "|∂E/∂θ| ≤ (sqrt(m t_N/γ) + Ȳ) max(1, sqrt(m t_N/γ), sqrt(m t_N)) (1 + dt) t_N G^N, G the "
        "growth of column sums in a step."
    ),
    state="corrected",
    remark="Ours, for any t_N.",
    example=lambda: gradient_explicit(*_short_run("explicit")),
)
def gradient_explicit(layer: CoRNN, x: Tensor, targets: Tensor) -> Check:
    """The largest entry of the gradient of the explicit scheme against a safe bound.

    Args:
        layer: One layer, one direction, explicit scheme, float64.
    """
    return Check(
        measured=largest_gradient(layer, x, targets),
        bound=_safe(layer, x, targets),
        assumptions=explicit_assumptions(layer) | {"|u| ≤ 1": bool(x.abs().max() <= 1)},
        quantity="largest |∂E/∂θ|",
    )
