"""Layers on layers, two directions, ragged lengths: what every reference recurrence shares.

A recurrence only knows how to walk one layer forwards in time. ``run_stack`` does the rest, with
the conventions of ``torch.nn.LSTM``: states are ordered layer by layer, forward before reverse,
and a layer's output is the concatenation of its directions.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Source = Callable[[int], Tensor]
"""``source(l)`` is level l in walking order: 0 the input, l the output of layer l."""

Walk = Callable[[int, int, Source, Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor, Tensor]]
"""``walk(k, layer, source, y0, z0, valid)`` -> outputs [T, B, H], final y, final z [B, H]."""


def run_stack(
    walk: Walk,
    x: Tensor,
    y0: Tensor,
    z0: Tensor,
    *,
    bidirectional: bool,
    lengths: Tensor | None,
    masks: list[Tensor] | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Runs all layers and directions of a stack.

    Args:
        walk: Runs one layer in one direction.
        x: Input.
        y0: Initial y of every layer and direction.
        z0: Initial z, likewise.
        bidirectional: Whether each layer also walks from the end.
        lengths: Valid steps of each sequence (int64), or None if all T are; beyond its length a
            sequence's state stands still and its output is zero.
        masks: One factor per layer but the last, multiplied to that layer's output at every step
            (dropout with one mask per sequence), or None.

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H] with D directions; lengths [B]; masks [B, D * H] each.
        Returns outputs [T, B, D * H], final y and z [L * D, B, H].
    """
    directions = 2 if bidirectional else 1
    num_layers = y0.shape[0] // directions
    valid = None if lengths is None else _valid_steps(x, lengths)
    levels = [x]
    final_y: list[Tensor] = []
    final_z: list[Tensor] = []
    for layer in range(num_layers):
        outputs: list[Tensor] = []
        for direction in range(directions):
            k = layer * directions + direction

            def source(level: int, reverse: bool = direction == 1) -> Tensor:
                return reversed_in_time(levels[level], lengths) if reverse else levels[level]

            output, y, z = walk(k, layer, source, y0[k], z0[k], valid)
            if valid is not None:
                output = torch.where(valid, output, torch.zeros_like(output))
            outputs.append(reversed_in_time(output, lengths) if direction == 1 else output)
            final_y.append(y)
            final_z.append(z)
        level = outputs[0] if directions == 1 else torch.cat(outputs, dim=-1)
        if masks is not None and layer < num_layers - 1:
            level = level * masks[layer]
        levels.append(level)
    return levels[-1], torch.stack(final_y), torch.stack(final_z)


def reversed_in_time(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Turns each sequence of [T, B, F] around within its own length; padding stays where it is.

    Example:
        >>> x = torch.tensor([1.0, 2.0, 3.0]).reshape(3, 1, 1)
        >>> reversed_in_time(x, torch.tensor([2])).flatten().tolist()
        [2.0, 1.0, 3.0]
    """
    if lengths is None:
        return x.flip(0)
    steps = torch.arange(x.shape[0], device=x.device)[:, None]
    last = lengths.to(x.device)[None, :] - 1
    index = torch.where(steps <= last, last - steps, steps)
    return x.gather(0, index[:, :, None].expand_as(x))


def _valid_steps(x: Tensor, lengths: Tensor) -> Tensor:
    """Says which steps of [T, B, 1] lie within their sequence."""
    steps = torch.arange(x.shape[0], device=x.device)[:, None]
    return (steps < lengths.to(x.device)[None, :])[:, :, None]


def hold(valid: Tensor | None, steps: int) -> list[Tensor] | list[None]:
    """Splits the validity mask into one entry per step (None where every step is valid).

    Example:
        >>> hold(None, 2)
        [None, None]
    """
    return [None] * steps if valid is None else list(valid.unbind(0))
