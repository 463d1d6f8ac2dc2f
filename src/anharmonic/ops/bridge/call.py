"""A call of the C library: tensors become the fields of its C structures, and it runs."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic._checks import message
from anharmonic.ops.bridge.library import Call, library
from anharmonic.ops.bridge.plan import Plan
from anharmonic.ops.memory import off_grid

_NO_MEMORY, _GRID_OVERFLOW = 1, 2


class Inputs(NamedTuple):
    """What a forward pass and its backward pass share.

    Attributes:
        x: Input, [T, B, F], with features next to each other.
        weights: Five per layer, in the order of csrc/anharmonic.h; empty where absent.
        y0: Initial y, [L, B, H].
        values: dt, frequency, damping and gate floor where they have gradients, float64; or empty.
        elapsed: Time since the previous sample.
        lengths: Valid steps of each sequence.
        masks: Dropout factors between layers.
        plan: How the call is cut, and what is saved.
        numbers: dt, frequency, damping and gate floor, and the largest step of every layer.
    """

    x: Tensor
    weights: Sequence[Tensor]
    y0: Tensor
    values: Tensor
    elapsed: Tensor | None
    lengths: Tensor | None
    masks: Sequence[Tensor]
    plan: Plan
    numbers: Sequence[float]


def make_call(inputs: Inputs) -> tuple[Call, list[Any]]:
    """Makes a call with what forward and backward share.

    Returns:
        The call, and the Python objects that it points to, which must live as long; the first of
        them is the list of weights.
    """
    x, weights, y0, values, elapsed, lengths, masks, plan, numbers = inputs
    layers, _, hidden = y0.shape
    weights = [w.resolve_neg().contiguous() for w in weights]
    weight_table = pointers(weights)
    references: list[Any] = [weights, weight_table]
    if values.numel():
        numbers = [*values.tolist(), *numbers[4:]]
    call = Call(
        plan.model, x.element_size(), torch.get_num_threads(), *x.shape, hidden, layers, plan.skip,
        plan.block, plan.tile, plan.keep, plan.checkpoint, plan.grid, *numbers[:4],
        x.data_ptr(), x.stride(0), x.stride(1), ctypes.addressof(weight_table),
    )  # fmt: skip
    if elapsed is not None:
        elapsed = dense(elapsed)
        call.elapsed = elapsed.data_ptr()
        references.append(elapsed)
    if len(numbers) > 4:
        layer_dt = (ctypes.c_double * layers)(*numbers[4:])
        call.layer_dt = ctypes.addressof(layer_dt)
        references.append(layer_dt)
    if lengths is not None:
        lengths = lengths.contiguous()
        call.lengths = lengths.data_ptr()
        references.append(lengths)
    if masks:
        masks = [dense(m) for m in masks]
        mask_table = pointers(masks)
        call.masks = ctypes.addressof(mask_table)
        references += [masks, mask_table]
    return call, references


def pointers(tensors: Sequence[Tensor]) -> Any:
    """A C array of where tensors lie, NULL for empty ones."""
    return (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])


def pointer(tensor: Tensor | None) -> int | None:
    """Where a tensor lies; None if it is absent or empty."""
    return None if tensor is None else tensor.data_ptr() or None


def dense_rows(tensor: Tensor) -> Tensor:
    """The tensor with features next to each other, as they are in memory."""
    tensor = tensor.resolve_neg()
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] == 1 else tensor.contiguous()


def dense(tensor: Tensor) -> Tensor:
    """The tensor as it must lie in memory: contiguous, no negation pending."""
    return tensor.resolve_neg().contiguous()


def like_in_time(x: Tensor, width: int) -> Tensor:
    """An empty [T, B, width] whose memory runs over time or batch first, as that of x."""
    steps, batch, _ = x.shape
    if x.stride(0) < x.stride(1):
        return x.new_empty_strided((steps, batch, width), (width, steps * width, 1))
    return x.new_empty((steps, batch, width))


def workspace(size: int) -> Tensor:
    """Empty bytes from the library's workspace, which takes them back when the tensor dies.

    The system clears fresh pages at a few GB/s, as much time as the arithmetic on them takes; from
    the second training step on these pages are there.

    Raises:
        MemoryError: If there is no memory.

    Example:
        >>> workspace(5).shape if library() is not None else torch.Size([5])
        torch.Size([5])
    """
    loaded = library()
    assert loaded is not None  # without it no compiled chain is registered
    address = loaded.an_workspace_take(size)
    if not address:
        _raise_for(_NO_MEMORY)
    buffer = (ctypes.c_uint8 * size).from_address(address)
    weakref.finalize(buffer, loaded.an_workspace_give, address).atexit = False
    return torch.frombuffer(buffer, dtype=torch.uint8)


def invoke(function: str, call: ctypes.Structure) -> None:
    """Makes a call of the library.

    Args:
        function: One of the library's, e.g. "an_forward".
        call: What to compute.

    Raises:
        MemoryError: If there was no memory for the tiles.
        OverflowError: If states left the grid.
        RuntimeError: If the library does not know such a call.
    """
    status = getattr(library(), function)(ctypes.byref(call))
    if status:
        _raise_for(status)


def _raise_for(status: int) -> None:
    if status == _NO_MEMORY:
        raise MemoryError(
            message("the walk needs memory for its tiles", "none left", "use a smaller batch")
        )
    if status == _GRID_OVERFLOW:
        raise off_grid("a state that left the grid")
    raise RuntimeError(
        message(
            "the C library must know the model and dtype of a call",
            f"status {status}",
            "reinstall anharmonic, so that library and package are of one version",
        )
    )
