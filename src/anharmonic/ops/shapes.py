"""Checks what a kernel is called with: compiled code trusts the sizes it is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from anharmonic._checks import described, has_shape, has_values, message

Shapes = Callable[[int, list[int], int], dict[str, tuple[int, ...]]]
"""``shapes(layer, widths, hidden)``: the shapes of a layer's weights by field.

``widths[l]`` is the width of level l: the input for 0, what layer l - 1 gives for l.
"""
OPTIONAL = ("bias", "weight_skip")


def check_call(
    x: Tensor,
    weights: Sequence[Any],
    shapes: Shapes,
    y0: Tensor,
    z0: Tensor,
    *,
    bidirectional: bool,
    lengths: Tensor | None,
    masks: Sequence[Tensor] | None,
    elapsed: Tensor | None,
) -> None:
    """Checks the shapes of a call against each other; the arguments are those of ``run_stack``.

    Raises:
        ValueError: If a shape does not fit, a weight is missing, there is nothing to walk over, or
            a length is not in [0, T].

    Example:
        >>> x, zero = torch.ones(5, 2, 1), torch.zeros(1, 3, 4)
        >>> check_call(
        ...     x, [], lambda *_: {}, zero, zero, bidirectional=False, lengths=None, masks=None,
        ...     elapsed=None,
        ... )
        Traceback (most recent call last):
        ...
        ValueError: y0 must have shape [0, 2, 4]; got shape [1, 3, 4], torch.float32; its sizes ...
    """
    if x.dim() != 3 or 0 in x.shape:
        raise ValueError(
            message(
                "x must have shape [T, B, F] with at least one step and one sequence",
                described(x),
                "put time first and leave empty batches out",
            )
        )
    steps, batch, inputs = x.shape
    directions = 2 if bidirectional else 1
    levels, layers = len(weights), len(weights) // directions
    hidden = y0.shape[-1] if y0.dim() else 0
    for name, state in (("y0", y0), ("z0", z0)):
        has_shape(name, state, (levels, batch, hidden), "its sizes are levels, batch, hidden")
    if levels == 0 or levels % directions:
        raise ValueError(
            message(
                "weights must have one entry per layer and direction",
                f"{levels} entries, bidirectional={bidirectional}",
                "give every layer its own",
            )
        )
    widths = [inputs] + [directions * hidden] * layers
    for k, weight in enumerate(weights):
        expected = shapes(k // directions, widths, hidden)
        for name, value in weight._asdict().items():
            if value is None and (name in OPTIONAL or name not in expected):
                continue
            shape = expected.get(name)
            if value is None or shape is None or value.shape != shape:
                raise ValueError(
                    message(
                        f"weights[{k}].{name} must "
                        + ("be None" if shape is None else f"have shape {list(shape)}"),
                        "None" if value is None else described(value),
                        "weights fit the sizes of x and y0, layer by layer",
                    )
                )
    if elapsed is not None:
        has_shape("elapsed", elapsed, (steps, batch), "give one time per sample")
    if masks is not None:
        if len(masks) != layers - 1:
            raise ValueError(
                message(
                    f"masks must be one per layer but the last, {layers - 1}",
                    f"{len(masks)}",
                    "leave the top layer's out",
                )
            )
        for k, mask in enumerate(masks):
            has_shape(f"masks[{k}]", mask, (batch, directions * hidden), "one per sequence")
            if mask.requires_grad:
                raise ValueError(
                    message(f"masks[{k}] must be a constant", "one with a gradient", "detach it")
                )
    if lengths is not None:
        _check_lengths(lengths, steps, batch)


def _check_lengths(lengths: Tensor, steps: int, batch: int) -> None:
    if lengths.shape != (batch,) or lengths.dtype is not torch.int64 or not lengths.is_cpu:
        raise ValueError(
            message(
                f"lengths must be an int64 tensor of shape [{batch}] on the CPU",
                described(lengths),
                "use what pad_packed_sequence returns",
            )
        )
    if not has_values(lengths):
        return
    low, high = (int(end) for end in lengths.aminmax())
    if low < 0 or high > steps:
        raise ValueError(
            message(
                f"lengths must be in [0, {steps}]",
                f"values from {low} to {high}",
                "count the valid steps of each sequence",
            )
        )
