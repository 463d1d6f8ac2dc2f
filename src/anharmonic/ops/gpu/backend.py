"""The Triton backend: a chain of layers as one operator on the GPU.

This module flattens the arguments of a call. Every layer has V, b, Λ and two recurrent weights. The
scalars are dt, frequency, damping and gate floor. The files ``gpu/<model>.py`` hold the kernels.
Triton is imported when the first kernel runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from anharmonic.ops.backend import (
    current_precision,
    interpreted,
    needs_gradient,
    resolve,
    state_bytes,
    transformed,
)
from anharmonic.ops.equation import Equation
from anharmonic.ops.gpu import walk
from anharmonic.ops.gpu.first_use import SmallCase, why_wrong
from anharmonic.ops.native import operator, refuse, refuse_second_derivative

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
WIDEST = {"float32": 64, "tf32": 64, "bfloat16": 128}
"""Largest number of neurons whose recurrent matrices fit on chip, by precision of products."""


def unfit_for_triton(tensors: Sequence[Tensor]) -> str | None:
    """Return why the kernels cannot run on these tensors; None if they can.

    The first tensor, x, may have a different dtype.

    Example:
        >>> unfit_for_triton([torch.zeros(1, dtype=torch.float64)])
        'torch.float64'
        >>> unfit_for_triton([torch.zeros(1), torch.zeros(1), torch.zeros(2, dtype=torch.float16)])
        'torch.float32 beside torch.float16'
    """
    x, *others = tensors
    dtype = others[0].dtype if others else x.dtype
    for tensor in tensors:
        if tensor.dtype not in DTYPES:
            return f"{tensor.dtype}"
        if tensor is not x and tensor.dtype is not dtype:
            return f"{dtype} beside {tensor.dtype}"
        if tensor.device != x.device:
            return f"a tensor on {tensor.device} beside one on {x.device}"
    if not x.is_cuda and not (x.is_cpu and interpreted()):
        return f"a tensor on {x.device}, not on a CUDA device"
    return None if torch.compiler.is_compiling() else transformed()


def no_kernel(kernel: str, hidden: int, memory: str) -> str | None:
    """Return why a layer of ``hidden`` neurons has no kernel; None if it has one.

    Example:
        >>> no_kernel("unicornn", 1000, "auto"), no_kernel("lem", 64, "auto")
        (None, None)
        >>> no_kernel("lem", 65, "auto")
        '65 neurons, whose matrices do not fit on chip (float32: up to 64)'
    """
    if memory == "reversible":
        return "memory='reversible', which has no GPU kernel"
    precision = current_precision()
    if kernel == "unicornn" or hidden <= WIDEST[precision]:
        return None
    most = f"{precision}: up to {WIDEST[precision]}"
    return f"{hidden} neurons, whose matrices do not fit on chip ({most})"


def refusal(kernel: str, tensors: Sequence[Tensor], case: SmallCase | None) -> str | None:
    """Return why the kernels cannot run on these tensors; None if they can.

    A small ``case`` must agree with the reference on this device; None skips it.
    """
    reason = unfit_for_triton(tensors)
    if reason is None and case is not None:
        reason = why_wrong(kernel, case, tensors[0].device)
    return reason


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
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Run a stack in one direction, with the arguments and results of ``reference.run``."""
    compiled = equation.compiled()
    assert compiled is not None
    (y0, z0), flat = state, []
    for layer, w in enumerate(weights):
        if equation.kernel == "unicornn":
            c = w.timescale.float()
            h = equation.of_layer(layer).step_size(w._replace(timescale=c))
            flat += [w.weight_ih, w.bias, w.weight_skip, w.weight_hh, h]
        else:
            V, first, second, b = w
            flat += [V, b, None, first, second]
    # Stacked on the device, because a copy from the host would make the device wait.
    scalars = torch.stack([
        value.to(torch.float32) if isinstance(value, Tensor)
        else x.new_full((), value, dtype=torch.float32)
        for value in compiled.numbers[:4]
    ])  # fmt: skip
    policy = "nothing"
    if needs_gradient((x, y0, z0, scalars, elapsed, *flat)):
        policy = resolve(memory, return_sequence, state_bytes(len(x), state))
    if lengths is not None:
        lengths = lengths.to(device=x.device, dtype=torch.int32)
    output, y, z, *_ = _scan(
        x, [y0.new_empty(0) if w is None else w for w in flat], y0, z0, scalars, elapsed, lengths,
        list(masks or ()), compiled.model, compiled.skipped_layers, return_sequence, policy,
        current_precision(),
    )  # fmt: skip
    return (output if return_sequence else None), y, z


def _fake(x: Tensor, weights: Any, y0: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    *_, return_sequence, policy, _ = rest
    return walk.empty_results(x, weights, y0, return_sequence, policy)


def _backward_fake(
    grad_output: Any, grad_y: Any, grad_z: Any, states: Any, acts: Any, x: Tensor, weights: Any,
    y0: Tensor, scalars: Tensor, elapsed: Tensor | None, *rest: Any,
) -> list[Tensor]:  # fmt: skip
    like = walk.like_gradients(x, weights, y0, scalars, elapsed, *rest[-2:])
    return [t.new_empty(t.shape) for t in like]


def _set_up(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weights, y0, _, scalars, elapsed, lengths, masks, *settings = inputs
    ctx.set_materialize_grads(False)
    ctx.counts = len(weights), len(masks)
    ctx.save_for_backward(*output[3:], x, y0, scalars, elapsed, lengths, *weights, *masks)
    ctx.settings = settings


def _differentiate(
    ctx: Any, grad_output: Tensor | None, grad_y: Tensor | None, grad_z: Tensor | None, *_: Any
) -> tuple[Any, ...]:
    refuse_second_derivative(ctx)
    states, acts, x, y0, scalars, elapsed, lengths, *rest = ctx.saved_tensors
    weights, masks = rest[: ctx.counts[0]], rest[ctx.counts[0] :]
    name, skip, return_sequence, policy, precision = ctx.settings
    needs_x, needs_elapsed = ctx.needs_input_grad[0], bool(ctx.needs_input_grad[5])
    grads = _scan_backward(
        grad_output if return_sequence else None, grad_y, grad_z, states, acts, x, weights, y0,
        scalars, elapsed, lengths, masks, name, skip, policy, precision, needs_x, needs_elapsed,
    )  # fmt: skip
    grad_x, grad_y0, grad_z0, grad_scalars, grad_elapsed, *grad_weights = grads
    return (
        grad_x if needs_x else None,
        grad_weights,
        grad_y0,
        grad_z0,
        grad_scalars,
        grad_elapsed if needs_elapsed else None,
        None,
        [None] * len(masks),
        *[None] * 5,
    )


_DEVICES = ("cuda", "cpu")
"""Device types with kernels; Triton's interpreter runs on the CPU."""
_scan = operator("scan", walk.forward, _fake, _differentiate, _set_up, _DEVICES)
_scan_backward = operator("scan_backward", walk.backward, _backward_fake, refuse, devices=_DEVICES)
