r"""Causal operators as networks of oscillators with explicit weights (thesis, section 4.2).

A bank of oscillators computes the windowed sine transform of its input; the inverse transform is a
readout of the bank and gives the past of the input back, Lemmas 4.2.6 and 4.2.9; a function of the
past is a layer of integrators and a further bank, Lemma 4.2.10. Three layers in a row are the
approximation of Theorem 4.2.1.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic_papers.theory.networks import TanhNetwork
from anharmonic_papers.theory.oscillator_networks import (
    OscillatorLayer,
    Oscillators,
    chain,
    sine_bank,
)


class InverseSine(NamedTuple):
    """The inverse sine transform at a few frequencies, Lemma 4.2.6.

    Args:
        frequencies: ω_j, [n].
        amplitudes: α_j.
        phases: ϑ_j.
        smoothing: e: what is read lies e/2 further back in the mean than asked for.
    """

    frequencies: Tensor
    amplitudes: Tensor
    phases: Tensor
    smoothing: float

    def reads(self, delay: float | Tensor) -> Tensor:
        """Weights [..., n] of the transforms L_t u(ω_j) that sum to about u(t - delay)."""
        delays = torch.as_tensor(delay, dtype=self.phases.dtype)[..., None]
        return self.amplitudes * torch.sin(self.frequencies * delays - self.phases)


def inverse_sine(smoothing: float, cutoff: float, neurons: int) -> InverseSine:
    """The inverse transform u(t-τ) ≈ Σ_j α_j L_t u(ω_j) sin(ω_j τ - ϑ_j).

    α_j = (2 Δω/π) |R(ω_j)| and ϑ_j = -arg R(ω_j) with R the Fourier transform of a bump on [0, e].
    What comes out is the mean of u over [t-τ-e, t-τ], weighted with the bump: an error of e/2 times
    the slope of u.

    The lemma's frequencies are equidistant on [-Λ, Λ], an even number N of them. The terms of ω and
    -ω are equal, so these here are the positive half, n = N/2, counted twice. Times and delays up
    to T need 2T + e < 2π/Δω, where Δω = 2Λ/(2n-1).
    """
    _checks.number("smoothing", smoothing, low=0.0, low_open=True)
    _checks.number("cutoff", cutoff, low=0.0, low_open=True)
    _checks.positive_int("neurons", neurons)
    spacing = 2 * cutoff / (2 * neurons - 1)
    frequencies = spacing * (torch.arange(neurons, dtype=torch.float64) + 0.5)
    points = 200 + math.ceil(smoothing * cutoff)
    s = (torch.arange(points, dtype=torch.float64) + 0.5) / points
    bump = torch.exp(-1 / (s * (1 - s)))
    angles = torch.outer(frequencies, smoothing * s)
    transform = torch.exp(1j * angles) @ (bump / bump.sum()).to(torch.complex128)
    amplitudes = 2 * spacing / math.pi * transform.abs()
    return InverseSine(frequencies, amplitudes, -transform.angle(), smoothing)


def inverse_sine_up_to(end: float, smoothing: float) -> InverseSine:
    """An inverse sine transform for times and delays up to T, with Λ = 60/e and e at most T/4.

    What lies beyond the cut-off is then small enough to be differentiated twice, as Lemma 4.2.10
    does; its neurons are about 23 T/e.
    """
    _checks.number("end", end, low=0.0, low_open=True)
    _checks.number("smoothing", smoothing, low=0.0, high=end / 4, low_open=True)
    cutoff = 60 / smoothing
    return inverse_sine(smoothing, cutoff, math.ceil(1.2 * end * cutoff / math.pi))


def _linear(inverse: InverseSine, weights: Tensor, scale: float, size: int) -> Oscillators:
    """A bank for every input and the same combination of its sine transforms for each."""
    eye = torch.eye(size, dtype=weights.dtype)
    readout = torch.kron(eye, (weights * inverse.frequencies / scale)[None])
    bank = sine_bank(inverse.frequencies, scale, size)
    return Oscillators((bank,), readout, torch.zeros_like(eye[0]))


def delay(inverse: InverseSine, tau: float, scale: float, size: int = 1) -> Oscillators:
    """A layer of oscillators that gives u(t - τ) for p inputs, Lemma 4.2.9."""
    return _linear(inverse, inverse.reads(tau), scale, size)


def running_integral(inverse: InverseSine, end: float, scale: float) -> Oscillators:
    """A layer of oscillators that gives the integral of u from 0 to t, for t up to T.

    The inverse sine transform of the past is integrated over [0, T]; beyond t it is zero.
    """
    omega, alpha, theta, _ = inverse
    return _linear(inverse, alpha * (theta.cos() - (omega * end - theta).cos()) / omega, scale, 1)


def function(network: TanhNetwork, inverse: InverseSine, lag: float, scale: float) -> Oscillators:
    """Two layers that give f(u(t)) for f a network with one hidden layer, Lemma 4.2.10.

    They give (η(t) - 2 η(t-Δ) + η(t-2Δ))/Δ² + σ(γ) for η = y_1 - y_2, y_1'' = σ(Λu + γ) and
    y_2'' = σ(γ). The first layer integrates twice; the second is a bank from which η is read at
    three delays, Δ = ``lag`` apart. The lemma sums over hidden units; here they are summed before
    the bank, so that it needs one bank for each output, not for each unit. What comes out is f(u)
    averaged over [t - 2Δ - e, t], with mean delay Δ + e/2.
    """
    (inputs,), gamma, output = network.inputs, network.bias, network.output
    both = torch.cat([inputs, torch.zeros_like(inputs)])
    integrators = OscillatorLayer(torch.zeros_like(gamma).repeat(2), both, gamma.repeat(2))
    difference = torch.tensor([1.0, -2.0, 1.0], dtype=gamma.dtype) / lag**2
    delays = lag * torch.arange(3, dtype=gamma.dtype)
    bank = _linear(inverse, difference @ inverse.reads(delays), scale, len(output))
    eta = Oscillators((integrators,), torch.cat([output, -output], 1), gamma.new_zeros(len(output)))
    return chain(eta, bank)._replace(c=output @ torch.tanh(gamma))


def function_of_a_point(
    network: TanhNetwork, inverse: InverseSine, lag: float, scale: float
) -> Oscillators:
    """Three layers whose output at t = 2 is F(ξ) for the input u(t) = t ξ, section 4.3.

    They compute F(u(t - 1)), by a delay shortened by what the layers lag behind in the mean, and
    need e + Δ < 1. The paper's (t - 1) F(u(1)) is the same at t = 2.
    """
    tau = 1 - inverse.smoothing - lag
    first = delay(inverse, tau, scale, size=network.inputs[0].shape[1])
    return chain(first, function(network, inverse, lag, scale))
