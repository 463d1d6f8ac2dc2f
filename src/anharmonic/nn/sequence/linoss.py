"""LinOSS and D-LinOSS: linear oscillators, each with its own frequency and step."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn.sequence.layer import SequenceLayer
from anharmonic.ops import State

SCHEMES = ("implicit", "implicit-explicit")
MIN_STIFFNESS = 0.01
"""Default of the least stiffness."""
_RADII = (0.9, 1.0)
"""Bounds of the initial eigenvalues of damped oscillators."""


_LEAST_STEP = 1e-8
"""Smallest step for which the bound of the stiffness is computed."""


class _Terms(NamedTuple):
    """Step Δ and stiffness A of every oscillator, 1 / S, and its eigenvalues exp(log_r ± i θ)."""

    step: Tensor
    A: Tensor
    inverse: Tensor
    log_r: Tensor
    theta: Tensor


class LinOSS(SequenceLayer):
    r"""Linear oscillators, each with its own frequency and step: LinOSS and D-LinOSS.

    .. math::
        z_n &= (z_{n-1} + \Delta\,(V u_n + b - A y_{n-1})) / S, \qquad y_n = y_{n-1} + \Delta z_n \\
        S &= 1 + \Delta^2 A \text{ (implicit)}, \qquad
        S = 1 + \Delta G \text{ (implicit-explicit)}

    They discretise y'' = V u + b - A y - G y'. The implicit scheme loses energy at a rate that
    falls with Δ; the other conserves it if G = 0. Δ = σ̂(raw_step), A = max(raw_stiffness,
    min_stiffness) and G = relu(raw_damping). No eigenvalue lies outside the unit circle. The
    implicit scheme has \|λ\|² <= 1 / S. The other one clips A to (2 + ΔG ± 2 sqrt(1 + ΔG)) / Δ²,
    where eigenvalues are complex and \|λ\|² = 1 / S. After a gap of ``elapsed`` steps the
    oscillators first swing freely for elapsed - 1 steps, whole or fractional. Every gap is stable.

    The layer is linear, so a stack of it can represent no more than one layer. ``LinOSSBlock`` adds
    a nonlinearity, ``LinOSSNetwork`` stacks such blocks.

    Parameters of layer k are ``weight_ih_lk`` [H, F or D * H] (V), ``bias_lk`` [H],
    ``raw_step_lk``, ``raw_stiffness_lk`` and, with damping, ``raw_damping_lk`` [H], or [H / 2] if
    the neurons are paired; those of a reverse direction end in ``_reverse``.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Oscillators per layer, H >= 1. The output consists of their positions.
        num_layers: Number of stacked layers, L >= 1.
        scheme: "implicit" (IM) or "implicit-explicit" (IMEX).
        damping: Whether every oscillator learns a damping (D-LinOSS); needs "implicit-explicit".
        min_stiffness: The least A, >= 0. The response to a constant input is at most 2 / A times as
            large. With 0, as published, it can come to grow like T² in training.
        paired: Whether neurons k and k + H / 2 share step, stiffness and damping, as real and
            imaginary part do in the publication. H must then be even.
        bias: Whether the input's map has a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also reads the sequence backwards.
        memory: What to keep for the backward pass. "stored" keeps all states, "chunked" keeps some
            and recomputes the rest, "auto" chooses by size.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: y, z [L * D, B, H]; elapsed [T, B] likewise.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Note:
        Weights start from U(-1/sqrt(F), 1/sqrt(F)), biases from 0, raw steps and stiffnesses from
        U(0, 1). With damping, raw steps start from N(0, 0.5²). Stiffness and damping then start so
        that the eigenvalues fill the ring between the radii 0.9 and 1 evenly.

    Example:
        >>> import torch
        >>> layer = LinOSS(6, 32, scheme="implicit-explicit", damping=True, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.z.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Rusch and Rus, Oscillatory State-Space Models, ICLR 2025; Boyer, Rusch and Rus, Learning to
        Dissipate Energy in Oscillatory State-Space Models, 2025.
    """

    state_type = State
    has_step_size = True
    dt = 1.0

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        scheme: str = "implicit",
        damping: bool = False,
        min_stiffness: float = MIN_STIFFNESS,
        paired: bool = False,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        memory: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, memory
        )
        self.scheme = _checks.choice("scheme", scheme, SCHEMES)
        self.damping = _checks.boolean("damping", damping)
        self.min_stiffness = _checks.number("min_stiffness", min_stiffness, low=0.0)
        self.paired = _checks.boolean("paired", paired)
        _checks.require(
            not damping or scheme == "implicit-explicit", "scheme", scheme,
            '"implicit-explicit" with damping', "the implicit scheme damps by itself",
        )  # fmt: skip
        _checks.require(
            not paired or hidden_size % 2 == 0, "hidden_size", hidden_size,
            "even if neurons are paired", "add a neuron",
        )  # fmt: skip
        self.make_parameters(device=device, dtype=dtype)

    # ---- the equation --------------------------------------------------------------------------
    def parameter_shapes(self, input_size: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of V, b, and the raw values of Δ, A and G."""
        H = self.hidden_size
        own = (H // 2 if self.paired else H,)
        shapes = {"weight_ih": (H, input_size), "bias": (H,)}
        shapes |= {"raw_step": own, "raw_stiffness": own}
        return shapes | ({"raw_damping": own} if self.damping else {})

    def prepare(self, w: Any) -> _Terms:
        """Return Δ, A and G of every oscillator, with A clipped to where the scheme is stable."""
        step, A = torch.sigmoid(w.raw_step), w.raw_stiffness.clamp(min=self.min_stiffness)
        G = None
        if self.damping:
            G = torch.relu(w.raw_damping)
        if self.scheme == "implicit":
            S = 1 + step * step * A
        else:
            S = torch.ones_like(step) if G is None else 1 + step * G
            low, high = _stable_stiffness(step, S)
            A = torch.maximum(torch.minimum(A, high), low)
        # From tr M = 2 r cos θ and r² = det M = 1 / S; the bounds keep θ between 0 and π.
        q = step * step * A
        root = S.sqrt()
        sine = (q - (root - 1).square()) / (4 * root)  # of θ / 2, squared
        theta = 2 * sine.clamp(1e-12, 1 - 1e-6).sqrt().asin()
        terms = _Terms(step, A, 1 / S, -0.5 * S.log(), theta)
        return _Terms(*(part.repeat(2) for part in terms)) if self.paired else terms

    def step_function(self, u: Tensor, state: State, w: _Terms, dt: float | Tensor) -> State:
        """Take a step; a gap between samples takes a power of the step without input."""
        y, z = state
        if not isinstance(dt, Tensor):
            z = (z + w.step * (u - w.A * y)) * w.inverse
            return State(y + w.step * z, z)
        # A step without input is the matrix M, and M^dt = a M + b.
        swing = _sinc(w.theta)
        a = torch.exp((dt - 1) * w.log_r) * dt * _sinc(dt * w.theta) / swing
        b = -torch.exp(dt * w.log_r) * (dt - 1) * _sinc((dt - 1) * w.theta) / swing
        z_free = (z - w.step * w.A * y) * w.inverse
        y_free = y + w.step * z_free
        kick = w.step * w.inverse * u
        return State(a * y_free + b * y + w.step * kick, a * z_free + b * z + kick)

    # ---- first values --------------------------------------------------------------------------
    def _initialise(self, name: str, parameter: Tensor, inputs: int) -> None:
        if name == "weight_ih":
            parameter.uniform_(-1 / math.sqrt(inputs), 1 / math.sqrt(inputs))
        elif name == "bias":
            parameter.zero_()
        else:
            parameter.uniform_(0, 1)

    def reset_parameters(self) -> None:
        """Redraw every weight from the model's initial distribution."""
        super().reset_parameters()
        if not self.damping:
            return
        with torch.no_grad():
            for suffix in self._suffixes:
                w = self.layer_weights(suffix)
                step = torch.sigmoid(w.raw_step.normal_(0, 0.5))
                low, high = (radius**2 for radius in _RADII)
                r = torch.empty_like(step).uniform_(low, high).sqrt()
                cosine = torch.empty_like(step).uniform_(0, math.pi).cos()
                w.raw_damping.copy_((r**-2 - 1) / step)
                w.raw_stiffness.copy_((1 + r * r - 2 * r * cosine) / (r * step) ** 2)


def _sinc(x: Tensor) -> Tensor:
    """Return sin x / x, as a series where x is small: there autograd's quotient is inexact."""
    square = x * x
    is_small = square < 0.1
    series = torch.ones_like(x)
    for k in (110, 72, 42, 20, 6):
        series = 1 - square / k * series
    return torch.where(
        is_small, series, torch.sin(x) / torch.where(is_small, torch.ones_like(x), x)
    )


def _stable_stiffness(step: Tensor, S: Tensor) -> tuple[Tensor, Tensor]:
    """Return the smallest and largest A for which the eigenvalues of IMEX are complex."""
    step = step.clamp(min=_LEAST_STEP)  # its square must not be 0
    root = S.sqrt()
    return ((S - 1) / (step * (1 + root))).square(), ((1 + root) / step).square()
