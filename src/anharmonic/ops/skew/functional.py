"""The recurrence with a skew-symmetric matrix as a function on whole sequences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from torch import Tensor

from anharmonic.ops.dispatch import register
from anharmonic.ops.recurrence import HiddenState, stepwise
from anharmonic.ops.replay import run_chain
from anharmonic.ops.sequence import Recurrence, SequenceOptions, run_sequence
from anharmonic.ops.skew.step import SkewWeights, skew_layer, skew_step


def skew(
    x: Tensor,
    weights: list[SkewWeights],
    y0: Tensor,
    *,
    dt: float,
    **options: Unpack[SequenceOptions],
) -> tuple[Tensor | None, Tensor]:
    """Runs a stack of skew-symmetric layers over a sequence; the equation is ``skew_step``'s.

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial states.
        dt: Step, > 0.
        options: Directions, lengths, memory and the like: see ``SequenceOptions``.

    Shape:
        x [T, B, F]; y0 [L * D, B, H] with D directions. Returns outputs y [T, B, D * H] ([B, D * H]
        for ``output="last"``, None for "none") and final y [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, a shape does not fit, or the policy or backend cannot run
            this input.

    Example:
        >>> import torch
        >>> w = SkewWeights(torch.ones(6, 2), torch.zeros(6, 3), None)
        >>> out, y = skew(torch.ones(5, 4, 2), [w], torch.zeros(1, 4, 3), dt=0.1)
        >>> out.shape, torch.equal(out[-1], y[0])
        (torch.Size([5, 4, 3]), True)
    """
    recurrence = Recurrence("skew", {"dt": dt}, _shapes)
    return run_sequence(recurrence, x, weights, (y0,), **options)  # type: ignore[return-value]


def _shapes(layer: int, widths: list[int], hidden: int) -> dict[str, tuple[int, ...]]:
    return {
        "weight_ih": (2 * hidden, widths[layer]),
        "weight_hh": (2 * hidden, hidden),
        "bias": (2 * hidden,),
    }


def _reference(
    x: Tensor, weights: Sequence[SkewWeights], y0: Tensor, *, dt: float, **shared: Any
) -> tuple[Tensor | None, Tensor]:
    walk = stepwise(partial(skew_layer, dt=dt), skew_step)
    return run_chain(walk, x, weights, HiddenState(y0), **shared)


register("skew", "reference", _reference)
