"""Theorem 4.2.1 and Lemma 4.2.10 of the thesis, on networks that are built and solved.

What the checks take, unless they say otherwise:

    u: An input with u(0) = 0.
    end: The last time.
    smoothings: e.

Shape: measured and bound [len(smoothings)].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.constructions.networks import TanhNetwork, identity, product, square
from anharmonic_papers.theory.constructions.operators import (
    InverseSine,
    delay,
    function,
    inverse_sine_up_to,
    running_integral,
)
from anharmonic_papers.theory.constructions.oscillators import (
    Oscillators,
    Signal,
    beside,
    chain,
    solve,
    time_neuron,
)
from anharmonic_papers.theory.constructions.signals import F64, before, steepest, wave, waves
from anharmonic_papers.theory.statements import Check

CHAPTER = "Neural oscillators"
SMALL = 1e-4  # s of a bank whose own error is not looked at
END = 1.5

Build = Callable[[InverseSine, float], Oscillators]
"""Makes a network from the inverse sine transform and the Δ of its last two layers."""


def errors_by_width(
    build: Build, target: Signal, u: Signal, end: float, smoothings: Sequence[float]
) -> tuple[Tensor, Tensor]:
    """Neurons and largest error over time of networks of falling smoothing e, with Δ = e/2.

    Args:
        build: Makes the network.
        target: What it is to give.
        u: Its input.
        end: The last time.
        smoothings: e.

    Shape:
        Both [len(smoothings)].
    """
    neurons, errors = [], []
    for e in smoothings:
        network = build(inverse_sine_up_to(end, e), e / 2)
        times, z = solve(network, u, dt=e / 60, end=end)
        neurons.append(network.neurons)
        errors.append((z - target(times)).abs().max())
    return torch.tensor(neurons), torch.stack(errors)


def _lagging(
    build: Build,
    target: Signal,
    u: Signal,
    end: float,
    smoothings: Sequence[float],
    *,
    slope: float,
    lag: float,
) -> Check:
    """Errors against lag · e times the slope of what is computed, a hundredth for the cut-off."""
    neurons, errors = errors_by_width(build, target, u, end, smoothings)
    return Check(
        measured=errors,
        bound=lag * slope * torch.tensor(smoothings, dtype=F64),
        tolerance=0.01,
        assumptions={"u(0) = 0": bool((u(torch.zeros(1, dtype=F64)) == 0).all())},
        places=neurons,
        axis="neurons",
        quantity="largest error over time",
    )


@statement(
    "oscillators-function",
    number="T 4.2.10",
    chapter=CHAPTER,
    claim="Two layers, integrators and a bank read at three delays, give f(u(t)) up to any e, f a "
    "network with one hidden layer.",
    state="holds",
    remark="Error at most Δ + e/2 times the slope of f(u): a mean lag, not noise. The second "
    "difference does not blow up like 1/Δ²: the three delays are read from the same neurons, "
    "where it is -ω² times a factor in [0, 1]. It multiplies what is cut off beyond Λ by up to "
    "Λ² instead, so Λe has to grow slowly as e falls (e = 0.2, Δ = 1e-3: an error of 0.6 at "
    "Λe = 40, of 0.005 at 120).",
    example=lambda: function_error(square(1.0), waves, END, (0.3, 0.15)),
)
def function_error(f: TanhNetwork, u: Signal, end: float, smoothings: Sequence[float]) -> Check:
    """Errors of f(u(t)) against (Δ + e/2) times the slope of f(u), with Δ = e/2.

    Args:
        f: A network of one argument.
    """

    def target(t: Tensor) -> Tensor:
        return f(u(t))

    return _lagging(
        lambda inverse, lag: function(f, inverse, lag, SMALL),
        target,
        u,
        end,
        smoothings,
        slope=steepest(target, end),
        lag=1.0,
    )


_UNIVERSAL = "Three layers of oscillators give Φ(u)(t) up to any e, for Φ: "


@statement(
    "oscillators-universal-delay",
    number="T 4.2.1 (delay)",
    chapter=CHAPTER,
    claim=_UNIVERSAL + "u(t - 0.5).",
    state="holds",
    remark="Error at most (e + Δ) times the slope of u, as the inverse sine transform reads e/2 "
    "too far back in the mean, twice, and the second difference Δ. With about 46 T/e neurons it "
    "falls like 1/width.",
    example=lambda: universal_delay(waves, 0.5, END, (0.3, 0.15)),
)
def universal_delay(u: Signal, tau: float, end: float, smoothings: Sequence[float]) -> Check:
    """The delay as a three-layer network, Δ = e/2, as the proof puts it together.

    Args:
        tau: The delay.
    """

    def build(inverse: InverseSine, lag: float) -> Oscillators:
        return chain(delay(inverse, tau, SMALL), function(identity(1, 1e-2), inverse, lag, SMALL))

    return _lagging(build, before(u, tau), u, end, smoothings, slope=steepest(u, end), lag=1.5)


@statement(
    "oscillators-universal-delay-aligned",
    number="T 4.2.1 (delay, read earlier)",
    chapter=CHAPTER,
    claim="With the first layer read e + Δ earlier, the mean lag goes, and the error of a smooth "
    "input that starts smoothly falls like 1/width².",
    state="holds",
    remark="Ours. Only where the operator does not look at the last e + Δ. Measured order in e.",
    example=lambda: aligned_delay(lambda t: wave(t) * t[:, None] ** 2, 0.7, END, (0.2, 0.1)),
)
def aligned_delay(u: Signal, tau: float, end: float, smoothings: Sequence[float]) -> Check:
    """The order in e of the error between one smoothing and the next.

    Args:
        u: An input with u(0) = u'(0) = 0.
        tau: The delay, at least 1.5 e.
        smoothings: e, falling.

    Shape: measured and bound [len(smoothings) - 1].
    """

    def build(inverse: InverseSine, lag: float) -> Oscillators:
        first = delay(inverse, tau - inverse.smoothing - lag, SMALL)
        return chain(first, function(identity(1, 1e-2), inverse, lag, SMALL))

    neurons, errors = errors_by_width(build, before(u, tau), u, end, smoothings)
    return Check(
        measured=errors.log().diff() / torch.tensor(smoothings, dtype=F64).log().diff(),
        bound=torch.tensor(2.0),
        relation="==",
        tolerance=0.1,
        places=neurons[1:],
        axis="neurons",
        quantity="order of the error in e",
    )


@statement(
    "oscillators-universal-integral",
    number="T 4.2.1 (running integral)",
    chapter=CHAPTER,
    claim=_UNIVERSAL + "the integral of u from 0 to t.",
    state="holds",
    remark="Error at most (e + Δ) max |u|.",
    example=lambda: universal_integral(
        lambda t: 3 * torch.cos(3 * t)[:, None] - 3 * torch.cos(6 * t)[:, None],
        lambda t: torch.sin(3 * t)[:, None] - torch.sin(6 * t)[:, None] / 2,
        END,
        (0.3, 0.15),
    ),
)
def universal_integral(
    u: Signal, integral: Signal, end: float, smoothings: Sequence[float]
) -> Check:
    """The running integral as a three-layer network, Δ = e/2.

    Args:
        integral: Its integral.
    """

    def build(inverse: InverseSine, lag: float) -> Oscillators:
        first = running_integral(inverse, end, SMALL)
        return chain(first, function(identity(1, 1e-2), inverse, lag, SMALL))

    slope = steepest(integral, end)
    return _lagging(build, integral, u, end, smoothings, slope=slope, lag=1.5)


@statement(
    "oscillators-universal-square",
    number="T 4.2.1 (square)",
    chapter=CHAPTER,
    claim=_UNIVERSAL + "u(t)².",
    state="holds",
    remark="Error at most e + Δ times the slope of u². The square is a second "
    "difference of tanh with step s, so rounding comes out 1/(s Δ)² times larger: nothing in "
    "float64; in float32 noise of 1.6 at s = 1e-2 and of 0.01 at s = 0.1 (e = 0.2, Δ = 0.1).",
    example=lambda: universal_square(waves, END, (0.3, 0.15)),
)
def universal_square(u: Signal, end: float, smoothings: Sequence[float]) -> Check:
    """The square as a three-layer network, Δ = e/2."""

    def build(inverse: InverseSine, lag: float) -> Oscillators:
        return chain(delay(inverse, 0.0, SMALL), function(square(1e-2), inverse, lag, SMALL))

    def target(t: Tensor) -> Tensor:
        return u(t) ** 2

    slope = steepest(target, end)
    return _lagging(build, target, u, end, smoothings, slope=slope, lag=1.5)


@statement(
    "oscillators-universal-timed",
    number="T 4.2.1 (t² u)",
    chapter=CHAPTER,
    claim=_UNIVERSAL + "t²/4 · u(t), which looks at the clock.",
    state="holds",
    remark="The neuron that is at t²/4 sits beside the first layer. Error at most (e + Δ) times "
    "the slope of t²/4 · u and of u times T²/4.",
    example=lambda: universal_timed(waves, END, (0.3, 0.15)),
)
def universal_timed(u: Signal, end: float, smoothings: Sequence[float]) -> Check:
    """The product of input and clock as a three-layer network, Δ = e/2."""

    def build(inverse: InverseSine, lag: float) -> Oscillators:
        first = beside(delay(inverse, 0.0, SMALL), time_neuron())
        return chain(first, function(product(1e-2), inverse, lag, SMALL))

    def target(t: Tensor) -> Tensor:
        value = u(t)
        return value * (t**2 / 4).reshape(-1, *[1] * (value.ndim - 1))

    slope = max(steepest(target, end), steepest(u, end) * end**2 / 4)
    return _lagging(build, target, u, end, smoothings, slope=slope, lag=1.5)
