"""Remarks 4.2.2 and 4.2.3 and section 4.3 of the thesis: inputs, steps, and functions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.constructions.networks import TanhNetwork, random_network, square
from anharmonic_papers.theory.constructions.operators import (
    delay,
    function,
    function_of_a_point,
    inverse_sine_up_to,
)
from anharmonic_papers.theory.constructions.oscillators import Oscillators, Signal, chain, solve
from anharmonic_papers.theory.constructions.signals import F64, extended, steepest, wave
from anharmonic_papers.theory.statements import Check

CHAPTER = "Neural oscillators"
SMALL = 1e-4  # s of a bank whose own error is not looked at
END = 1.5


@statement(
    "oscillators-input-not-from-zero",
    number="T 4.2.2",
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

    Shape: measured and bound [len(smoothings)].
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
    number="T 4.2.3",
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

    Shape: measured and bound [len(steps) - 1].
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
    number="T 4.3",
    chapter=CHAPTER,
    claim="A function F is a network of oscillators driven by u(t) = t ξ and read at t = 2.",
    state="holds",
    remark="F(ξ) = F(u(1)) is read by a delay of 1, shortened by the mean lag of the layers; the "
    "factor (t - 1) of the paper's operator is 1 at t = 2. Measured order in e.",
    example=lambda: functions(_plane_function(), _points(), (0.4, 0.3)),
)
def functions(F: TanhNetwork, points: Tensor, smoothings: Sequence[float]) -> Check:
    """The order in e of the largest error of F over points, Δ = e/2.

    Args:
        F: A network of one argument.
        points: ξ.
        smoothings: e, falling.

    Shape: points [B, p]; measured and bound [len(smoothings) - 1].
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
