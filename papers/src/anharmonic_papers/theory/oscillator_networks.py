r"""Layers of undamped oscillators (4.2) with weights that are written down, and their solution.

.. math::
    (y^l)'' = \sigma(w^l \odot y^l + V^l y^{l-1} + b^l), \quad y^0 = u, \quad z = A y^L + c

from rest. Everything here is float64. Below the networks are the inputs of the examples, and what
is measured on them.

Reference: T. K. Rusch, Physics-inspired machine learning, doctoral thesis, ETH Zurich, chapter 4.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from anharmonic import _checks

F64 = torch.float64
Signal = Callable[[Tensor], Tensor]
"""An input u: times [K] -> values [K, ..., p]."""

SCHEMES = ("symplectic-euler", "runge-kutta-nystrom")


class OscillatorLayer(NamedTuple):
    """The weights of one layer.

    Args:
        w: Weights of neurons on themselves, [m]; -ω² makes an oscillator of angular frequency ω.
        V: Weights on the layer below, or on the input, [m, p].
        b: Biases, [m].
    """

    w: Tensor
    V: Tensor
    b: Tensor


class Oscillators(NamedTuple):
    """A network of oscillators.

    Args:
        layers: The layers, the one that sees the input first.
        A: Readout of the last layer, [q, m_L].
        c: Its offset, [q].
    """

    layers: tuple[OscillatorLayer, ...]
    A: Tensor
    c: Tensor

    @property
    def neurons(self) -> int:
        """Neurons of all layers."""
        return sum(len(layer.w) for layer in self.layers)


def solve(
    network: Oscillators,
    u: Signal,
    *,
    dt: float,
    end: float,
    start: float = 0.0,
    scheme: str = "runge-kutta-nystrom",
    activation: Callable[[Tensor], Tensor] = torch.tanh,
) -> tuple[Tensor, Tensor]:
    """The output of a network from rest at every step: times [N + 1] and outputs [N + 1, ..., q].

    The scheme "runge-kutta-nystrom" is of fourth order. "symplectic-euler" is of first order: the
    velocity first, each layer sees the new state of the one below. The activation is tanh, or sin
    or the identity, which have the same slope at 0.
    """
    _checks.choice("scheme", scheme, SCHEMES)
    steps = round((end - start) / dt)
    expected = f"a step of {dt:g} or more after start={start:g}"
    _checks.require(steps >= 1, "end", end, expected, "choose a smaller dt or a later end")
    times = start + dt * torch.arange(steps + 1, dtype=network.A.dtype)
    walk = states(network, u, times, dt=dt, scheme=scheme, activation=activation)
    return times, torch.stack([y[-1] @ network.A.T + network.c for y, _ in walk])


def states(
    network: Oscillators,
    u: Signal,
    times: Tensor,
    *,
    dt: float,
    scheme: str = "runge-kutta-nystrom",
    activation: Callable[[Tensor], Tensor] = torch.tanh,
) -> Iterator[tuple[list[Tensor], list[Tensor]]]:
    """Positions and velocities [..., m_l] of every layer, from rest, at equidistant times."""
    layers = network.layers
    inputs = u(times)
    halfway = u(times[:-1] + dt / 2)
    y = [inputs.new_zeros((*inputs.shape[1:-1], len(layer.w))) for layer in layers]
    v = [torch.zeros_like(part) for part in y]

    def pull(layer: OscillatorLayer, down: Tensor, here: Tensor) -> Tensor:
        return activation(layer.w * here + down @ layer.V.T + layer.b)

    def force(y: list[Tensor], drive: Tensor) -> list[Tensor]:
        return [pull(*three) for three in zip(layers, [drive, *y[:-1]], y, strict=True)]

    def ahead(h: float, *parts: list[Tensor]) -> list[Tensor]:
        return [a + h * b + h**2 / 2 * f for a, b, f in zip(*parts, strict=True)]

    yield y, v
    for n in range(len(times) - 1):
        if scheme == "symplectic-euler":
            y, v, down = [*y], [*v], inputs[n + 1]
            for k, layer in enumerate(layers):
                v[k] = v[k] + dt * pull(layer, down, y[k])
                y[k] = y[k] + dt * v[k]
                down = y[k]
        else:
            first = force(y, inputs[n])
            middle = force(ahead(dt / 2, y, v, first), halfway[n])
            last = force(ahead(dt, y, v, middle), inputs[n + 1])
            forces = list(zip(first, middle, last, strict=True))
            y = ahead(dt, y, v, [(f + 2 * g) / 3 for f, g, _ in forces])
            v = [b + dt / 6 * (f + 4 * g + h) for b, (f, g, h) in zip(v, forces, strict=True)]
        yield y, v


def sine_bank(frequencies: Tensor, scale: float, size: int = 1) -> OscillatorLayer:
    """Oscillators of the given frequencies for every input, those of the first come first; Lemma
    4.2.8.

    y'' = tanh(-ω² y + s u): then ω y / s is the windowed sine transform ∫ u(t-r) sin(ωr) dr over
    [0, t], up to O(s²).
    """
    ones = torch.ones_like(frequencies)
    return OscillatorLayer(
        -frequencies.square().repeat(size),
        scale * torch.kron(torch.eye(size, dtype=ones.dtype), ones[:, None]),
        torch.zeros_like(frequencies).repeat(size),
    )


def sine_transform(frequencies: Tensor, scale: float) -> Oscillators:
    """A layer that outputs the windowed sine transform of one input at the given frequencies."""
    readout = torch.diag(frequencies / scale)
    return Oscillators((sine_bank(frequencies, scale),), readout, torch.zeros_like(frequencies))


def time_neuron() -> Oscillators:
    """A neuron without weights whose force is 1/2: from rest it is t²/4 exactly."""
    zero = torch.zeros(1, dtype=torch.float64)
    layer = OscillatorLayer(zero, zero[:, None], zero + math.atanh(0.5))
    return Oscillators((layer,), torch.ones(1, 1, dtype=torch.float64), zero)


def beside(first: Oscillators, second: Oscillators) -> Oscillators:
    """Two networks of one layer each with the same input, their outputs after one another."""
    (one,), (other,) = first.layers, second.layers
    layer = OscillatorLayer(*(torch.cat(pair) for pair in zip(one, other, strict=True)))
    readout = torch.block_diag(first.A, second.A)  # type: ignore[no-untyped-call]
    return Oscillators((layer,), readout, torch.cat([first.c, second.c]))


def chain(first: Oscillators, second: Oscillators) -> Oscillators:
    """Put a network behind another: its first layer takes the readout of the other into V and b."""
    entry = second.layers[0]
    joined = OscillatorLayer(entry.w, entry.V @ first.A, entry.b + entry.V @ first.c)
    return Oscillators((*first.layers, joined, *second.layers[1:]), second.A, second.c)


def windowed_sine(u: Signal, frequencies: Tensor, t: float) -> Tensor:
    """The windowed sine transform ∫ u(t-r) sin(ωr) dr over [0, t], by Simpson's rule, [n]."""
    r = torch.linspace(0, t, 8001, dtype=frequencies.dtype)
    weights = torch.full_like(r, 2.0)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    return torch.sin(torch.outer(frequencies, r)) @ (weights * t / 24000 * u(t - r)[..., 0])


