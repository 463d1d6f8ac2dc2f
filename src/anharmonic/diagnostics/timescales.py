r"""Time scales of a trained model: gates of LEM and LSTM, effective steps of UnICORNN.

A gate g moves a state by the share g of its distance in one step, so its time constant is about 1/g
steps. LEM's gates are :math:`a_n, e_n = dt\,\hat\sigma(\cdot)` (5.3). For an LSTM it is the share
:math:`1 - f_n` of the cell that a step forgets. UnICORNN's neurons have one step each, :math:`h =
dt\,\hat\sigma(c)` (3.6), independent of the input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic._checks import require
from anharmonic.diagnostics.recurrence import check_inputs, examined, layer_of, recurrence
from anharmonic.nn.sequence.lem import LEM
from anharmonic.nn.sequence.unicornn import UnICORNN


def effective_steps(layer: Any) -> Tensor:
    r"""Return the step :math:`h^l = dt^l\,\hat\sigma(c^l)` of every neuron of a UnICORNN.

    Args:
        layer: A ``UnICORNN``, or a ``SequenceModel`` of one.

    Shape:
        [L * D, H], layer by layer, forward before reverse.

    Raises:
        TypeError: If the layer has another type.

    Example:
        >>> steps = effective_steps(UnICORNN(2, 5, num_layers=3, dt=0.2))
        >>> steps.shape, bool((steps < 0.2).all())
        (torch.Size([3, 5]), True)
    """
    layer = layer_of(layer)
    advice = "call gates for LEM and LSTM"
    require(isinstance(layer, UnICORNN), "layer", layer, "a UnICORNN", advice, TypeError)
    ends = ("", "_reverse")[: layer.num_directions]
    return torch.stack(
        [
            dt * torch.sigmoid(getattr(layer, f"timescale_l{k}{end}").detach())
            for k, dt in enumerate(layer._steps)
            for end in ends
        ]
    )


def gates(layer: Any, x: Tensor) -> dict[str, Tensor]:
    r"""Return the gates of every step, neuron and layer along a trajectory from rest.

    Args:
        layer: A ``LEM`` with learned gates (gates "a", of z, and "e", of y), or an LSTM, ours or
            ``torch.nn.LSTM`` ("1 - f"); or a ``SequenceModel`` of one.
        x: The inputs, time first, in the layer's dtype.

    Shape:
        x [T, B, F]; each gate [T, L, B, H].

    Raises:
        TypeError: If the layer has another type.
        ValueError: If it is bidirectional, has no learned gates, has a projection, or x has the
            wrong shape.

    Example:
        >>> found = gates(LEM(2, 5, dt=0.5), torch.randn(100, 3, 2))
        >>> sorted(found), found["a"].shape, bool((found["a"] < 0.5).all())
        (['a', 'e'], torch.Size([100, 1, 3, 5]), True)
    """
    found = recurrence(layer)
    layer = found.layer
    fits, advice = (
        isinstance(layer, LEM | nn.LSTM),
        "only these have gates; effective_steps measures a UnICORNN",
    )
    require(fits, "layer", layer, "a LEM or an LSTM", advice, TypeError)
    learned = layer.multiscale if isinstance(layer, LEM) else not layer.proj_size
    expected = "one with learned gates and no projection"
    advice = "take multiscale=True (LEM), proj_size=0 (LSTM)"
    require(learned, "layer", layer, expected, advice)
    x = check_inputs(x, found.input_size)
    with examined(layer), torch.no_grad():
        states = torch.stack(found.walk(x))
        y = found.parts(states)[0]  # [T + 1, L, B, H]; h of an LSTM
        below = [x, *(y[1:, k] for k in range(layer.num_layers - 1))]
        one: Any = _lem_gates if isinstance(layer, LEM) else _lstm_gates
        levels = [one(layer, k, below[k], y[:-1, k]) for k in range(layer.num_layers)]
    return {name: torch.stack([level[name] for level in levels], dim=1) for name in levels[0]}


def _lem_gates(layer: LEM, k: int, u: Tensor, y: Tensor) -> dict[str, Tensor]:
    H = layer.hidden_size
    V, W = getattr(layer, f"weight_ih_l{k}"), getattr(layer, f"weight_hh_l{k}")
    bias = getattr(layer, f"bias_l{k}") if layer.bias else V.new_zeros(4 * H)
    both = layer.dt * torch.sigmoid(u @ V[: 2 * H].t() + y @ W[: 2 * H].t() + bias[: 2 * H])
    if layer.gate_floor is not None:
        both = both.clamp(layer.gate_floor, 1.0)
    return {"a": both[..., :H], "e": both[..., H:]}


def _lstm_gates(layer: nn.LSTM, k: int, u: Tensor, h: Tensor) -> dict[str, Tensor]:
    rows = slice(layer.hidden_size, 2 * layer.hidden_size)  # input, forget, cell, output
    V, W = getattr(layer, f"weight_ih_l{k}"), getattr(layer, f"weight_hh_l{k}")
    drive = u @ V[rows].t() + h @ W[rows].t()
    if layer.bias:
        drive = drive + (getattr(layer, f"bias_ih_l{k}") + getattr(layer, f"bias_hh_l{k}"))[rows]
    return {"1 - f": torch.sigmoid(-drive)}


@dataclass(frozen=True)
class Histogram:
    r"""Counts in bins of equal width on a logarithmic axis, and the power law fitted to them.

    .. math::
        N(\tau) \approx C\,\tau^{s}

    Args:
        edges: Edges of the bins, one more than bins.
        counts: Values in each bin.
        exponent: s, the slope of log N against log τ; NaN with fewer than two non-empty bins.
        factor: C, N(τ) at τ = 1.
        r_squared: Share of the variance of log N explained by the line; NaN likewise.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    exponent: float
    factor: float
    r_squared: float

    @property
    def centres(self) -> tuple[float, ...]:
        """Geometric centres of the bins."""
        ends = torch.tensor(self.edges, dtype=torch.float64)
        return tuple((ends[1:] * ends[:-1]).sqrt().tolist())


