"""What the oscillators of chapter 4 of the thesis conserve, (4.5)."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor

from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.constructions.oscillators import (
    OscillatorLayer,
    Oscillators,
    Signal,
    states,
)
from anharmonic_papers.theory.statements import Check

CHAPTER = "Neural oscillators"
F64 = torch.float64


def random_oscillators(*widths: int) -> Oscillators:
    """Layers with w in (-5, -1) and normal V and b.

    Args:
        widths: Size of the input, then the neurons of each layer.
    """
    layers = []
    for below, m in pairwise(widths):
        w = -1 - 4 * torch.rand(m, dtype=F64)
        layers.append(
            OscillatorLayer(w, torch.randn(m, below, dtype=F64), torch.randn(m, dtype=F64))
        )
    return Oscillators(
        tuple(layers), torch.eye(widths[-1], dtype=F64), torch.zeros(widths[-1], dtype=F64)
    )


def _seeded(*widths: int) -> Oscillators:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return random_oscillators(*widths)


def energy(layer: OscillatorLayer, y: Tensor, v: Tensor, below: Tensor) -> Tensor:
    """H = |v|²/2 - Σ log cosh(w y + V y_below + b)/w of a layer.

    Shape:
        y, v [..., m], below [..., p]; result [...].
    """
    a = layer.w * y + below @ layer.V.T + layer.b
    log_cosh = a.abs() + torch.log1p(torch.exp(-2 * a.abs())) - math.log(2)
    return v.square().sum(-1) / 2 - (log_cosh / layer.w).sum(-1)


@statement(
    "oscillators-layer-energy",
    number="T (4.5)",
    chapter=CHAPTER,
    claim="A layer conserves H = |y'|²/2 - Σ S(w y + V y_below + b)/w, S' = σ, while what is below "
    "it rests.",
    state="holds",
    example=lambda: conserved(_seeded(2, 8), torch.tensor([0.5, -1.0], dtype=F64), 10.0),
)
def conserved(network: Oscillators, held: Tensor, end: float) -> Check:
    """The energy of the first layer under a constant input.

    Args:
        network: One layer with w ≠ 0.
        held: The input.
        end: The last time.

    Shape: held [p]; measured and bound [N + 1].
    """
    times = torch.arange(round(end / 0.01) + 1, dtype=F64) * 0.01
    layer = network.layers[0]
    walk = states(network, lambda t: held.expand(len(t), -1), times, dt=0.01)
    found = torch.stack([energy(layer, y[0], v[0], held) for y, v in walk])
    return Check(
        measured=found,
        bound=found[0],
        relation="==",
        tolerance=1e-8,
        assumptions={"w ≠ 0": bool((layer.w != 0).all())},
        places=times,
        axis="t",
        quantity="H",
    )


@statement(
    "oscillators-layers-reversible",
    number="T 4.1 (reversibility)",
    chapter=CHAPTER,
    claim="Symplectic Euler on the layers is undone step by step, whatever the input.",
    state="holds",
    remark="Up to rounding, here of 500 steps; the order of layers is reversed as well.",
    example=lambda: undone(_seeded(1, 4, 3), lambda t: torch.sin(3 * t)[:, None], 0.02, 500),
)
def undone(network: Oscillators, u: Signal, dt: float, steps: int) -> Check:
    """How far from rest a network is after so many steps there and back.

    Args:
        network: The network.
        u: Its input.
        dt: Step size.
        steps: Steps.

    Shape: measured and bound [layers].
    """
    times = dt * torch.arange(steps + 1, dtype=F64)
    *_, (y, v) = states(network, u, times, dt=dt, scheme="symplectic-euler")
    y, v, inputs = [*y], [*v], u(times)
    for n in range(steps, 0, -1):
        for k in reversed(range(len(y))):
            layer, below = network.layers[k], (y[k - 1] if k else inputs[n])
            y[k] = y[k] - dt * v[k]
            v[k] = v[k] - dt * torch.tanh(layer.w * y[k] + below @ layer.V.T + layer.b)
    left = [torch.maximum(a.abs().max(), b.abs().max()) for a, b in zip(y, v, strict=True)]
    return Check(
        measured=torch.stack(left),
        bound=torch.tensor(1e-11),
        axis="layer",
        quantity="distance from rest",
    )
