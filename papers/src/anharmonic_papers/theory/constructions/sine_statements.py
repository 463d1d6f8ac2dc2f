"""Lemmas 4.2.4 and 4.2.8 of the thesis: oscillators compute a windowed sine transform.

What the checks take, unless they say otherwise:

    u: An input of size 1.
    frequencies: ω, up to about 20.
    scales: s, falling.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from anharmonic_papers.theory._old import statement
from anharmonic_papers.theory.constructions.oscillators import (
    Signal,
    sine_transform,
    solve,
    time_neuron,
)
from anharmonic_papers.theory.constructions.signals import wave, windowed_sine
from anharmonic_papers.theory.statements import Check

CHAPTER = "Neural oscillators"
F64 = torch.float64


def _frequencies() -> Tensor:
    return torch.tensor([0.5, 1.0, 3.0, 7.0, 15.0], dtype=F64)


@statement(
    "oscillators-sine-transform-linear",
    number="T 4.2.4",
    chapter=CHAPTER,
    claim="y'' = -ω² y + u from rest gives y(t) = L_t u(ω)/ω, L_t u(ω) = ∫ u(t-r) sin(ωr) dr.",
    state="holds",
    remark="The proof's last line reads -ωy in the copy.",
    example=lambda: sine_transform_linear(wave, _frequencies(), 3.0),
)
def sine_transform_linear(u: Signal, frequencies: Tensor, t: float) -> Check:
    """Forced harmonic oscillators against the integral.

    Args:
        t: The time, a multiple of 0.001.

    Shape: frequencies, measured and bound [n].
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
    number="T 4.2.5 (t²/4)",
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

    Shape: measured and bound [N + 1].
    """
    times, z = solve(time_neuron(), u, dt=0.05, end=end)
    return Check(
        measured=z[:, 0], bound=times**2 / 4, relation="==", places=times, axis="t", quantity="y"
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
    number="T 4.2.8",
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
        t: The time.

    Shape: measured and bound [len(scales) - 1].
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
    number="T 4.2.8 as printed",
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

    Shape: measured and bound [].
    """
    return Check(
        measured=_transform_error(u, frequencies, t, scales, printed=True)[-1],
        bound=windowed_sine(u, frequencies, t).abs().max() / 100,
        quantity="error at the smallest s",
    )
