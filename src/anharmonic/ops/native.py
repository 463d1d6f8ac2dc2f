"""The compiled backend: a stack of layers as one call of the C library.

``run`` plans the call and passes it to ``_walk``, which makes the C call. It does so inside
``_Walk`` if autograd may need it, or through the operator ``anharmonic::walk`` under a compiler or
for export. An equation's ``compiled`` names the library's model.

A plan defines blocks of batch rows, tiles of time, and what is saved. The rows and tiles of each
sum do not depend on threads or memory policy, so neither changes a bit of the result. Threads only
determine how many rows run together.
"""

from __future__ import annotations

import ctypes
import functools
import math
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic._checks import message
from anharmonic._tensors import watched
from anharmonic.ops.backend import current_precision, needs_gradient, off_grid, resolve
from anharmonic.ops.equation import Compiled, Equation
from anharmonic.ops.library import Call, has_bfloat16, library

MODELS = (
    "cornn_explicit", "cornn_implicit", "unicornn", "lem", "lem_clipped", "lem_single_scale",
)  # fmt: skip
"""Models by number (enum an_model in csrc/anharmonic.h)."""

# Values saved per neuron and step. UnICORNN's activations are in the workspace of the recomputed
# tile.
_ACTIVATIONS = (1, 1, 0, 4, 4, 2)


ROW_UNIT = 16
"""Saved rows are padded to a multiple of this (KEPT_UNIT in csrc/chain.h)."""
_BLOCK_ROWS = 8
_MOST_BLOCKS = 32
_MOST_GRADIENT_BYTES = 64 * 2**20
_TILE_ELEMENTS = 16384
_LONGEST_TILE = 64
_NO_MEMORY, _GRID_OVERFLOW = 1, 2

NOTHING, ALL, CHECKPOINTS, END = range(4)
"""What is saved between forward and backward (enum an_keep in csrc/anharmonic.h)."""


