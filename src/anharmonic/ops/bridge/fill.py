"""Filling the calls of the C library, and reading what they return."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic._checks import message
from anharmonic.ops.bridge.call import (
    CORNN_EXPLICIT,
    CORNN_IMPLICIT,
    LEM,
    LEM_CLIPPED,
    LEM_SINGLE_SCALE,
    UNICORNN,
    Call,
    GraphCall,
)
from anharmonic.ops.bridge.library import library
from anharmonic.ops.bridge.plan import Plan, Sizes
from anharmonic.ops.memory import off_grid

# UnICORNN keeps none: they lie in the workspace of the tile that is walked again.
_KEPT_ACTIVATIONS = {CORNN_EXPLICIT: 1, CORNN_IMPLICIT: 1, UNICORNN: 0, LEM: 4, LEM_CLIPPED: 4,
                     LEM_SINGLE_SCALE: 2}  # fmt: skip
_NO_MEMORY, _GRID_OVERFLOW = 1, 2


class Inputs(NamedTuple):
    """What a forward pass and its backward pass share.

    Attributes:
        x: Input.
        weights: Five per layer, in the order of csrc/anharmonic.h.
        y0: Initial y.
        values: dt, frequency, damping and gate floor where they have gradients, float64.
        elapsed: Time since the previous sample.
        lengths: Valid steps of each sequence.
        masks: Dropout factors between layers.
        plan: How the call is cut, and what is kept.
        numbers: dt, frequency, damping and gate floor, and the largest step of every layer.
    """

    x: Tensor
    weights: Sequence[Tensor | None]
    y0: Tensor
    values: Tensor | None
    elapsed: Tensor | None
    lengths: Tensor | None
    masks: Sequence[Tensor]
    plan: Plan
    numbers: Sequence[float]


def sizes_of(model: int, x: Tensor, y0: Tensor) -> Sizes:
    """What a call is planned by."""
    steps, batch, inputs = x.shape
    layers, _, hidden = y0.shape
    activations = _KEPT_ACTIVATIONS[model]
    return Sizes(steps, batch, inputs, hidden, layers, x.element_size(), activations)


def _like_in_time(x: Tensor, width: int) -> Tensor:
    """An empty [T, B, width] whose memory runs over time or batch first, as that of x."""
    steps, batch, _ = x.shape
    if x.stride(0) < x.stride(1):
        return x.new_empty_strided((steps, batch, width), (width, steps * width, 1))
    return x.new_empty((steps, batch, width))


def results(x: Tensor, y0: Tensor, plan: Plan) -> tuple[Tensor | None, Tensor, Tensor]:
    """Empty output (None if it is not wanted), final y and final z."""
    output = _like_in_time(x, y0.shape[2]) if plan.return_sequence else None
    return output, x.new_empty(y0.shape), x.new_empty(y0.shape)


def kept_bytes(size: int) -> Tensor:
    """Empty bytes from the library's workspace, which takes them back when the tensor dies.

    The system clears fresh pages at a few GB/s, as much time as the arithmetic on them takes; from
    the second training step on these pages are there.

    Raises:
        MemoryError: If there is no memory.

    Example:
        >>> kept_bytes(5).shape if library() is not None else torch.Size([5])
        torch.Size([5])
    """
    loaded = _loaded()
    address = loaded.an_workspace_take(size)
    if not address:
        _raise_for(_NO_MEMORY)
    buffer = (ctypes.c_uint8 * size).from_address(address)
    weakref.finalize(buffer, loaded.an_workspace_give, address).atexit = False
    return torch.frombuffer(buffer, dtype=torch.uint8)


def gradients(
    x: Tensor,
    weights: Sequence[Tensor],
    y0: Tensor,
    values: Tensor,
    elapsed: Tensor | None,
    needs_x: bool,
) -> list[Tensor]:
    """Empty gradients of x, y0, z0, scalars, elapsed and weights; absent ones have size 0."""
    return [
        _like_in_time(x, x.shape[2]) if needs_x else x.new_empty(0),
        x.new_empty(y0.shape),
        x.new_empty(y0.shape),
        x.new_zeros(values.shape, dtype=torch.float64),
        x.new_empty(0 if elapsed is None else elapsed.shape),
        *[x.new_empty(w.shape) for w in weights],
    ]


def pointer(tensor: Tensor | None) -> int | None:
    """Where a tensor lies; None if it is absent or empty."""
    return None if tensor is None or tensor.numel() == 0 else tensor.data_ptr()


def pointers(tensors: Sequence[Tensor | None]) -> Any:
    """A table of pointers, which must outlive the call."""
    return (ctypes.c_void_p * len(tensors))(*[pointer(t) for t in tensors])


def dense_rows(tensor: Tensor) -> Tensor:
    """The tensor with features next to each other, as they are in memory."""
    tensor = tensor.resolve_neg()
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] == 1 else tensor.contiguous()


def dense(tensor: Tensor) -> Tensor:
    """The tensor as it must lie in memory: contiguous, no negation pending."""
    return tensor.resolve_neg().contiguous()


def filled(inputs: Inputs) -> tuple[Call, list[Any]]:
    """Fills what forward and backward share; the list holds what must outlive the call."""
    x, weights, y0, values, elapsed, lengths, masks, plan, numbers = inputs
    layers, _, hidden = y0.shape
    weights = [None if w is None else dense(w) for w in weights]
    weight_table = pointers(weights)
    alive: list[Any] = [weights, weight_table]
    if values is not None and values.numel():
        numbers = [*values.tolist(), *numbers[4:]]
    call = Call(
        plan.model, x.element_size(), torch.get_num_threads(), *x.shape, hidden, layers, plan.skip,
        plan.block, plan.tile, plan.keep, plan.checkpoint, plan.grid, *numbers[:4],
        x.data_ptr(), x.stride(0), x.stride(1), ctypes.addressof(weight_table),
    )  # fmt: skip
    if elapsed is not None:
        elapsed = dense(elapsed)
        call.elapsed = pointer(elapsed)
        alive.append(elapsed)
    if len(numbers) > 4:
        layer_dt = (ctypes.c_double * layers)(*numbers[4:])
        call.layer_dt = ctypes.addressof(layer_dt)
        alive.append(layer_dt)
    if lengths is not None:
        lengths = lengths.contiguous()
        call.lengths = lengths.data_ptr()
        alive.append(lengths)
    if masks:
        masks = [dense(m) for m in masks]
        mask_table = pointers(masks)
        call.masks = ctypes.addressof(mask_table)
        alive += [masks, mask_table]
    return call, alive


def _loaded() -> ctypes.CDLL:
    """The library, which must be there: without it no compiled chain is registered."""
    loaded = library()
    assert loaded is not None
    return loaded


def invoke(function: str, call: Call | GraphCall) -> None:
    """Makes a call of the library.

    Args:
        function: One of the library's, e.g. "an_forward".
        call: What to compute.

    Raises:
        MemoryError: If there was no memory for the tiles.
        OverflowError: If states left the grid.
        RuntimeError: If the library does not know such a call.
    """
    _raise_for(getattr(_loaded(), function)(ctypes.byref(call)))


def _raise_for(status: int) -> None:
    if status == _NO_MEMORY:
        raise MemoryError(
            message("the walk needs memory for its tiles", "none left", "use a smaller batch")
        )
    if status == _GRID_OVERFLOW:
        raise off_grid("a state that left the grid")
    if status:
        raise RuntimeError(
            message(
                "the C library must know the model and dtype of a call",
                f"status {status}",
                "reinstall anharmonic, so that library and package are of one version",
            )
        )
