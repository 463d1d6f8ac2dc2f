"""Lemmas 4.2.5, 4.2.6, 4.2.7 and 4.2.9 of the thesis: the past of an input from its transforms.

What the checks take, unless they say otherwise:

    u: An input of size 1 with u(0) = 0.
    end: The last time.
    smoothings: e of the inverse transforms.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.constructions.operators import InverseSine, delay, inverse_sine
from anharmonic_papers.theory.constructions.oscillators import (
    Signal,
    sine_transform,
    solve,
    time_neuron,
)
from anharmonic_papers.theory.constructions.signals import (
    F64,
    before,
    steepest,
    wave,
    windowed_sine,
)
from anharmonic_papers.theory.statements import Check

CHAPTER = "Neural oscillators"
SMALL = 1e-4  # s of a bank whose own error is not looked at


def _by_smoothing(errors: Tensor, bound: Tensor, smoothings: Sequence[float], u: Signal) -> Check:
    """Errors of several smoothings; cut-off and grid may add a hundredth."""
    return Check(
        measured=errors,
        bound=bound,
        tolerance=0.01,
        assumptions={"u(0) = 0": bool((u(torch.zeros(1, dtype=F64)) == 0).all())},
        places=torch.tensor(smoothings),
        axis="smoothing e",
        quantity="largest error",
    )


def maximum(u: Tensor) -> Tensor:
    """The largest |u|, over the last axis."""
    return u.abs().amax(-1)


@statement(
    "oscillators-fundamental-lemma",
    number="T 4.2.5",
    chapter=CHAPTER,
    claim="A causal continuous operator is, up to e, a continuous function Ψ of the sine "
    "transforms at finitely many frequencies and of t²/4.",
    state="holds",
    remark="Checked for the largest |u| so far, whose values change by no more than its input "
    "does. Ψ is not a network here, it is the operator applied to the input read back.",
    example=lambda: fundamental(wave, 2.0, (0.2, 0.1)),
)
def fundamental(u: Signal, end: float, smoothings: Sequence[float]) -> Check:
    """The largest |u| so far, from transforms and t²/4 alone, against e/2 times the slope of u.

    Shape: measured and bound [len(smoothings)], the largest error over all times.
    """
    errors = []
    for e in smoothings:
        inverse = inverse_sine(e, 40 / e, int(16 * end / e))
        dt = e / 40
        _, clock = solve(time_neuron(), u, dt=dt, end=end)
        _, beta = solve(sine_transform(inverse.frequencies, SMALL), u, dt=dt, end=end)
        off = []
        for b, quarter in list(zip(beta, clock[:, 0], strict=True))[20::20]:
            t = 2 * float(quarter.sqrt())
            s = torch.linspace(0, t, 200, dtype=b.dtype)
            off.append(maximum(inverse.reads(t - s) @ b) - maximum(u(s)[:, 0]))
        errors.append(torch.stack(off).abs().max())
    slopes = torch.tensor(smoothings, dtype=F64) / 2 * steepest(u, end)
    return _by_smoothing(torch.stack(errors), slopes, smoothings, u)


def _lemma_6() -> list[InverseSine]:
    sizes = ((0.2, 200, 800), (0.1, 400, 1600), (0.05, 800, 4000))
    return [inverse_sine(e, cutoff, neurons // 2) for e, cutoff, neurons in sizes]


@statement(
    "oscillators-inverse-sine",
    number="T 4.2.6",
    chapter=CHAPTER,
    claim="u(t-τ) = Σ_j α_j L_t u(ω_j) sin(ω_j τ - ϑ_j) up to e/2 times the slope of u.",
    state="corrected",
    remark="With a mollifier that looks further back, u(t-τ-s). The printed one averages across "
    "the jump of the odd extension at τ = 0.",
    example=lambda: inverse(wave, 3.0, _lemma_6()),
)
def inverse(u: Signal, t: float, transforms: Sequence[InverseSine]) -> Check:
    """The past of a signal from its sine transforms.

    Args:
        t: The time it is read at; the last 1 before it is read.
        transforms: Inverse transforms of falling smoothing.

    Shape: measured and bound [len(transforms)], the largest error over the delays.
    """
    tau = torch.linspace(0, 1, 101, dtype=F64)
    past = before(u, 0.0)(t - tau)[:, 0]
    errors = torch.stack(
        [
            (one.reads(tau) @ windowed_sine(u, one.frequencies, t) - past).abs().max()
            for one in transforms
        ]
    )
    smoothings = [one.smoothing for one in transforms]
    slopes = torch.tensor(smoothings, dtype=F64) / 2 * steepest(u, t)
    return _by_smoothing(errors, slopes, smoothings, u)


@statement(
    "oscillators-inverse-sine-printed",
    number="T 4.2.6 as printed",
    chapter=CHAPTER,
    claim="The same with the mollifier F_e = F * ρ_e, ρ_e supported in [0, e].",
    state="false",
    remark="Near τ = 0 the error stays as large as the jump, 2|u(t)|, times a part of it.",
    example=lambda: inverse_printed(wave, 3.0, _lemma_6()),
)
def inverse_printed(u: Signal, t: float, transforms: Sequence[InverseSine]) -> Check:
    """``inverse`` with the phases of the other side.

    Args:
        u: See ``inverse``.
        t: See ``inverse``.
        transforms: See ``inverse``; their phases are turned around.

    Shape: measured and bound [len(transforms)].
    """
    return inverse(u, t, [one._replace(phases=-one.phases) for one in transforms])


@statement(
    "oscillators-uniform-continuity",
    number="T 4.2.7",
    chapter=CHAPTER,
    claim="A continuous map is uniformly continuous near a compact set K: |F(u) - F(v)| is small "
    "for u in K and all v close to it, in K or not.",
    state="holds",
    remark="Checked for u ↦ u², which is not uniformly continuous on the whole space: there "
    "|u² - v²| ≤ δ(2 max_K |u| + δ).",
    example=lambda: continuity(wave, 3.0, (1.0, 0.1, 0.01)),
)
def continuity(u: Signal, end: float, distances: Sequence[float]) -> Check:
    """How far u² moves when u is changed by δ or less, fast or slowly.

    Args:
        u: An input.
        distances: δ.

    Shape: measured and bound [len(distances)].
    """
    t = torch.linspace(0, end, 2001, dtype=F64)
    value = u(t)
    moved = []
    for delta in distances:
        changes = [delta * torch.cos(k * t)[:, None] for k in (0, 1, 10, 100)]
        moved.append(max(float(((value + c) ** 2 - value**2).abs().max()) for c in changes))
    top = float(value.abs().max())
    return Check(
        measured=torch.tensor(moved, dtype=F64),
        bound=torch.tensor([delta * (2 * top + delta) for delta in distances], dtype=F64),
        places=torch.tensor(distances),
        axis="distance δ",
        quantity="|u² - v²|",
    )


def _pair(t: Tensor) -> Tensor:
    return torch.cat([wave(t), (t * torch.cos(2 * t))[:, None]], -1)


@statement(
    "oscillators-delay",
    number="T 4.2.9",
    chapter=CHAPTER,
    claim="One layer of p N oscillators, linearly read, gives u(t - Δ) up to any e.",
    state="holds",
    remark="With the readout ω_j/s of the corrected Lemma 4.2.8 and the phases of the corrected "
    "4.2.6.",
    example=lambda: delay_error(_pair, 0.5, 2.0, (0.2, 0.1)),
)
def delay_error(u: Signal, tau: float, end: float, smoothings: Sequence[float]) -> Check:
    """The delay against e/2 times the slope of the input.

    Args:
        u: An input with u(0) = 0.
        tau: The delay.

    Shape: measured and bound [len(smoothings)], the largest error over time and features.
    """
    errors = []
    for e in smoothings:
        transform = inverse_sine(e, 40 / e, int(16 * end / e))
        size = u(torch.zeros(1, dtype=F64)).shape[-1]
        times, z = solve(delay(transform, tau, SMALL, size), u, dt=e / 40, end=end)
        errors.append((z - before(u, tau)(times)).abs().max())
    slopes = torch.tensor(smoothings, dtype=F64) / 2 * steepest(u, end)
    return _by_smoothing(torch.stack(errors), slopes, smoothings, u)
