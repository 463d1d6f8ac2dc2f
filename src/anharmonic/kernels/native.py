"""The compiled backend: chains of layers as one call of the C library, with its own backward pass.

Two operators, ``anharmonic::walk`` and ``anharmonic::walk_backward``, serve all recurrences; the
files ``<model>/native.py`` say how a model's arguments become theirs.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic._checks import message
from anharmonic.kernels import plan
from anharmonic.kernels.call import Call
from anharmonic.kernels.dispatch import register, register_missing, unfit_for_cpu
from anharmonic.kernels.library import library, why_not
from anharmonic.kernels.memory import resolve

CORNN_EXPLICIT, CORNN_IMPLICIT, UNICORNN, LEM, LEM_CLIPPED, LEM_SINGLE_SCALE = range(6)
"""Models (enum an_model in csrc/anharmonic.h)."""
WEIGHTS = 5
"""Weights a layer may have (AN_WEIGHTS in csrc/anharmonic.h); absent ones are empty tensors."""
_ACTIVATIONS = {CORNN_EXPLICIT: 1, CORNN_IMPLICIT: 1, UNICORNN: 0, LEM: 4, LEM_CLIPPED: 4,
                LEM_SINGLE_SCALE: 2}  # fmt: skip
_NO_MEMORY, _GRID_OVERFLOW = 1, 2
_recorder = threading.local()


def run(
    model: int,
    x: Tensor,
    weights: Sequence[Tensor | None],
    y0: Tensor,
    z0: Tensor,
    scalars: Sequence[float | Tensor],
    *,
    skip: int = 0,
    lengths: Tensor | None,
    masks: Sequence[Tensor] | None,
    elapsed: Tensor | None,
    whole: bool,
    memory: str,
    grid: bool = False,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Runs a chain of layers.

    Args:
        model: One of the models above.
        x: Input.
        weights: WEIGHTS per layer, in the order of csrc/anharmonic.h.
        y0: Initial y.
        z0: Initial z.
        scalars: dt, frequency, damping and gate floor, where a tensor gets a gradient (coRNN), and
            behind them the largest step of every layer (UnICORNN).
        skip: S of UnICORNN's residual stacking; 0 for none.
        lengths: Valid steps of each sequence, or None.
        masks: Dropout factors between layers, or None.
        elapsed: Time since the previous sample, or None.
        whole: Whether the output is wanted.
        memory: The policy.
        grid: Whether states live on the fixed-point grid; "reversible" implies it.

    Shape:
        x [T, B, F]; y0, z0 [L, B, H]; lengths [B]; masks L - 1 times [B, H]; elapsed [T, B].
        Returns the output [T, B, H] or None, final y and z [L, B, H].
    """
    values = None
    if any(isinstance(value, Tensor) for value in scalars):
        values = torch.stack([torch.as_tensor(v).to(torch.float64) for v in scalars[:4]])
    numbers = [0.0 if isinstance(v, Tensor) else float(v) for v in scalars]
    sizes = _sizes(model, x, y0)
    grid = grid or memory == "reversible"
    rest = (lengths, masks or (), model, skip, numbers, whole)
    keeps = torch.is_grad_enabled() and any(
        t is not None and t.requires_grad for t in (x, y0, z0, *weights, values, elapsed)
    )
    if not keeps and not torch.compiler.is_compiling() and type(x) is Tensor:
        output, y, z, _ = _forward(x, weights, y0, z0, values, elapsed, *rest, "nothing", grid)
        return output, y, z
    policy = "nothing"
    if keeps:
        tile = plan.tile_steps(sizes, plan.block_rows(sizes))
        policy = resolve(memory, whole, plan.kept(sizes, "stored", tile).bytes)
    flat = [x.new_empty(0) if w is None else w for w in weights]
    values = torch.empty(0, dtype=torch.float64) if values is None else values
    output, y, z, _ = _walk_operator(
        x, flat, y0, z0, values, elapsed, lengths, list(masks or ()), *rest[2:], policy, grid
    )
    return (output if whole else None), y, z