def steepest(u: Signal, end: float, start: float = 0.0) -> float:
    """The largest slope of a signal, from differences on a fine grid."""
    t = torch.linspace(start, end, 20001, dtype=F64)
    return float(u(t).diff(dim=0).abs().max() / (t[1] - t[0]))


def times(factor: Signal, u: Signal) -> Signal:
    """A signal times a function of time."""
    return lambda t: torch.einsum("t,t...->t...", factor(t), u(t))


def before(u: Signal, delay: float) -> Signal:
    """A signal delayed, zero before its start."""
    return times(lambda t: (t >= delay).to(t), lambda t: u((t - delay).clamp(min=0.0)))


def wave(t: Tensor) -> Tensor:
    """The signal sin 3t + 0.3 t: smooth, from 0, with slope 3.3 at most."""
    return (torch.sin(3 * t) + 0.3 * t)[:, None]


def waves(t: Tensor) -> Tensor:
    """Three inputs of slope at most 3.3, as a batch."""
    return torch.stack([wave(t), (t * torch.cos(2 * t))[:, None], torch.sin(5 * t)[:, None] / 2], 1)


def extended(u: Signal, before: float) -> Signal:
    """Continue an input on [0, T] linearly to 0 at -t₀, Remark 4.2.2."""
    return times(lambda t: ((t + before) / before).clamp(max=1), lambda t: u(t.clamp(min=0)))