def run(
    equation: Equation,
    x: Tensor,
    weights: Sequence[Any],
    state: Sequence[Tensor],
    *,
    lengths: Tensor | None,
    masks: Sequence[Tensor] | None,
    elapsed: Tensor | None,
    return_sequence: bool,
    memory: str,
    grid: bool = False,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Run a stack in one direction as one call; arguments and results as in ``reference.run``.

    With ``grid`` states are on the fixed-point grid, which "reversible" implies.
    """
    compiled = equation.compiled()
    assert compiled is not None
    model, skip, scalars = MODELS.index(compiled.model), compiled.skipped_layers, compiled.numbers
    (y0, z0), absent = state, x.new_empty(0)
    flat = library_weights(compiled, weights, absent)
    values, numbers = x.new_empty(0, dtype=torch.float64), [0.0] * len(scalars)
    trained = False
    for k, scalar in enumerate(scalars):
        if isinstance(scalar, Tensor):
            trained = True
        else:
            numbers[k] = float(scalar)
    if trained:
        values = torch.stack([torch.as_tensor(v).to(torch.float64) for v in scalars[:4]])
    seen = watched()
    if seen and torch._C._get_tracing_state() is not None:
        raise TypeError(
            message(
                "torch.jit.trace cannot record the C library",
                f"a call of {compiled.model} under it",
                "use torch.export.export, or trace within anharmonic.use_backend('reference'), "
                "which records every step",
            )
        )
    has_gradient = needs_gradient((x, y0, z0, values, elapsed, *flat))
    grid = grid or memory == "reversible"
    dropped = list(masks or ())
    rounds = rounds_to_bfloat16(x.dtype)
    if not has_gradient and torch.compiler.is_exporting():
        # AOTInductor passes None for an empty list.
        dropped = dropped or [absent]
        # Plan at each call, because a stored plan would fix the program to the example's sizes.
        plan = Plan(model, skip, int(return_sequence), int(grid), rounds, 0, 0, 0, NOTHING, 0, 0)
    else:
        (steps, batch, inputs), (layers, _, hidden) = x.shape, y0.shape
        plan = (plan_call if seen else plan_again)(
            model, steps, batch, inputs, layers, hidden, x.element_size(),
            memory if has_gradient else None, return_sequence, skip, grid,
            2 if seen else torch.get_num_threads(),  # a compiler has no number of threads
            rounds,
        )  # fmt: skip
    if seen or type(x) is not Tensor:
        output, y, z, _ = walk(x, flat, y0, z0, values, elapsed, lengths, dropped, plan, numbers)
    elif has_gradient:
        output, y, z = _Walk.apply(  # type: ignore[no-untyped-call]
            x, y0, z0, values, elapsed, lengths, dropped, plan, numbers, *flat
        )
    else:
        output, y, z, _ = _walk(x, flat, y0, z0, values, elapsed, lengths, dropped, plan, numbers)
    return (output if return_sequence else None), y, z


def library_weights(compiled: Compiled, weights: Sequence[Any], absent: Tensor) -> list[Tensor]:
    """Return the weights for the C library, five per layer; ``absent`` for missing ones."""
    flat: list[Tensor] = []
    for layer in weights:
        own = layer if compiled.weights is None else compiled.weights(layer)
        for weight in own:
            flat.append(absent if weight is None else weight)
        flat += [absent] * (5 - len(own))
    return flat


def rounds_to_bfloat16(dtype: torch.dtype) -> bool:
    """Whether ``use_precision`` requests bfloat16 products and this processor has them.

    Warn once if the processor lacks them.
    """
    if current_precision() != "bfloat16" or dtype is not torch.float32:
        return False
    available = has_bfloat16()
    if not available and not torch.compiler.is_compiling():
        _warn_of_float32()
    return available


@functools.cache
def _warn_of_float32() -> None:
    warnings.warn(
        "use_precision('bfloat16') needs a processor with AVX512-BF16; "
        "on this one matrix products stay in float32.",
        UserWarning,
        stacklevel=2,
    )


def prepared_call(
    equation: Equation, x: Tensor, weights: Sequence[Any], y0: Tensor, memory: str
) -> Call:
    """Return a call without gradients for an input [T, B, F] and states [L, B, H] like these.

    Pointers of input, state and results are not set yet. The equation's numbers must not be
    tensors.
    """
    compiled = equation.compiled()
    assert compiled is not None
    plan = plan_again(
        MODELS.index(compiled.model), *x.shape, *y0.shape[::2], x.element_size(), None, False,
        compiled.skipped_layers, memory == "reversible", torch.get_num_threads(),
        rounds_to_bfloat16(x.dtype),
    )  # fmt: skip
    numbers = [float(number) for number in compiled.numbers]
    flat = library_weights(compiled, weights, x.new_empty(0))
    values = x.new_empty(0, dtype=torch.float64)
    return _make_call(x, flat, y0, values, None, None, [], plan, numbers)


# ---- how a call is cut ---------------------------------------------------------------------------
class Plan(NamedTuple):
    """The plan of a call as integers, the form that operators accept.

    Attributes:
        model: One of the models, by number.
        skip: S of UnICORNN's residual stacking; 0 for none.
        return_sequence: Whether to return the output.
        grid: Whether states are on the fixed-point grid.
        bfloat16: Whether to round operands of matrix products to bfloat16.
        block: Number of batch rows that run together; 0 to plan at run time.
        sum_rows: Number of these whose weight gradients are summed together.
        tile: Number of steps processed together.
        keep: What is saved between forward and backward (NOTHING, ALL, CHECKPOINTS or END).
        checkpoint: Number of steps between saved states.
        saved_bytes: Size of all saved data.
    """

    model: int
    skip: int
    return_sequence: int
    grid: int
    bfloat16: int
    block: int
    sum_rows: int
    tile: int
    keep: int
    checkpoint: int
    saved_bytes: int


def plan_call(
    model: int,
    steps: int,
    batch: int,
    inputs: int,
    layers: int,
    hidden: int,
    real_bytes: int,
    memory: str | None,
    return_sequence: bool,
    skip: int,
    grid: bool,
    threads: int = 1,
    bfloat16: bool = False,
) -> Plan:
    """Plan a call; ``memory`` is the policy, None without a backward pass.

    Plain integer arithmetic, so that it also works on the symbolic sizes of a compiler.

    Example:
        >>> plan_call(3, 1000, 32, 1, 1, 128, 4, "auto", True, 0, False)[5:9]
        (8, 8, 16, 1)
    """
    row = (hidden + ROW_UNIT - 1) // ROW_UNIT * ROW_UNIT
    sum_rows = rows_summed_together(batch, 5 * layers * hidden * (hidden + inputs) * real_bytes)
    # A second thread takes the other half of a small batch. A single thread runs two sequences
    # together, because one alone waits for the weights and two take hardly longer.
    alone = threads == 1 or sum_rows == 1
    block = sum_rows * max(1, _BLOCK_ROWS // sum_rows) if alone else sum_rows
    fitting = _TILE_ELEMENTS // (sum_rows * row)  # as many steps as fit into the cache
    tile = min(max(fitting, 8), _LONGEST_TILE, steps)
    keep, checkpoint, saved_bytes = NOTHING, tile, 0
    if memory is not None:
        states = 2 * layers * batch * row * (8 if grid else real_bytes)
        every = layers * batch * row * _ACTIVATIONS[model] * real_bytes
        policy = "stored" if memory == "auto" else memory
        saved = saved_states(policy, steps, tile, states, every, _ACTIVATIONS[model])
        if memory == "auto" and resolve(memory, return_sequence, saved[2]) == "chunked":
            saved = saved_states("chunked", steps, tile, states, every, _ACTIVATIONS[model])
        keep, checkpoint, saved_bytes = saved
    return Plan(
        model,
        skip,
        int(return_sequence),
        int(grid),
        int(bfloat16),
        block,
        sum_rows,
        tile,
        keep,
        checkpoint,
        saved_bytes,
    )


plan_again = functools.lru_cache(maxsize=256)(plan_call)
"""``plan_call`` with a cache, because a training loop repeats its calls."""


def rows_summed_together(batch: int, gradient_bytes: int) -> int:
    """Return the number of batch rows per partial sum, each of which has a copy of the gradients.

    Example:
        >>> [rows_summed_together(batch, 5280) for batch in (1, 8, 32, 1000)]
        [1, 4, 8, 32]
    """
    rows = min(_BLOCK_ROWS, (batch + 1) // 2)
    if batch > _MOST_BLOCKS * _BLOCK_ROWS:
        rows = -(-batch // (_MOST_BLOCKS * _BLOCK_ROWS)) * _BLOCK_ROWS
    while -(-batch // rows) * gradient_bytes > _MOST_GRADIENT_BYTES and rows < batch:
        rows *= 2
    return rows


def saved_states(
    policy: str, steps: int, tile: int, states: int, every: int, activations: int
) -> tuple[int, int, int]:
    """Return what a policy saves: a mode, the steps between saved states, and the total size.

    ``states`` is the size of one state in bytes, ``every`` that of one step's activations.

    Example:
        >>> [saved_states(p, 10_000, 64, 128, 64, 1)[2] for p in ("stored", "chunked")]
        [660096, 10112]
    """
    if policy == "reversible":
        return END, steps, states
    if policy == "stored":
        return ALL, tile, -(-steps // tile) * states + steps * every
    # Saved are T / K states of 2 numbers. A recomputed chunk needs K steps of activations, or K /
    # tile states without activations. These K minimise the sum.
    best = math.sqrt(2 * steps / activations) if activations else math.sqrt(steps * tile)
    length = tile * max(1, round(best / tile))
    return CHECKPOINTS, length, -(-steps // length) * states


# ---- one call ------------------------------------------------------------------------------------
def _make_call(
    x: Tensor,
    weights: Sequence[Tensor],
    y0: Tensor,
    values: Tensor,
    elapsed: Tensor | None,
    lengths: Tensor | None,
    masks: Sequence[Tensor],
    plan: Plan,
    numbers: Sequence[float],
) -> Call:
    """Make a call with the parts shared by forward and backward; arguments as in ``_walk``."""
    layers, _, hidden = y0.shape
    weights = list(map(dense, weights))
    weight_table = pointers(weights)
    if values.numel():
        numbers = [*values.tolist(), *numbers[4:]]
    call = Call(
        plan.model, x.element_size(), torch.get_num_threads(), plan.bfloat16, *x.shape, hidden,
        layers, plan.skip, plan.block, plan.sum_rows, plan.tile, plan.keep, plan.checkpoint,
        plan.grid, *numbers[:4],
        x.data_ptr(), x.stride(0), x.stride(1), ctypes.addressof(weight_table),
    )  # fmt: skip
    call.references = [weights, weight_table]
    if elapsed is not None:
        elapsed = dense(elapsed)
        call.elapsed = elapsed.data_ptr()
        call.references.append(elapsed)
    if len(numbers) > 4:
        layer_steps = numbers[4:] if len(numbers) > 5 else [numbers[4]] * layers
        layer_dt = (ctypes.c_double * layers)(*layer_steps)
        call.layer_dt = ctypes.addressof(layer_dt)
        call.references.append(layer_dt)
    if lengths is not None:
        lengths = lengths.contiguous()
        call.lengths = lengths.data_ptr()
        call.references.append(lengths)
    if masks:
        masks = [dense(m) for m in masks]
        mask_table = pointers(masks)
        call.masks = ctypes.addressof(mask_table)
        call.references += [masks, mask_table]
    return call


def pointers(tensors: Sequence[Tensor]) -> Any:
    """Return a C array of the tensors' addresses, NULL for empty ones."""
    return (ctypes.c_void_p * len(tensors))(*map(Tensor.data_ptr, tensors))


def pointer(tensor: Tensor | None) -> int | None:
    """Return a tensor's address; None if it is absent or empty."""
    return None if tensor is None else tensor.data_ptr() or None


def dense_rows(tensor: Tensor) -> Tensor:
    """Return the tensor with contiguous features."""
    tensor = tensor.resolve_neg()
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] == 1 else tensor.contiguous()


