"""Inputs of the examples, and what is measured on them."""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic_papers.theory.oscillator_networks import Signal

F64 = torch.float64


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


def before(u: Signal, delay: float) -> Signal:
    """A signal delayed, zero before its start."""

    def delayed(t: Tensor) -> Tensor:
        value = u((t - delay).clamp(min=0.0))
        return value * (t >= delay).reshape(-1, *[1] * (value.ndim - 1))

    return delayed


def wave(t: Tensor) -> Tensor:
    """The signal sin 3t + 0.3 t: smooth, from 0, with slope 3.3 at most."""
    return (torch.sin(3 * t) + 0.3 * t)[:, None]


def waves(t: Tensor) -> Tensor:
    """Three inputs of slope at most 3.3, as a batch."""
    return torch.stack([wave(t), (t * torch.cos(2 * t))[:, None], torch.sin(5 * t)[:, None] / 2], 1)


def extended(u: Signal, before: float) -> Signal:
    """Continue an input on [0, T] linearly to 0 at -t₀, Remark 4.2.2."""

    def longer(t: Tensor) -> Tensor:
        ramp = ((t + before) / before).clamp(max=1.0)
        value = u(t.clamp(min=0.0))
        return value * ramp.reshape(-1, *[1] * (value.ndim - 1))

    return longer
