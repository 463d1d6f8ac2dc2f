"""Checks of the inputs of layers and cells: sequences, states and times."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from anharmonic import _checks, _tensors
from anharmonic.ops import State
from anharmonic.ops.backend import in_autocast


def checked_sequence(
    x: Tensor, input_size: int, batch_first: bool, example: Tensor, *, packed: bool = False
) -> Tensor:
    """Check a layer's input sequence and return it (in the layer's dtype under autocast)."""
    x = on_layer("input", x, example)
    if x.dim() not in ((2,) if packed else (2, 3)) or x.shape[-1] != input_size:
        layout = f"[B, T, {input_size}]" if batch_first else f"[T, B, {input_size}]"
        expected = f"of shape {layout}, or [T, {input_size}] unbatched"
        if packed:
            expected = f"packed data [sum of lengths, {input_size}]"
        advice = "put the features last and check input_size and batch_first"
        _checks.require(False, "input", x, expected, advice)
    if x.shape[1 if batch_first and x.dim() == 3 else 0] == 0:
        _checks.require(False, "input", x, "at least one time step long", "leave it out")
    return x


def checked_state(state: Any, shape: tuple[int, ...], example: Tensor, kind: Any = State) -> Any:
    """Check a state and return it as the named tuple ``kind``; zeros if None.

    ``shape`` is the shape of each variable, ``example`` a tensor with the layer's dtype and device.
    A state with one variable may be a bare tensor.
    """
    names = kind._fields
    if state is None:
        return kind(*[example.new_zeros(shape)] * len(names))
    state = (state,) if isinstance(state, Tensor) else state
    if not isinstance(state, (tuple, list)) or len(state) != len(names):
        held = f" of length {len(state)}" if isinstance(state, (tuple, list)) else ""
        raise TypeError(
            _checks.message(
                f"state must hold {len(names)} tensor{'s' * (len(names) > 1)}: {', '.join(names)}",
                type(state).__name__ + held,
                "pass the state an earlier call returned, or None",
            )
        )
    checked = []
    for name, given in zip(names, state, strict=True):
        value = on_layer(f"state.{name}", given, example)
        advice = (
            "its sizes are layers * directions, batch, hidden; a state of another batch or layer "
            "does not fit"
        )
        _tensors.has_shape(f"state.{name}", value, shape, advice)
        checked.append(value)
    return kind(*checked)


def checked_elapsed(elapsed: Any, shape: tuple[int, ...], layer: Any) -> Tensor:
    """Check the time since each previous sample and return it.

    Warn once per layer if a gap makes a step too long to be stable. Values are checked only on the
    CPU, outside transforms and compilation, where the check is cheap.
    """
    times = on_layer("elapsed", elapsed, layer._example)
    if tuple(times.shape) != shape:
        raise ValueError(
            _checks.message(
                f"elapsed must have the shape of x without its features, {list(shape)}",
                _checks.described(times),
                "give one time per sample",
            )
        )
    longest = _tensors.nonnegative("elapsed", times)
    if longest > 1 and not layer._gaps_warned:
        layer._gaps_warned = layer._warn_unstable(longest)
    return times


def refuse_elapsed(layer: torch.nn.Module, elapsed: Any) -> None:
    """Raise an error if ``elapsed`` is given to a layer without a step size."""
    _checks.require(
        elapsed is None, "elapsed", elapsed, f"None for {type(layer).__name__}",
        "append it to the features of x, or take a layer with a step size, such as CoRNN or LEM",
    )  # fmt: skip


def padded_elapsed(elapsed: Any, lengths: Tensor, layer: Any) -> Tensor:
    """Check ``elapsed`` of a packed input, itself packed or padded, and return it as [T, B]."""
    if not isinstance(elapsed, PackedSequence):
        shape = (int(lengths.max()), len(lengths))
        times = checked_elapsed(elapsed, shape[::-1] if layer.batch_first else shape, layer)
        return times.t() if layer.batch_first else times
    checked_elapsed(elapsed.data, (int(lengths.sum()),), layer)
    padded, own_lengths = pad_packed_sequence(elapsed)
    if not torch.equal(own_lengths, lengths):
        raise ValueError(
            _checks.message(
                f"packed elapsed must have the lengths of x, {lengths.tolist()}",
                f"{own_lengths.tolist()}",
                "pack both with the same lengths",
            )
        )
    return on_layer("elapsed", padded, layer._example)


def check_can_step(layer: Any) -> None:
    """Raise an error if streaming cannot reproduce ``forward``."""
    if layer.bidirectional:
        raise ValueError(
            _checks.message(
                "step() needs a unidirectional layer",
                "bidirectional=True",
                "a reverse direction must see the end first: call the layer on whole sequences",
            )
        )
    _checks.require(
        not (layer.training and layer.dropout > 0 and layer.num_layers > 1),
        "dropout", layer.dropout, "0 for step() in training mode",
        "call layer.eval() first, or train on whole sequences",
    )  # fmt: skip


def checked_step(x_t: Tensor, input_size: int, example: Tensor) -> Tensor:
    """Check the features of one time step, [B, F] or [F], and return them."""
    x_t = on_layer("x_t", x_t, example)
    _checks.require(
        x_t.dim() in (1, 2) and x_t.shape[-1] == input_size, "x_t", x_t,
        f"of shape [B, {input_size}] or [{input_size}]", "pass the features of one time step",
    )  # fmt: skip
    return x_t


def on_layer(name: str, value: Any, example: Tensor) -> Tensor:
    """Check dtype and device against the layer's; convert the dtype under autocast."""
    dtype, device = example.dtype, example.device
    if isinstance(value, Tensor) and value.device == device:
        if value.dtype is dtype:
            return value
        if in_autocast(value):
            return value.to(dtype)
    return _tensors.tensor_like(name, value, dtype=dtype, device=device)