def dense(tensor: Tensor) -> Tensor:
    """Return the tensor in contiguous memory without a pending negation."""
    return tensor.resolve_neg().contiguous()


def like_in_time(x: Tensor, width: int) -> Tensor:
    """Return an empty [T, B, width] with the same memory order of time and batch as x."""
    steps, batch, _ = x.shape
    if x.stride(0) < x.stride(1):
        return x.new_empty_strided((steps, batch, width), (width, steps * width, 1))
    return x.new_empty((steps, batch, width))


def workspace(size: int) -> Tensor:
    """Return empty bytes from the library's workspace, which reclaims them after use.

    The system clears fresh pages at a few GB/s, which takes as long as the arithmetic on them. From
    the second training step on the workspace reuses its pages.
    """
    loaded = library()
    assert loaded is not None  # `choose` selects this backend only with the library
    address = loaded.an_workspace_take(size)
    if not address:
        _raise_for(_NO_MEMORY)
    buffer = (ctypes.c_uint8 * size).from_address(address)
    weakref.finalize(buffer, loaded.an_workspace_give, address).atexit = False
    return torch.frombuffer(buffer, dtype=torch.uint8)


def invoke(function: str, call: ctypes.Structure) -> None:
    """Call a function of the library, such as "an_forward"; ``_raise_for`` raises errors."""
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


