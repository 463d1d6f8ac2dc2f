"""Theorem 4.2.1 of the thesis and what belongs to it, on networks that are built and solved."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from anharmonic.theory.constructions.networks import TanhNetwork, identity, random_network, square
from anharmonic.theory.constructions.operators import (
    InverseSine,
    delay,
    extended,
    function,
    function_of_a_point,
    inverse_sine_up_to,
    running_integral,
)
from anharmonic.theory.constructions.oscillators import Oscillators, Signal, chain, solve
from anharmonic.theory.constructions.sine_statements import F64, SMALL, before, steepest, wave
from anharmonic.theory.statements import Check, statement

CHAPTER = "Neural oscillators"
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


def waves(t: Tensor) -> Tensor:
    """Three inputs of slope at most 3.3, as a batch."""
    return torch.stack([wave(t), (t * torch.cos(2 * t))[:, None], torch.sin(5 * t)[:, None] / 2], 1)


def _some_function() -> TanhNetwork:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return random_network(1, 3, (1,))


@statement(
    "oscillators-function",
    number="Lemma 4.2.10",
    chapter=CHAPTER,
    claim="Two layers, integrators and a bank read at three delays, give f(u(t)) up to any e, f a "
    "network with one hidden layer.",
    state="holds",
    remark="Error at most Δ + e/2 times the slope of f(u): a mean lag, not noise. The second "
    "difference does not blow up like 1/Δ²: the three delays are read from the same neurons, "
    "where it is -ω² times a factor in [0, 1]. It multiplies what is cut off beyond Λ by up to "
    "Λ² instead, so Λe has to grow slowly as e falls.",
    example=lambda: function_error(_some_function(), waves, END, (0.3, 0.15)),
)
def function_error(f: TanhNetwork, u: Signal, end: float, smoothings: Sequence[float]) -> Check:
    """Errors of f(u(t)) against (Δ + e/2) times the slope of f(u), with Δ = e/2.

    Args:
        f: A network of one argument.
        u: An input with u(0) = 0.
        end: The last time.
        smoothings: e.

    Shape:
        measured and bound [len(smoothings)].
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
    number="Theorem 4.2.1 (delay)",
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
        u: An input with u(0) = 0.
        tau: The delay.
        end: The last time.
        smoothings: e.

    Shape:
        measured and bound [len(smoothings)].
    """

    def build(inverse: InverseSine, lag: float) -> Oscillators:
        return chain(delay(inverse, tau, SMALL), function(identity(1, 1e-2), inverse, lag, SMALL))

    return _lagging(build, before(u, tau), u, end, smoothings, slope=steepest(u, end), lag=1.5)


@statement(
    "oscillators-universal-delay-aligned",
    number="Theorem 4.2.1 (delay, read earlier)",
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
        end: The last time.
        smoothings: e, falling.

    Shape:
        measured and bound [len(smoothings) - 1].
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
    number="Theorem 4.2.1 (running integral)",
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
        u: An input with u(0) = 0.
        integral: Its integral.
        end: The last time.
        smoothings: e.

    Shape:
        measured and bound [len(smoothings)].
    """

    def build(inverse: InverseSine, lag: float) -> Oscillators:
        first = running_integral(inverse, end, SMALL)
        return chain(first, function(identity(1, 1e-2), inverse, lag, SMALL))

    slope = steepest(integral, end)
    return _lagging(build, integral, u, end, smoothings, slope=slope, lag=1.5)


@statement(
    "oscillators-universal-square",
    number="Theorem 4.2.1 (square)",
    chapter=CHAPTER,
    claim=_UNIVERSAL + "u(t)².",
    state="holds",
    remark="Error at most 2 max |u| (e + Δ) times the slope of u. The square is a second "
    "difference of tanh, which costs nothing either: its units are summed before the bank.",
    example=lambda: universal_square(waves, END, (0.3, 0.15)),
)
def universal_square(u: Signal, end: float, smoothings: Sequence[float]) -> Check:
    """The square as a three-layer network, Δ = e/2.

    Args:
        u: An input with u(0) = 0.
        end: The last time.
        smoothings: e.

    Shape:
        measured and bound [len(smoothings)].
    """

    def build(inverse: InverseSine, lag: float) -> Oscillators:
        return chain(delay(inverse, 0.0, SMALL), function(square(1e-2), inverse, lag, SMALL))

    largest = float(u(torch.linspace(0, end, 2001, dtype=F64)).abs().max())
    slope = 2 * largest * steepest(u, end)
    return _lagging(build, lambda t: u(t) ** 2, u, end, smoothings, slope=slope, lag=1.5)


