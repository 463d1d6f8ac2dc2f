"""What the papers prove about the size of coRNN's states (thesis, section 2.2).

All statements start from rest and are independent of the inputs. Where time is continuous, inputs
are constant over every interval of length dt, and the equation is solved by Runge-Kutta steps.

What the checks take, unless they say otherwise:

    x: The inputs.

Shape: x [T, B, F]; measured and bound [T], the largest over the batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic.nn import CoRNN
from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.integrate import rk4
from anharmonic_papers.theory.statements import Check
from anharmonic_papers.theory.trajectories import check_single, states, weights


def scalars(layer: CoRNN) -> tuple[float, float, float]:
    """The dt, γ and ε in use, as numbers."""
    with torch.no_grad():
        dt, gamma, epsilon = (float(value) for value in layer.scalars())
    return dt, gamma, epsilon


def drive(layer: CoRNN, x: Tensor) -> Tensor:
    """V u + b of one layer, x [T, B, F] -> [T, B, H]."""
    values = weights(layer)
    return x @ values["weight_ih"].T + values["bias"]


def flow(layer: CoRNN, x: Tensor, substeps: int) -> tuple[Tensor, Tensor]:
    """The y and z of (2.2) from rest at the times n dt, x [T, B, F] -> [T, B, H] each."""
    check_single(layer)
    dt, gamma, epsilon = scalars(layer)
    W, Wz = weights(layer)["weight_hy"], weights(layer)["weight_hz"]
    state, found = x.new_zeros(2, x.shape[1], layer.hidden_size), []
    step = x.new_tensor([0.0, dt])
    for force in drive(layer, x):

        def field(state: Tensor, _: Tensor, force: Tensor = force) -> Tensor:
            y, z = state
            return torch.stack(
                [z, torch.tanh(y @ W.T + z @ Wz.T + force) - gamma * y - epsilon * z]
            )

        state = rk4(field, state, step, substeps)[-1]
        found.append(state)
    y, z = torch.stack(found, dim=1)
    return y, z


def large(
    scheme: str, dt: float, gamma: float = 1.0, epsilon: float = 1.0, inputs: int = 1
) -> tuple[CoRNN, *tuple[Tensor, ...]]:
    """An example: four neurons with three times their usual weights, and large inputs."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        layer = CoRNN(
            3, 4, dt=dt, frequency=gamma, damping=epsilon, scheme=scheme, dtype=torch.float64
        )
        with torch.no_grad():
            for weight in layer.parameters():
                weight.mul_(3.0)
        return layer, *(3.0 * torch.randn(inputs, 100, 1, 3, dtype=torch.float64))


def pushed(
    scheme: str, dt: float, gamma: float = 1.0, epsilon: float = 1.0, steps: int = 60
) -> tuple[CoRNN, Tensor]:
    """An example near the worst case: an input that saturates tanh pushes three neurons one way."""
    layer, *_ = large(scheme, dt, gamma, epsilon)
    x = torch.full((steps, 1, 3), 20.0, dtype=torch.float64)
    with torch.no_grad():
        layer.get_parameter("weight_ih_l0").fill_(1.0)
    return layer, x


def times(x: Tensor, dt: float) -> Tensor:
    """The times n dt of the steps, from 1 on."""
    return dt * torch.arange(1, len(x) + 1, dtype=x.dtype)


def unit_assumptions(layer: CoRNN) -> dict[str, bool]:
    """What T 2.2.4 to 2.2.8 assume of the layer."""
    dt, gamma, epsilon = scalars(layer)
    return {
        "implicit scheme": layer.scheme == "implicit",
        "ε = γ = 1": gamma == 1 and epsilon == 1,
        "dt ≤ 1": dt <= 1,
    }


def explicit_assumptions(layer: CoRNN) -> dict[str, bool]:
    """What T 2.2.9 to 2.2.11 assume of the layer, (2.47)."""
    dt, gamma, epsilon = scalars(layer)
    return {
        "explicit scheme": layer.scheme == "explicit",
        "ε > 1/2": epsilon > 0.5,
        "dt < (2ε-1)/(γ+ε²)": dt < (2 * epsilon - 1) / (gamma + epsilon**2),
    }