# ---- the operators -------------------------------------------------------------------------------
def operator(
    name: str,
    function: Callable[..., Any],
    fake: Callable[..., Any],
    backward: Callable[..., Any],
    set_up: Callable[..., None] | None = None,
    devices: Sequence[str] = ("cpu",),
) -> Any:
    """Make an operator of ``torch.ops.anharmonic`` with the schema of a function.

    Unlike ``custom_op``, its first call does not import the compiler.
    """
    full_name = f"anharmonic::{name}"
    schema = torch.library.infer_schema(function, mutates_args=())
    torch.library.define(full_name, schema, tags=torch.Tag.pt2_compliant_tag)
    torch.library.impl(full_name, devices, function)
    torch.library.register_fake(full_name, fake)
    torch.library.register_autograd(full_name, backward, setup_context=set_up)
    return getattr(torch.ops.anharmonic, name).default


def refuse(ctx: Any, *grads: Any) -> None:
    """Raise an error for second derivatives of compiled code, with advice."""
    raise RuntimeError(
        message(
            "compiled kernels can be differentiated once",
            "a second derivative",
            "run the model, too, within anharmonic.use_backend('reference')",
        )
    )


def refuse_second_derivative(ctx: Any) -> None:
    """Refuse ``create_graph=True``, except in a compiler's own trace."""
    if torch.is_grad_enabled() and not torch.compiler.is_compiling():
        refuse(ctx)