def _sizes(model: int, x: Tensor, y0: Tensor) -> plan.Sizes:
    steps, batch, inputs = x.shape
    layers, _, hidden = y0.shape
    return plan.Sizes(steps, batch, inputs, hidden, layers, x.element_size(), _ACTIVATIONS[model])


def _like_in_time(x: Tensor, width: int) -> Tensor:
    """An empty [T, B, width] whose memory runs over time or batch first, as that of x."""
    steps, batch, _ = x.shape
    if x.stride(0) < x.stride(1):
        return x.new_empty_strided((steps, batch, width), (width, steps * width, 1))
    return x.new_empty((steps, batch, width))


def _results(
    x: Tensor, y0: Tensor, model: int, whole: bool, policy: str, grid: bool
) -> tuple[Tensor | None, Tensor, Tensor, Tensor | None]:
    """Empty output, final y, final z, and the bytes that are kept; None for what is not wanted."""
    sizes = _sizes(model, x, y0)
    saved = None
    if policy != "nothing":
        tile = plan.tile_steps(sizes, plan.block_rows(sizes))
        size = plan.kept(sizes, policy, tile, grid).bytes
        saved = x.new_empty(size, dtype=torch.uint8)
    output = _like_in_time(x, sizes.hidden) if whole else None
    shape = y0.shape
    return output, x.new_empty(shape), x.new_empty(shape), saved


def _pointer(tensor: Tensor | None) -> int | None:
    return None if tensor is None or tensor.numel() == 0 else tensor.data_ptr()


def _pointers(tensors: Sequence[Tensor | None]) -> Any:
    return (ctypes.c_void_p * len(tensors))(*[_pointer(t) for t in tensors])


def _rows(tensor: Tensor) -> Tensor:
    """The tensor with features next to each other, as they are in memory."""
    tensor = tensor.resolve_neg()
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] == 1 else tensor.contiguous()


def _prepare(
    x: Tensor,
    weights: Sequence[Tensor | None],
    y0: Tensor,
    values: Tensor | None,
    elapsed: Tensor | None,
    lengths: Tensor | None,
    masks: Sequence[Tensor],
    model: int,
    skip: int,
    numbers: Sequence[float],
    policy: str,
    grid: bool,
) -> tuple[Call, list[Any]]:
    """Fills what forward and backward share; the list holds what must outlive the call."""
    sizes = _sizes(model, x, y0)
    rows = plan.block_rows(sizes)
    tile = plan.tile_steps(sizes, rows)
    keeps = plan.Kept(plan.NOTHING, tile, 0)
    if policy != "nothing":
        keeps = plan.kept(sizes, policy, tile, grid)
    weights = [None if w is None else w.contiguous() for w in weights]
    weight_table = _pointers(weights)
    alive: list[Any] = [weights, weight_table]
    if values is not None and values.numel():
        numbers = values.tolist()
    call = Call(
        model, sizes.real_bytes, torch.get_num_threads(), *sizes[:5], skip, rows, tile, keeps.mode,
        keeps.checkpoint, grid, *numbers[:4],
        x.data_ptr(), x.stride(0), x.stride(1), ctypes.addressof(weight_table),
    )  # fmt: skip
    if elapsed is not None:
        elapsed = elapsed.contiguous()
        call.elapsed = _pointer(elapsed)
        alive.append(elapsed)
    if len(numbers) > 4:
        layer_dt = (ctypes.c_double * sizes.layers)(*numbers[4:])
        call.layer_dt = ctypes.addressof(layer_dt)
        alive.append(layer_dt)
    if lengths is not None:
        call.lengths = lengths.data_ptr()
    if masks:
        masks = [m.contiguous() for m in masks]
        mask_table = _pointers(masks)
        call.masks = ctypes.addressof(mask_table)
        alive += [masks, mask_table]
    return call, alive