@statement(
    "cornn-energy-continuous",
    number="T 2.2.1",
    chapter="coRNN",
    claim="From rest, y·y + z·z/γ ≤ m t/γ for all times, whatever the inputs.",
    state="holds",
    example=lambda: energy_continuous(*pushed("explicit", 0.1, 0.3, 0.5)),
)
def energy_continuous(layer: CoRNN, x: Tensor, substeps: int = 4) -> Check:
    """The energy of (2.2) against its bound.

    Args:
        layer: One layer, one direction, float64.
        x: The inputs, constant over each interval of length dt.
        substeps: Runge-Kutta steps in an interval.
    """
    dt, gamma, epsilon = scalars(layer)
    y, z = flow(layer, x, substeps)
    t = times(x, dt)
    return Check(
        measured=(y.square().sum(-1) + z.square().sum(-1) / gamma).amax(1),
        bound=layer.hidden_size * t / gamma,
        assumptions={"ε ≥ 1/2": epsilon >= 0.5},
        places=t,
        axis="time t",
        quantity="y·y + z·z/γ",
    )


@statement(
    "cornn-energy-implicit",
    number="T 2.2.4 = C 3.1",
    chapter="coRNN",
    claim="From rest, y_n·y_n + z_n·z_n ≤ m t_n, whatever the inputs.",
    state="holds",
    remark="The papers go on to ≤ m, which needs t_n ≤ 1.",
    example=lambda: energy_implicit(*pushed("implicit", 1.0)),
)
def energy_implicit(layer: CoRNN, x: Tensor) -> Check:
    """The energy of the implicit scheme against its bound, at every step.

    Args:
        layer: One layer, one direction, implicit scheme, ε = γ = 1, float64.
    """
    y, z = states(layer, x)
    return Check(
        measured=(y.square().sum(-1) + z.square().sum(-1)).amax(1),
        bound=layer.hidden_size * times(x, scalars(layer)[0]),
        assumptions=unit_assumptions(layer),
        quantity="y·y + z·z",
    )


@statement(
    "cornn-energy-implicit-sharp",
    number="T 2.2.4 = C 3.1",
    chapter="coRNN",
    claim="From rest, y_n·y_n + z_n·z_n/γ ≤ m t_n/(γ (2ε - γ dt)), whatever the inputs.",
    state="corrected",
    remark="Sharper than the printed bound, and for any ε and γ; (2.50) follows from it.",
    example=lambda: energy_implicit_sharp(*pushed("implicit", 0.2, 1.0, 0.8)),
)
def energy_implicit_sharp(layer: CoRNN, x: Tensor) -> Check:
    """The energy of the implicit scheme against a sharper bound, for any ε and γ.

    Args:
        layer: One layer, one direction, implicit scheme, float64.
    """
    dt, gamma, epsilon = scalars(layer)
    y, z = states(layer, x)
    return Check(
        measured=(y.square().sum(-1) + z.square().sum(-1) / gamma).amax(1),
        bound=layer.hidden_size * times(x, dt) / (gamma * (2 * epsilon - gamma * dt)),
        assumptions={
            "implicit scheme": layer.scheme == "implicit",
            "γ dt < 2ε": gamma * dt < 2 * epsilon,
        },
        quantity="y·y + z·z/γ",
    )


@statement(
    "cornn-energy-explicit",
    number="T 2.2.9",
    chapter="coRNN",
    claim="From rest, y_n·y_n + z_n·z_n/γ ≤ m t_n/γ, whatever the inputs.",
    state="holds",
    remark="The conditions on ε and dt are sufficient, not necessary.",
    example=lambda: energy_explicit(*pushed("explicit", 0.2, 0.1, 0.55)),
)
def energy_explicit(layer: CoRNN, x: Tensor) -> Check:
    """The energy of the explicit scheme against its bound, at every step.

    Args:
        layer: One layer, one direction, explicit scheme, float64.
    """
    dt, gamma, _ = scalars(layer)
    y, z = states(layer, x)
    return Check(
        measured=(y.square().sum(-1) + z.square().sum(-1) / gamma).amax(1),
        bound=layer.hidden_size * times(x, dt) / gamma,
        assumptions=explicit_assumptions(layer),
        quantity="y·y + z·z/γ",
    )
