"""Lemmas 4.2.4 to 4.2.9 of the thesis: oscillators compute a sine transform and its inverse."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from anharmonic.theory.constructions.operators import InverseSine, delay, inverse_sine
from anharmonic.theory.constructions.oscillators import (
    Signal,
    sine_transform,
    solve,
    time_neuron,
)
from anharmonic.theory.statements import Check, statement

CHAPTER = "Neural oscillators"
F64 = torch.float64
SMALL = 1e-4  # s of a bank whose own error is not looked at


def windowed_sine(u: Signal, frequencies: Tensor, t: float) -> Tensor:
    """The windowed sine transform ∫ u(t-r) sin(ωr) dr over [0, t], by Simpson's rule.

    Args:
        u: An input of size 1.
        frequencies: ω.
        t: The time.

    Shape:
        frequencies and the result [n].
    """
    r = torch.linspace(0, t, 8001, dtype=frequencies.dtype)
    weights = torch.full_like(r, 2.0)
    weights[1::2] = 4.0
    weights[[0, -1]] = 1.0
    return torch.sin(torch.outer(frequencies, r)) @ (weights * t / 24000 * u(t - r)[..., 0])


def steepest(u: Signal, end: float, start: float = 0.0) -> float:
    """The largest slope of a signal, from differences on a fine grid."""
    t = torch.linspace(start, end, 20001, dtype=F64)
    return float(u(t).diff(dim=0).abs().max() / (t[1] - t[0]))


def before(u: Signal, delay: float) -> Signal:
    """A signal delayed, zero before its start."""

    def delayed(t: Tensor) -> Tensor:
        value = u((t - delay).clamp(min=0.0))
        return value * (t >= delay).reshape(-1, *[1] * (value.ndim - 1))

    return delayed


def wave(t: Tensor) -> Tensor:
    """The signal sin 3t + 0.3 t: smooth, from 0, with slope 3.3 at most."""
    return (torch.sin(3 * t) + 0.3 * t)[:, None]


def _frequencies() -> Tensor:
    return torch.tensor([0.5, 1.0, 3.0, 7.0, 15.0], dtype=F64)


@statement(
    "oscillators-sine-transform-linear",
    number="Lemma 4.2.4",
    chapter=CHAPTER,
    claim="y'' = -ω² y + u from rest gives y(t) = L_t u(ω)/ω, L_t u(ω) = ∫ u(t-r) sin(ωr) dr.",
    state="holds",
    remark="The proof's last line reads -ωy in the copy.",
    example=lambda: sine_transform_linear(wave, _frequencies(), 3.0),
)
def sine_transform_linear(u: Signal, frequencies: Tensor, t: float) -> Check:
    """Forced harmonic oscillators against the integral.

    Args:
        u: An input of size 1.
        frequencies: ω, up to about 20.
        t: The time, a multiple of 0.001.

    Shape:
        frequencies, measured and bound [n].
    """
    network = sine_transform(frequencies, 1.0)
    _, z = solve(network, u, dt=1e-3, end=t, activation=lambda x: x)
    return Check(
        measured=z[-1] / frequencies,
        bound=windowed_sine(u, frequencies, t) / frequencies,
        relation="==",
        tolerance=3e-8,
        places=frequencies,
        axis="ω",
        quantity="y(t)",
    )


@statement(
    "oscillators-time",
    number="Lemma 4.2.5 (t²/4)",
    chapter=CHAPTER,
    claim="A neuron with w = 0, V = 0, b = artanh(1/2) is at t²/4, whatever the input.",
    state="holds",
    remark="Ours: why the second argument of the lemma's Ψ is t²/4.",
    example=lambda: time(wave, 5.0),
)
def time(u: Signal, end: float) -> Check:
    """The neuron that tells the time.

    Args:
        u: Any input of size 1.
        end: The last time.

    Shape:
        measured and bound [N + 1].
    """
    times, z = solve(time_neuron(), u, dt=0.05, end=end)
    return Check(
        measured=z[:, 0], bound=times**2 / 4, relation="==", places=times, axis="t", quantity="y"
    )


def maximum(u: Tensor) -> Tensor:
    """The largest |u|, over the last axis."""
    return u.abs().amax(-1)


@statement(
    "oscillators-fundamental-lemma",
    number="Lemma 4.2.5",
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

    Args:
        u: An input of size 1 with u(0) = 0.
        end: The last time.
        smoothings: e of the inverse transforms.

    Shape:
        measured and bound [len(smoothings)], the largest error over all times.
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


def _by_smoothing(
    errors: Tensor, bound: Tensor, smoothings: Sequence[float], u: Signal, at: float = 0.0
) -> Check:
    """Errors of several smoothings; cut-off and grid may add a hundredth."""
    return Check(
        measured=errors,
        bound=bound,
        tolerance=0.01,
        assumptions={"u(0) = 0": bool((u(torch.tensor([at], dtype=F64)) == 0).all())},
        places=torch.tensor(smoothings),
        axis="smoothing e",
        quantity="largest error",
    )


def _lemma_6() -> list[InverseSine]:
    sizes = ((0.2, 200, 800), (0.1, 400, 1600), (0.05, 800, 4000))
    return [inverse_sine(e, cutoff, neurons // 2) for e, cutoff, neurons in sizes]


@statement(
    "oscillators-inverse-sine",
    number="Lemma 4.2.6",
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
        u: An input of size 1 with u(0) = 0.
        t: The time it is read at; the last 1 before it is read.
        transforms: Inverse transforms of falling smoothing.

    Shape:
        measured and bound [len(transforms)], the largest error over the delays.
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
    number="Lemma 4.2.6 as printed",
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

    Shape:
        measured and bound [len(transforms)].
    """
    return inverse(u, t, [one._replace(phases=-one.phases) for one in transforms])


