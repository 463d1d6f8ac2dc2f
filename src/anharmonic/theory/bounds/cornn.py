"""What the documents prove about coRNN (thesis, chapter 2), E_n = |y_n - ȳ_n|²/2 at step n."""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic.models.sequence.cornn import CoRNN
from anharmonic.theory.statements import Check, statement
from anharmonic.theory.trajectories import states


def _explicit_example() -> Check:
    """Four neurons, large weights and inputs, dt just below the limit."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        layer = CoRNN(3, 4, dt=0.19, frequency=2.0, damping=1.2, dtype=torch.float64)
        with torch.no_grad():
            for weight in layer.parameters():
                weight.mul_(3.0)
        return energy_explicit(layer, 3.0 * torch.randn(200, 1, 3, dtype=torch.float64))


@statement(
    "cornn-energy-explicit",
    number="T 2.2.9",
    chapter="coRNN",
    claim="From rest, y_n·y_n + z_n·z_n/γ ≤ m t_n/γ, whatever the inputs.",
    state="holds",
    example=_explicit_example,
)
def energy_explicit(layer: CoRNN, x: Tensor) -> Check:
    """The energy of the explicit scheme against its bound, at every step.

    Args:
        layer: One layer, one direction, explicit scheme, float64.
        x: The inputs.

    Shape:
        x [T, B, F]; measured and bound [T], the largest over the batch.

    Raises:
        ValueError: If the layer has more than one layer or direction.
    """
    dt, gamma, epsilon = layer.dt, layer.frequency, layer.damping
    y, z = states(layer, x)
    energy = (y.square().sum(-1) + z.square().sum(-1) / gamma).amax(1)
    n = torch.arange(1, len(x) + 1, dtype=x.dtype)
    return Check(
        measured=energy,
        bound=layer.hidden_size * n * dt / gamma,
        assumptions={
            "explicit scheme": layer.scheme == "explicit",
            "ε > 1/2": epsilon > 0.5,
            "dt < (2ε-1)/(γ+ε²)": dt < (2 * epsilon - 1) / (gamma + epsilon**2),
        },
        quantity="y·y + z·z/γ",
    )
