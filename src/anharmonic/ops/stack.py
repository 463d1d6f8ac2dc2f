"""Layers on layers, two directions: what every kernel does around its chains.

A *chain* runs a stack in one direction, in whatever backend. A unidirectional stack is one chain; a
bidirectional one is two chains of a single layer for every layer, with the conventions of
``torch.nn.LSTM``: states are ordered layer by layer, forward before reverse, and a layer's output
is the concatenation of its directions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from anharmonic._checks import choice
from anharmonic.ops.dispatch import pick
from anharmonic.ops.memory import checked_policy
from anharmonic.ops.shapes import Shapes, check_call

OUTPUTS = ("all", "last", "none")

OneLayer = Callable[[int, list[Tensor], Any], tuple[Tensor, Any, dict[str, Any]]]
"""``one_layer(layer, levels, weight)`` -> input, weight and own arguments of that layer alone.

``levels[l]`` is the input of layer l.
"""


def run_stack(
    kernel: str,
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    own: dict[str, Any],
    shapes: Shapes,
    bidirectional: bool,
    lengths: Tensor | None,
    masks: list[Tensor] | None,
    elapsed: Tensor | None,
    output: str,
    memory: str,
    backend: str,
    invertible: bool = False,
    one_layer: OneLayer | None = None,
    unfit: str | None = None,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Runs all layers and directions of a stack on the backend that fits.

    Args:
        kernel: The kernel's name.
        x: Input.
        weights: One entry per layer and direction.
        y0: Initial y of every layer and direction.
        z0: Initial z, likewise.
        own: The model's own arguments of a chain.
        shapes: The shapes of a layer's weights.
        bidirectional: Whether each layer also walks from the end.
        lengths: Valid steps of each sequence (int64), or None if all T are; beyond its length a
            sequence's state stands still and its output is zero.
        masks: One factor per layer but the last, multiplied to that layer's output at every step
            (dropout with one mask per sequence), or None.
        elapsed: Time since the previous sample in nominal steps, or None.
        output: "all" steps, the "last" valid one of each sequence, or "none".
        memory: What is kept for the backward pass.
        backend: "auto" or a backend's name.
        invertible: Whether the steps can be undone.
        one_layer: What a single layer of a bidirectional stack is given, if not its level, weight
            and ``own``.
        unfit: Why only the reference can run this call, whatever its tensors; None if others can.

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H] with D directions; lengths [B]; masks [B, D * H] each;
        elapsed [T, B]. Returns outputs [T, B, D * H], [B, D * H] ("last") or None, final y and z
        [L * D, B, H].
    """
    choice("output", output, OUTPUTS)
    checked_policy(memory, invertible=invertible, bidirectional=bidirectional)
    check_call(
        x, weights, shapes, y0, z0, bidirectional=bidirectional, lengths=lengths, masks=masks,
        elapsed=elapsed,
    )  # fmt: skip
    whole = output == "all"
    shared = {"lengths": lengths, "memory": memory}
    chain = pick(kernel, backend, _tensors(x, y0, z0, elapsed, masks, weights, own), unfit)
    if not bidirectional:
        level, y, z = chain(
            x, weights, y0, z0, **own, **shared, masks=masks, elapsed=elapsed, whole=whole
        )
        return (y[-1].clone() if output == "last" else level), y, z
    gaps = (elapsed, None if elapsed is None else gaps_walked_back(elapsed, lengths))
    levels = [x]
    final_y: list[Tensor] = []
    final_z: list[Tensor] = []
    num_layers = len(weights) // 2
    for layer in range(num_layers):
        wanted = whole or layer < num_layers - 1
        outputs = []
        for direction in range(2):
            k = 2 * layer + direction
            source, weight, words = levels[layer], weights[k], own
            if one_layer is not None:
                source, weight, words = one_layer(layer, levels, weight)
            if direction == 1:
                source = reversed_in_time(source, lengths)
            out, y, z = chain(
                source, [weight], y0[k : k + 1], z0[k : k + 1], **words, **shared, masks=None,
                elapsed=gaps[direction], whole=wanted,
            )  # fmt: skip
            if out is not None:
                outputs.append(reversed_in_time(out, lengths) if direction == 1 else out)
            final_y.append(y)
            final_z.append(z)
        if wanted:
            level = torch.cat(outputs, dim=-1)
            levels.append(
                level if masks is None or layer == num_layers - 1 else level * masks[layer]
            )
    y, z = torch.cat(final_y), torch.cat(final_z)
    if output == "last":
        return torch.cat((y[-2], y[-1]), dim=-1), y, z
    return levels[-1] if whole else None, y, z


def _tensors(
    x: Tensor,
    y0: Tensor,
    z0: Tensor,
    elapsed: Tensor | None,
    masks: list[Tensor] | None,
    weights: Sequence[Any],
    own: dict[str, Any],
) -> list[Tensor]:
    """Every floating-point tensor of a call."""
    values = [x, y0, z0, elapsed, *(masks or ()), *own.values()]
    for several in own.values():
        if isinstance(several, list | tuple):
            values.extend(several)
    for weight in weights:
        values.extend(weight)
    return [value for value in values if isinstance(value, Tensor)]


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


def gaps_walked_back(elapsed: Tensor, lengths: Tensor | None) -> Tensor:
    """The elapsed times [T, B] in the order in which a reverse direction meets them.

    The gap between samples n and n + 1 is ``elapsed[n + 1]`` from either side, so that a walk from
    the end of N samples meets N - 1, ..., 1; its first step takes what the first sample has.

    Example:
        >>> gaps_walked_back(torch.tensor([[1.0], [2.0], [3.0], [9.0]]), torch.tensor([3]))
        tensor([[1.],
                [3.],
                [2.],
                [9.]])
    """
    if lengths is None:
        return torch.cat([elapsed[:1], elapsed[1:].flip(0)])
    steps = torch.arange(elapsed.shape[0], device=elapsed.device)[:, None]
    length = lengths.to(elapsed.device)[None, :]
    return elapsed.gather(0, torch.where(steps < length, (length - steps) % length, steps))