@statement(
    "oscillators-uniform-continuity",
    number="Lemma 4.2.7",
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
        end: The last time.
        distances: δ.

    Shape:
        measured and bound [len(distances)].
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


def _transform_error(
    u: Signal, frequencies: Tensor, t: float, scales: Sequence[float], printed: bool = False
) -> Tensor:
    exact = windowed_sine(u, frequencies, t)
    errors = []
    for s in scales:
        network = sine_transform(frequencies, s)
        if printed:
            network = network._replace(A=torch.eye(len(frequencies), dtype=exact.dtype) / s)
        _, z = solve(network, u, dt=5e-3, end=t)
        errors.append((z[-1] - exact).abs().max())
    return torch.stack(errors)


@statement(
    "oscillators-sine-transform",
    number="Lemma 4.2.8",
    chapter=CHAPTER,
    claim="y'' = tanh(-ω² y + s u), read with A = ω/s, is L_t u(ω) up to O(s²).",
    state="corrected",
    remark="The text reads y with A = 1/s, see the next.",
    example=lambda: sine_transform_order(wave, _frequencies(), 3.0, (0.05, 0.025, 0.0125)),
)
def sine_transform_order(
    u: Signal, frequencies: Tensor, t: float, scales: Sequence[float]
) -> Check:
    """The order in s of the error, between one scale and the next.

    Args:
        u: An input of size 1.
        frequencies: ω, up to about 20.
        t: The time.
        scales: s, falling.

    Shape:
        measured and bound [len(scales) - 1].
    """
    errors = _transform_error(u, frequencies, t, scales).log2()
    steps = torch.tensor(scales, dtype=errors.dtype).log2().diff()
    return Check(
        measured=errors.diff() / steps,
        bound=torch.tensor(2.0),
        relation="==",
        tolerance=0.02,
        places=torch.tensor(scales[:-1]),
        axis="scale s",
        quantity="order of the error in s",
    )


@statement(
    "oscillators-sine-transform-printed",
    number="Lemma 4.2.8 as printed",
    chapter=CHAPTER,
    claim="Read with A = 1/s, it is L_t u(ω) up to an error that vanishes with s.",
    state="false",
    remark="The factor ω of Lemma 4.2.4 is missing. Held against a hundredth of the largest "
    "transform.",
    example=lambda: sine_transform_printed(wave, _frequencies(), 3.0, (1e-1, 1e-2, 1e-3)),
)
def sine_transform_printed(
    u: Signal, frequencies: Tensor, t: float, scales: Sequence[float]
) -> Check:
    """The error at the last of the scales.

    Args:
        u: See ``sine_transform_order``.
        frequencies: See ``sine_transform_order``.
        t: See ``sine_transform_order``.
        scales: s, falling.

    Shape:
        measured and bound [].
    """
    return Check(
        measured=_transform_error(u, frequencies, t, scales, printed=True)[-1],
        bound=windowed_sine(u, frequencies, t).abs().max() / 100,
        quantity="error at the smallest s",
    )


def _pair(t: Tensor) -> Tensor:
    return torch.cat([wave(t), (t * torch.cos(2 * t))[:, None]], -1)


@statement(
    "oscillators-delay",
    number="Lemma 4.2.9",
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
        end: The last time.
        smoothings: e of the inverse transforms.

    Shape:
        measured and bound [len(smoothings)], the largest error over time and features.
    """
    errors = []
    for e in smoothings:
        transform = inverse_sine(e, 40 / e, int(16 * end / e))
        size = u(torch.zeros(1, dtype=F64)).shape[-1]
        times, z = solve(delay(transform, tau, SMALL, size), u, dt=e / 40, end=end)
        errors.append((z - before(u, tau)(times)).abs().max())
    slopes = torch.tensor(smoothings, dtype=F64) / 2 * steepest(u, end)
    return _by_smoothing(torch.stack(errors), slopes, smoothings, u)