def _walk(
    x: Tensor,
    weights: Sequence[Tensor],
    y0: Tensor,
    z0: Tensor,
    values: Tensor,
    elapsed: Tensor | None,
    lengths: Tensor | None,
    masks: Sequence[Tensor],
    plan: Sequence[int],
    numbers: Sequence[float],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Call the library and return output, final y, final z and the saved bytes."""
    x, y0, z0, cut = dense_rows(x), dense(y0), dense(z0), Plan(*plan)
    if cut.block == 0:  # an exported program, possibly on another processor
        wanted, grid = bool(cut.return_sequence), bool(cut.grid)
        cut = plan_again(
            cut.model, *x.shape, *y0.shape[::2], x.element_size(), None, wanted, cut.skip, grid,
            torch.get_num_threads(), bool(cut.bfloat16) and has_bfloat16(),
        )  # fmt: skip
    output, y, z = _results(x, y0, cut)
    saved = workspace(cut.saved_bytes) if cut.saved_bytes else x.new_empty(0, dtype=torch.uint8)
    masks = list(filter(Tensor.numel, masks))
    call = _make_call(x, weights, y0, values, elapsed, lengths, masks, cut, numbers)
    call.y0, call.z0 = y0.data_ptr(), z0.data_ptr()
    call.y_n, call.z_n, call.saved = y.data_ptr(), z.data_ptr(), saved.data_ptr()
    if cut.return_sequence:
        call.output = output.data_ptr()
        call.output_time, call.output_batch = output.stride(0), output.stride(1)
    invoke("an_forward", call)
    return output, y, z, saved


def _results(x: Tensor, y0: Tensor, plan: Plan) -> tuple[Tensor, Tensor, Tensor]:
    """Return empty output (of size 0 if not requested), final y and final z."""
    output = like_in_time(x, y0.shape[2]) if plan.return_sequence else x.new_empty(0)
    return output, x.new_empty(y0.shape), x.new_empty(y0.shape)


def _walk_fake(
    x: Tensor, weights: Any, y0: Tensor, *rest: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    plan = Plan(*rest[-2])
    x = dense_rows(x)
    return *_results(x, y0, plan), x.new_empty(plan.saved_bytes, dtype=torch.uint8)


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
    plan: Sequence[int],
    numbers: Sequence[float],
    needs_x: bool,
) -> list[Tensor]:
    """Return gradients of x, y0, z0, scalars, elapsed and weights; absent ones have size 0."""
    x = dense_rows(x)
    call = _make_call(x, weights, y0, values, elapsed, lengths, masks, Plan(*plan), numbers)
    call.saved = saved.data_ptr()
    grads = _gradients(x, weights, y0, values, elapsed, needs_x)
    grad_x, grad_y0, grad_z0, grad_values, grad_elapsed, *grad_weights = grads
    if grad_output is not None:
        grad_output = dense_rows(grad_output)
        call.grad_output = grad_output.data_ptr()
        call.grad_output_time, call.grad_output_batch = (
            grad_output.stride(0), grad_output.stride(1),
        )  # fmt: skip
    grad_y = None if grad_y is None else dense(grad_y)
    grad_z = None if grad_z is None else dense(grad_z)
    call.grad_y_n, call.grad_z_n = pointer(grad_y), pointer(grad_z)
    if needs_x:
        call.grad_x = grad_x.data_ptr()
        call.grad_x_time, call.grad_x_batch = grad_x.stride(0), grad_x.stride(1)
    weight_table = pointers(grad_weights)
    call.grad_weights = ctypes.addressof(weight_table)
    call.grad_y0, call.grad_z0 = pointer(grad_y0), pointer(grad_z0)
    call.grad_elapsed, call.grad_scalars = pointer(grad_elapsed), pointer(grad_values)
    invoke("an_backward", call)
    return grads


def _gradients(
    x: Tensor,
    weights: Sequence[Tensor],
    y0: Tensor,
    values: Tensor,
    elapsed: Tensor | None,
    needs_x: bool,
) -> list[Tensor]:
    """Return empty tensors for the results of ``_walk_backward``."""
    return [
        like_in_time(x, x.shape[2]) if needs_x else x.new_empty(0),
        x.new_empty(y0.shape),
        x.new_empty(y0.shape),
        x.new_zeros(values.shape, dtype=torch.float64),
        x.new_empty(0 if elapsed is None else elapsed.shape),
        *[x.new_empty(w.shape) for w in weights],
    ]


def _walk_backward_fake(
    grad_output: Any, grad_y: Any, grad_z: Any, saved: Any, x: Tensor, weights: Any, y0: Tensor,
    values: Tensor, elapsed: Tensor | None, *rest: Any,
) -> list[Tensor]:  # fmt: skip
    return _gradients(dense_rows(x), weights, y0, values, elapsed, rest[-1])


def _set_up(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weights, y0, _, values, elapsed, lengths, masks, *settings = inputs
    ctx.set_materialize_grads(False)
    ctx.counts = len(weights), len(masks)
    ctx.save_for_backward(output[3], x, y0, values, elapsed, lengths, *weights, *masks)
    ctx.plan, ctx.numbers = settings


def _differentiate(
    ctx: Any, grad_output: Tensor | None, grad_y: Tensor | None, grad_z: Tensor | None, _: Any
) -> tuple[Any, ...]:
    refuse_second_derivative(ctx)
    saved, x, y0, values, elapsed, lengths, *rest = ctx.saved_tensors
    weights, masks = rest[: ctx.counts[0]], rest[ctx.counts[0] :]
    backward = walk_backward if watched() else _walk_backward
    grads = backward(
        grad_output if Plan(*ctx.plan).return_sequence else None, grad_y, grad_z, saved, x, weights,
        y0, values, elapsed, lengths, masks, ctx.plan, ctx.numbers, ctx.needs_input_grad[0],
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
        None,
        None,
    )


class _Walk(torch.autograd.Function):
    """``walk`` without operator dispatch, which takes longer than a short sequence."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y0: Tensor, z0: Tensor, values: Tensor, *rest: Any
    ) -> tuple[Tensor, ...]:
        elapsed, lengths, masks, plan, numbers, *weights = rest
        inputs = x, weights, y0, z0, values, elapsed, lengths, masks, plan, numbers
        result = _walk(*inputs)
        _set_up(ctx, inputs, result)
        return result[:3]

    @staticmethod
    def backward(
        ctx: Any, grad_output: Tensor | None, grad_y: Tensor | None, grad_z: Tensor | None
    ) -> tuple[Any, ...]:
        grads = _differentiate(ctx, grad_output, grad_y, grad_z, None)
        grad_x, grad_weights, *starts = grads[:6]
        return (grad_x, *starts, None, None, None, None, *grad_weights)


walk = operator("walk", _walk, _walk_fake, _differentiate, _set_up)
walk_backward = operator("walk_backward", _walk_backward, _walk_backward_fake, refuse)