def scale_histogram(
    values: Tensor, *, bins: int = 30, low: float | None = None, high: float | None = None
) -> Histogram:
    r"""Count time scales on a logarithmic axis and fit a power law to the counts.

    The line is the least-squares fit of log N against log τ over all non-empty bins with equal
    weights. Values with the density :math:`\tau^{s-1}` have the exponent s.

    Args:
        values: Positive numbers, of any shape.
        bins: Number of bins, >= 1.
        low: Lower end; the smallest value if None. Values below are left out.
        high: Upper end, > low; the largest value if None. Values above are left out.

    Raises:
        ValueError: If no value is positive and finite, or low >= high.

    Example:
        >>> found = scale_histogram(torch.tensor([0.1, 1.0, 1.0, 10.0, 10.0, 10.0, 10.0]), bins=3)
        >>> found.counts, round(found.exponent, 2)
        ((1, 2, 4), 0.45)
    """
    _checks.positive_int("bins", bins)
    flat = values.detach().double().flatten().cpu()
    flat = flat[(flat > 0) & flat.isfinite()]
    expected, advice = "such that one is positive and finite", "pass gates or effective steps"
    require(len(flat) > 0, "values", values, expected, advice)
    low = float(flat.min()) if low is None else _checks.number("low", low, low=0.0, low_open=True)
    high = float(flat.max()) if high is None else _checks.number("high", high)
    if high == low:
        low, high = low / 1.01, high * 1.01
    require(low < high, "high", high, f"above low={low:g}", "swap them")
    edges = torch.logspace(0, 1, bins + 1, base=high / low, dtype=torch.float64) * low
    edges[0], edges[-1] = low, high
    flat = flat[(flat >= low) & (flat <= high)]
    place = torch.bucketize(flat, edges[1:-1], right=True)
    counts = torch.bincount(place, minlength=bins)
    exponent, factor, r_squared = _line(edges, counts)
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()), exponent, factor, r_squared)


def _line(edges: Tensor, counts: Tensor) -> tuple[float, float, float]:
    """Return exponent, factor and r² of the power law through the non-empty bins."""
    held = counts > 0
    nan = float("nan")
    if int(held.sum()) < 2:
        return nan, nan, nan
    x = (edges[1:] * edges[:-1]).sqrt().log()[held]
    y = counts[held].double().log()
    dx, dy = x - x.mean(), y - y.mean()
    slope = float((dx * dy).sum() / dx.square().sum())
    factor = float((y.mean() - slope * x.mean()).exp())
    total = float(dy.square().sum())
    left = float((dy - slope * dx).square().sum())
    return slope, factor, 1 - left / total if total > 0 else nan
