"""What the papers prove about how far two inputs drive coRNN apart (thesis, section 2.2).

As in ``cornn_energy``, all statements start from rest.

What the checks take, unless they say otherwise:

    layer: One layer, one direction, implicit scheme, ε = γ = 1, float64.
    x: The inputs.
    other: Other inputs.

Shape: x, other [T, B, F]; measured and bound [T], the largest over the batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic.nn import CoRNN
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.bounds.cornn_energy import (
    flow,
    pushed,
    scalars,
    times,
    unit_assumptions,
)
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import states


def _distance(layer: CoRNN, x: Tensor, other: Tensor) -> Tensor:
    """|y - ȳ|² + |z - z̄|² of two inputs at every step, the largest over the batch."""
    (y, z), (y_other, z_other) = states(layer, x), states(layer, other)
    return ((y - y_other).square().sum(-1) + (z - z_other).square().sum(-1)).amax(1)


def _opposite(
    scheme: str, dt: float, gamma: float = 1.0, epsilon: float = 1.0
) -> tuple[CoRNN, Tensor, Tensor]:
    """An example near the worst case: the same neurons pushed one way and the other."""
    layer, x = pushed(scheme, dt, gamma, epsilon)
    return layer, x, -x


@statement(
    "cornn-sensitivity-continuous",
    number="T 2.2.2",
    chapter="coRNN",
    claim="Two inputs: |y - ȳ|² ≤ 4 m t/γ and |z - z̄|² ≤ 4 m t, so they part linearly at most.",
    state="holds",
    example=lambda: sensitivity_continuous(*_opposite("explicit", 0.1, 0.01, 0.5)),
)
def sensitivity_continuous(layer: CoRNN, x: Tensor, other: Tensor, substeps: int = 4) -> Check:
    """How far two solutions of (2.2) part, against the bound.

    Args:
        layer: One layer, one direction, float64.
        x: The inputs, constant over each interval of length dt.
        substeps: Runge-Kutta steps in an interval.
    """
    dt, gamma, epsilon = scalars(layer)
    (y, z), (y_other, z_other) = flow(layer, x, substeps), flow(layer, other, substeps)
    t = times(x, dt)
    apart = torch.maximum(gamma * (y - y_other).square().sum(-1), (z - z_other).square().sum(-1))
    return Check(
        measured=apart.amax(1),
        bound=4 * layer.hidden_size * t,
        assumptions={"ε ≥ 1/2": epsilon >= 0.5},
        places=t,
        axis="time t",
        quantity="larger of γ|y - ȳ|² and |z - z̄|²",
    )


@statement(
    "cornn-sensitivity-implicit",
    number="T 2.2.5",
    chapter="coRNN",
    claim="Two inputs: |y_n - ȳ_n|² + |z_n - z̄_n|² ≤ 4 m t_n.",
    state="holds",
    example=lambda: sensitivity_implicit(*_opposite("implicit", 1.0)),
)
def sensitivity_implicit(layer: CoRNN, x: Tensor, other: Tensor) -> Check:
    """How far two runs of the implicit scheme part, against the bound of the thesis."""
    bound = 4 * layer.hidden_size * times(x, scalars(layer)[0])
    return Check(
        measured=_distance(layer, x, other),
        bound=bound,
        assumptions=unit_assumptions(layer),
        quantity="|y - ȳ|² + |z - z̄|²",
    )


def _opposite_forces() -> Check:
    """One free neuron with dt = 1, pushed up twice and down twice."""
    layer = CoRNN(1, 1, dt=1.0, scheme="implicit", dtype=torch.float64)
    with torch.no_grad():
        for name, weight in layer.named_parameters():
            weight.fill_(1.0 if name == "weight_ih_l0" else 0.0)
    x = torch.full((2, 1, 1), 20.0, dtype=torch.float64)
    return sensitivity_paper(layer, x, -x)


@statement(
    "cornn-sensitivity-implicit-paper",
    number="C C.1",
    chapter="coRNN",
    claim="Two inputs: |y_n - ȳ_n|² + |z_n - z̄_n|² ≤ 2 m t_n.",
    state="false",
    remark=(
        "Counterexample: one neuron, dt = 1, forces +1, +1 against -1, -1 give 5 after two steps, "
        "the bound is 4. For small dt we found no violation."
    ),
    example=_opposite_forces,
)
def sensitivity_paper(layer: CoRNN, x: Tensor, other: Tensor) -> Check:
    """How far two runs of the implicit scheme part, against the bound of the paper."""
    return Check(
        measured=_distance(layer, x, other),
        bound=2 * layer.hidden_size * times(x, scalars(layer)[0]),
        assumptions=unit_assumptions(layer),
        quantity="|y - ȳ|² + |z - z̄|²",
    )


@statement(
    "cornn-sensitivity-implicit-sharp",
    number="T 2.2.5 = C C.1",
    chapter="coRNN",
    claim="Two inputs: |y_n - ȳ_n|² + |z_n - z̄_n|² ≤ 4 m t_n/(2 - dt).",
    state="corrected",
    remark="The paper's 2 m t_n is right up to the factor 1/(1 - dt/2).",
    example=lambda: sensitivity_implicit_sharp(*_opposite("implicit", 0.2)),
)
def sensitivity_implicit_sharp(layer: CoRNN, x: Tensor, other: Tensor) -> Check:
    """How far two runs of the implicit scheme part, against the sharper bound."""
    dt = scalars(layer)[0]
    return Check(
        measured=_distance(layer, x, other),
        bound=4 * layer.hidden_size * times(x, dt) / (2 - dt),
        assumptions=unit_assumptions(layer),
        quantity="|y - ȳ|² + |z - z̄|²",
    )
