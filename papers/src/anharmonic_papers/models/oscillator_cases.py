"""Special cases of neural oscillators: harmonic oscillators, and coRNN and UnICORNN undamped."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from anharmonic import (
    CoRNN,
    MultiLayerNeuralOscillator,
    NeuralOscillator,
    StabilityWarning,
    UnICORNN,
    _checks,
)


def harmonic_oscillators(
    frequencies: Sequence[float] | Tensor,
    *,
    activation: str = "identity",
    input_scale: float = 1.0,
    **options: Any,
) -> MultiLayerNeuralOscillator:
    r"""Return a layer of harmonic oscillators driven by one input: w = -ω², V = s, no bias.

    With ``activation="identity"`` and s = 1 this is (4.6), a windowed sine transform when started
    at rest:

    .. math::
        y_i'' = -\omega_i^2 y_i + u, \quad
        y_i(t) = \frac{1}{\omega_i} \int_0^t u(t - s) \sin(\omega_i s)\, ds

    With ``activation="tanh"`` and a small s it is Lemma 4.2.8: y / s tends to the same limit with
    an error of order s².

    Args:
        frequencies: ω of every oscillator, > 0; a list or a tensor [H].
        activation: σ.
        input_scale: s, not 0.
        **options: Further arguments of the layer (``dt``, ``scheme``, ``dtype``, ...), except sizes
            and ``bias``.

    Warns:
        StabilityWarning: If dt ω >= 2 for the fastest oscillator.

    Raises:
        ValueError: If there are no frequencies, one is not positive and finite, or s is 0.
        TypeError: If an argument is of the wrong kind, or one of the options is given already.

    Example:
        >>> layer = harmonic_oscillators([1.0, 2.0], dt=0.01)
        >>> layer.weight_hh_l0.tolist()
        [-1.0, -4.0]
    """
    if isinstance(frequencies, Tensor):
        frequencies = frequencies.tolist()
    _checks.require(
        isinstance(frequencies, Sequence) and not isinstance(frequencies, str), "frequencies",
        frequencies, "a list of numbers", "pass one frequency as [1.0]", TypeError,
    )  # fmt: skip
    given = {"input_size", "hidden_size", "num_layers", "bias"} & set(options)
    _checks.require(
        not given, "options", sorted(given), "others than sizes and bias, which are given here",
        "leave them out, or make a MultiLayerNeuralOscillator", TypeError,
    )  # fmt: skip
    omega = [
        _checks.number(f"frequencies[{k}]", value, low=0.0, low_open=True)
        for k, value in enumerate(frequencies)
    ]
    _checks.require(bool(omega), "frequencies", omega, "at least one number", "pass [1.0]")
    scale = _checks.number("input_scale", input_scale)
    _checks.require(
        scale != 0, "input_scale", scale, "another number than 0", "drive the oscillators"
    )
    layer = MultiLayerNeuralOscillator(
        1, len(omega), 1, bias=False, activation=activation, **options
    )
    if layer.dt * max(omega) >= 2:
        warnings.warn(
            _checks.message(
                "for stable states dt * frequency < 2 must hold",
                f"dt={layer.dt:g}, frequency={max(omega):g}",
                "use a smaller dt",
            ),
            StabilityWarning,
            stacklevel=2,
        )
    with torch.no_grad():
        squares = torch.tensor(omega, dtype=torch.float64).square()
        layer.get_parameter("weight_ih_l0").fill_(scale)
        layer.get_parameter("weight_hh_l0").copy_(-squares)
    return layer


def as_neural_oscillator(
    layer: CoRNN | UnICORNN,
) -> NeuralOscillator | MultiLayerNeuralOscillator:
    """Convert an undamped coRNN or UnICORNN to neural oscillators with copied weights.

    A ``CoRNN`` with 𝒲 = 0 and γ = ε = 0 is (4.1). A ``UnICORNN`` whose frequency is in its weights,
    α = 0, and whose neurons share one time scale is (4.2): it has -tanh(A) where (4.2) has +σ(A).
    Since tanh is odd, V, w and b change sign. Its step h = dt σ̂(c) becomes dt.

    Args:
        layer: The layer; not changed.

    Raises:
        TypeError: If the layer has another type.
        ValueError: If it has damping, frequency, velocity weights, learned scalars, skip
            connections or neurons with different time scales.

    Example:
        >>> unicornn = UnICORNN(2, 3, num_layers=2, dt=0.1, frequency=0.0)
        >>> for timescale in (unicornn.timescale_l0, unicornn.timescale_l1):
        ...     _ = torch.nn.init.zeros_(timescale)
        >>> as_neural_oscillator(unicornn)
        MultiLayerNeuralOscillator(2, 3, num_layers=2)
    """
    if isinstance(layer, CoRNN):
        return _of_cornn(layer)
    if isinstance(layer, UnICORNN):
        return _of_unicornn(layer)
    raise TypeError(
        _checks.message(
            "layer must be a CoRNN or a UnICORNN", type(layer).__name__, "no other layer is a case"
        )
    )


def _of_cornn(layer: CoRNN) -> NeuralOscillator:
    weights = layer.state_dict()
    learned = layer.trainable_dt or layer.trainable_frequency or layer.trainable_damping
    coupled = any(bool(v.any()) for k, v in weights.items() if k.startswith("weight_hz"))
    _checks.require(
        not (layer.frequency or layer.damping or learned or coupled), "a CoRNN",
        f"{layer}" + ", weight_hz not zero" * coupled,
        "one with frequency=0, damping=0, no learned scalars and zero weight_hz",
        "set them to zero, or keep the CoRNN",
    )  # fmt: skip
    new = NeuralOscillator(**_shared_arguments(layer), dt=layer.dt)
    new.load_state_dict(
        {
            name.replace("weight_hy", "weight_hh"): value
            for name, value in weights.items()
            if not name.startswith("weight_hz")
        }
    )
    return new


def _of_unicornn(layer: UnICORNN) -> MultiLayerNeuralOscillator:
    weights = layer.state_dict()
    dt = layer.dt if isinstance(layer.dt, list) else [layer.dt] * layer.num_layers
    suffixes = ("", "_reverse")[: layer.num_directions]
    steps = torch.cat(
        [
            dt[k] * torch.sigmoid(weights[f"timescale_l{k}{suffix}"].double())
            for k in range(layer.num_layers)
            for suffix in suffixes
        ]
    )
    uneven = bool((steps != steps[0]).any())
    _checks.require(
        not (layer.frequency or layer.skipped_layers or uneven), "a UnICORNN",
        f"{layer}" + f", steps from {steps.min():g} to {steps.max():g}" * uneven,
        "one with frequency=0, equal time scales and no skipped_layers",
        "set its timescales to one value, or keep the UnICORNN",
    )  # fmt: skip
    new = MultiLayerNeuralOscillator(**_shared_arguments(layer), dt=float(steps[0]))
    new.load_state_dict({k: -v for k, v in weights.items() if not k.startswith("timescale")})
    return new


def _shared_arguments(layer: CoRNN | UnICORNN) -> dict[str, Any]:
    """Return the arguments that all sequence layers share."""
    names = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout")
    arguments = {name: getattr(layer, name) for name in (*names, "bidirectional", "memory")}
    weight = layer.get_parameter("weight_ih_l0")
    return {**arguments, "device": weight.device, "dtype": weight.dtype}