def check(status: int) -> None:
    """Turns what the library returned into an error, if it is one."""
    if status == _NO_MEMORY:
        raise MemoryError(
            message("the walk needs memory for its tiles", "none left", "use a smaller batch")
        )
    if status == _GRID_OVERFLOW:
        raise OverflowError(
            message(
                "with memory='reversible' states must stay within the grid, |y|, |z| < 1024",
                "a state that left the grid",
                "use a smaller dt, scale the input, or take memory='chunked'",
            )
        )
    if status:
        raise RuntimeError(f"the C library refused a call with status {status}")


def _forward(
    x: Tensor,
    weights: Sequence[Tensor | None],
    y0: Tensor,
    z0: Tensor,
    values: Tensor | None,
    elapsed: Tensor | None,
    lengths: Tensor | None,
    masks: Sequence[Tensor],
    model: int,
    skip: int,
    numbers: Sequence[float],
    whole: bool,
    policy: str,
    grid: bool,
) -> tuple[Tensor | None, Tensor, Tensor, Tensor | None]:
    x = _rows(x)
    output, y, z, saved = _results(x, y0, model, whole, policy, grid)
    call, alive = _prepare(
        x, weights, y0, values, elapsed, lengths, masks, model, skip, numbers, policy, grid
    )
    y0, z0 = y0.contiguous(), z0.contiguous()
    call.y0, call.z0 = y0.data_ptr(), z0.data_ptr()
    call.y_n, call.z_n, call.saved = y.data_ptr(), z.data_ptr(), _pointer(saved)
    if output is not None:
        call.output = output.data_ptr()
        call.output_time, call.output_batch = output.stride(0), output.stride(1)
    check(library().an_forward(ctypes.byref(call)))  # type: ignore[union-attr]
    recorded = getattr(_recorder, "calls", None)
    if recorded is not None:
        recorded.append(Recorded(call, alive, {w.data_ptr() for w in alive[0] if w is not None}))
    return output, y, z, saved


class Recorded(NamedTuple):
    """A filled call, what its pointers need alive, and the addresses of its weights."""

    call: Call
    alive: list[Any]
    weights: set[int]


@contextmanager
def recording() -> Iterator[list[Recorded]]:
    """Collects the forward calls that this thread makes within a ``with`` block."""
    _recorder.calls = []
    try:
        yield _recorder.calls
    finally:
        _recorder.calls = None