@statement(
    "oscillators-input-not-from-zero",
    number="Remark 4.2.2",
    chapter=CHAPTER,
    claim="Without u(0) = 0: continue u by (t + t₀)/t₀ u(0) on [-t₀, 0] and start there.",
    state="holds",
    remark="The error is that of an input of slope max(|u(0)|/t₀, that of u).",
    example=lambda: extension(lambda t: torch.cos(3 * t)[:, None], 0.5, END, (0.2, 0.1)),
)
def extension(u: Signal, longer: float, end: float, smoothings: Sequence[float]) -> Check:
    """One layer that gives u back on [0, T], started at -t₀, against e/2 times the slope.

    Args:
        u: An input.
        longer: t₀.
        end: The last time T.
        smoothings: e.

    Shape:
        measured and bound [len(smoothings)].
    """
    whole = extended(u, longer)
    errors = []
    for e in smoothings:
        network = delay(inverse_sine_up_to(end + longer, e), 0.0, SMALL)
        times, z = solve(network, whole, dt=e / 60, start=-longer, end=end)
        inside = times >= 0
        errors.append((z - u(times))[inside].abs().max())
    return Check(
        measured=torch.stack(errors),
        bound=torch.tensor(smoothings, dtype=F64) / 2 * steepest(whole, end, -longer),
        tolerance=0.01,
        places=torch.tensor(smoothings),
        axis="smoothing e",
        quantity="largest error on [0, T]",
    )


def _small_square() -> Oscillators:
    inverse = inverse_sine_up_to(END, 0.3)
    return chain(delay(inverse, 0.0, SMALL), function(square(1e-2), inverse, 0.15, SMALL))


@statement(
    "oscillators-discretised",
    number="Remark 4.2.3",
    chapter=CHAPTER,
    claim="The same holds for a discretisation with small enough steps.",
    state="holds",
    remark="Checked as the order in dt of what symplectic Euler, the scheme of UnICORNN, differs "
    "from the solution by. The step has to resolve the largest frequency Λ.",
    example=lambda: discretised(_small_square(), wave, END, (5e-3, 2.5e-3, 1.25e-3)),
)
def discretised(network: Oscillators, u: Signal, end: float, steps: Sequence[float]) -> Check:
    """The order in dt of symplectic Euler on a network.

    Args:
        network: The network.
        u: Its input.
        end: A multiple of all steps.
        steps: dt, falling by factors of two.

    Shape:
        measured and bound [len(steps) - 1].
    """
    _, exact = solve(network, u, dt=steps[0], end=end)
    errors = []
    for dt in steps:
        _, z = solve(network, u, dt=dt, end=end, scheme="symplectic-euler")
        errors.append((z[:: round(steps[0] / dt)] - exact).abs().max())
    return Check(
        measured=torch.stack(errors).log().diff() / torch.tensor(steps, dtype=F64).log().diff(),
        bound=torch.tensor(1.0),
        relation="==",
        tolerance=0.05,
        places=torch.tensor(steps[1:]),
        axis="dt",
        quantity="order of the error in dt",
    )


def _plane_function() -> TanhNetwork:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return random_network(2, 6, (2,))


def _points() -> Tensor:
    side = torch.linspace(-1, 1, 5, dtype=F64)
    return torch.cartesian_prod(side, side)


@statement(
    "oscillators-functions",
    number="Section 4.3",
    chapter=CHAPTER,
    claim="A function F is a network of oscillators driven by u(t) = t ξ and read at t = 2.",
    state="holds",
    remark="F(ξ) = F(u(1)) is read by a delay of 1, shortened by the mean lag of the layers; the "
    "factor (t - 1) of the document's operator is 1 at t = 2. Measured order in e.",
    example=lambda: functions(_plane_function(), _points(), (0.4, 0.3)),
)
def functions(F: TanhNetwork, points: Tensor, smoothings: Sequence[float]) -> Check:
    """The order in e of the largest error of F over points, Δ = e/2.

    Args:
        F: A network of one argument.
        points: ξ.
        smoothings: e, falling.

    Shape:
        points [B, p]; measured and bound [len(smoothings) - 1].
    """
    errors = torch.stack([function_error_at(F, points, e) for e in smoothings])
    return Check(
        measured=errors.log().diff() / torch.tensor(smoothings, dtype=F64).log().diff(),
        bound=torch.tensor(2.0),
        relation="==",
        tolerance=0.05,
        places=torch.tensor(smoothings[1:]),
        axis="smoothing e",
        quantity="order of the error in e",
    )


def function_error_at(F: TanhNetwork, points: Tensor, smoothing: float) -> Tensor:
    """The largest error of F over points, with Δ = e/2.

    Args:
        F: A network of one argument.
        points: ξ [B, p].
        smoothing: e.
    """
    inverse = inverse_sine_up_to(2.0, smoothing)
    network = function_of_a_point(F, inverse, smoothing / 2, SMALL)
    _, z = solve(network, lambda t: t[:, None, None] * points, dt=smoothing / 60, end=2.0)
    return (z[-1] - F(points)).abs().max()