def _walk(
    x: Tensor,
    weights: Sequence[Tensor],
    y0: Tensor,
    z0: Tensor,
    values: Tensor,
    elapsed: Tensor | None,
    lengths: Tensor | None,
    masks: Sequence[Tensor],
    model: int,
    skip: int,
    numbers: Sequence[float],
    whole: bool,
    policy: str,
    grid: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    output, y, z, saved = _forward(
        x, weights, y0, z0, values, elapsed, lengths, masks, model, skip, numbers, whole, policy,
        grid,
    )  # fmt: skip
    return _or_empty(output, x), y, z, _or_empty(saved, x)


def _or_empty(tensor: Tensor | None, like: Tensor) -> Tensor:
    """Operators return tensors only."""
    return like.new_empty(0) if tensor is None else tensor


_walk_operator = torch.library.custom_op("anharmonic::walk", _walk, mutates_args=())


@_walk_operator.register_fake
def _(x: Tensor, weights: Any, y0: Tensor, *rest: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    *_, model, _, _, whole, policy, grid = rest
    output, y, z, saved = _results(x, y0, model, whole, policy, grid)
    return _or_empty(output, x), y, z, _or_empty(saved, x)


def _walk_backward(
    grad_output: Tensor | None,
    grad_y: Tensor | None,
    grad_z: Tensor | None,
    saved: Tensor,
    x: Tensor,
    weights: Sequence[Tensor],
    y0: Tensor,
    values: Tensor,
    elapsed: Tensor | None,
    lengths: Tensor | None,
    masks: Sequence[Tensor],
    model: int,
    skip: int,
    numbers: Sequence[float],
    policy: str,
    grid: bool,
    needs_x: bool,
) -> list[Tensor]:
    x = _rows(x)
    call, alive = _prepare(
        x, weights, y0, values, elapsed, lengths, masks, model, skip, numbers, policy, grid
    )
    call.saved = saved.data_ptr()
    grads = _gradients(x, weights, y0, values, elapsed, needs_x)
    grad_x, grad_y0, grad_z0, grad_values, grad_elapsed, *grad_weights = grads
    if grad_output is not None:
        grad_output = _rows(grad_output)
        call.grad_output = grad_output.data_ptr()
        call.grad_output_time, call.grad_output_batch = (
            grad_output.stride(0), grad_output.stride(1),
        )  # fmt: skip
    grad_y = None if grad_y is None else grad_y.contiguous()
    grad_z = None if grad_z is None else grad_z.contiguous()
    call.grad_y_n, call.grad_z_n = _pointer(grad_y), _pointer(grad_z)
    if needs_x:
        call.grad_x = grad_x.data_ptr()
        call.grad_x_time, call.grad_x_batch = grad_x.stride(0), grad_x.stride(1)
    weight_table = _pointers(grad_weights)
    call.grad_weights = ctypes.addressof(weight_table)
    call.grad_y0, call.grad_z0 = _pointer(grad_y0), _pointer(grad_z0)
    call.grad_elapsed, call.grad_scalars = _pointer(grad_elapsed), _pointer(grad_values)
    check(library().an_backward(ctypes.byref(call)))  # type: ignore[union-attr]
    del alive
    return grads


def _gradients(
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


_walk_backward_operator = torch.library.custom_op(
    "anharmonic::walk_backward", _walk_backward, mutates_args=()
)


@_walk_backward_operator.register_fake
def _(
    grad_output: Any, grad_y: Any, grad_z: Any, saved: Any, x: Tensor, weights: Any, y0: Tensor,
    values: Tensor, elapsed: Tensor | None, *rest: Any,
) -> list[Tensor]:  # fmt: skip
    return _gradients(x, weights, y0, values, elapsed, rest[-1])


def _set_up(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weights, y0, _, values, elapsed, lengths, masks, *settings = inputs
    ctx.set_materialize_grads(False)
    ctx.counts = len(weights), len(masks)
    ctx.save_for_backward(output[3], x, y0, values, elapsed, lengths, *weights, *masks)
    ctx.settings = settings


def _differentiate(
    ctx: Any, grad_output: Tensor | None, grad_y: Tensor | None, grad_z: Tensor | None, _: Any
) -> tuple[Any, ...]:
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        _refuse(ctx)
    saved, x, y0, values, elapsed, lengths, *rest = ctx.saved_tensors
    weights, masks = rest[: ctx.counts[0]], rest[ctx.counts[0] :]
    model, skip, numbers, whole, policy, grid = ctx.settings
    grads = _walk_backward_operator(
        grad_output if whole else None, grad_y, grad_z, saved, x, weights, y0, values, elapsed,
        lengths, masks, model, skip, numbers, policy, grid, ctx.needs_input_grad[0],
    )  # fmt: skip
    grad_x, grad_y0, grad_z0, grad_values, grad_elapsed, *grad_weights = grads
    return (
        grad_x if ctx.needs_input_grad[0] else None,
        grad_weights,
        grad_y0,
        grad_z0,
        grad_values,
        None if elapsed is None else grad_elapsed,
        None,
        [None] * len(masks),
        *[None] * 6,
    )


def _refuse(ctx: Any, *grads: Any) -> None:
    raise RuntimeError(
        message(
            "compiled kernels can be differentiated once",
            "a second derivative",
            "compute it within anharmonic.use_backend('reference')",
        )
    )


_walk_operator.register_autograd(_differentiate, setup_context=_set_up)
_walk_backward_operator.register_autograd(_refuse, setup_context=lambda ctx, inputs, output: None)


def register_native(kernel: str, chain: Any) -> None:
    """Registers a compiled chain of a kernel, or says why there is none."""
    if library() is None:
        register_missing("native", why_not())
    else:
        register(kernel, "native", chain, unfit_for_cpu)
