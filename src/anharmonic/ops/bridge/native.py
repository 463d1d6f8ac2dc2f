"""The compiled backend: a chain of layers as one call of the C library.

The files ``<model>/native.py`` say how a model's arguments become those of ``run``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from anharmonic._checks import watched
from anharmonic.ops.bridge.fill import Inputs, sizes_of
from anharmonic.ops.bridge.library import why_not
from anharmonic.ops.bridge.operators import forward, walk
from anharmonic.ops.bridge.plan import plan_call
from anharmonic.ops.dispatch import Chain, Fits, register, register_missing, unfit_for_cpu


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
        model: One of the models of ``call``.
        x: Input.
        weights: Five per layer, in the order of csrc/anharmonic.h; None for those it lacks.
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

    Raises:
        MemoryError: If there is no memory for the tiles.
        OverflowError: If states leave the grid.
    """
    values = None
    if any(isinstance(value, Tensor) for value in scalars):
        values = torch.stack([torch.as_tensor(v).to(torch.float64) for v in scalars[:4]])
    numbers = [0.0 if isinstance(v, Tensor) else float(v) for v in scalars]
    has_gradient = torch.is_grad_enabled() and any(
        t is not None and t.requires_grad for t in (x, y0, z0, *weights, values, elapsed)
    )
    plan = plan_call(
        model, sizes_of(model, x, y0), memory if has_gradient else None, return_sequence=whole,
        skip=skip, grid=grid or memory == "reversible",
    )  # fmt: skip
    masks = [] if masks is None else list(masks)
    if not has_gradient and type(x) is Tensor and not watched():
        inputs = Inputs(x, weights, y0, values, elapsed, lengths, masks, plan, numbers)
        output, y, z, _ = forward(inputs, z0)
        return output, y, z
    flat = [x.new_empty(0) if w is None else w for w in weights]
    values = torch.empty(0, dtype=torch.float64) if values is None else values
    output, y, z, _ = walk(x, flat, y0, z0, values, elapsed, lengths, masks, plan, numbers)
    return (output if whole else None), y, z


def without_scalar_tensors(tensors: Sequence[Tensor]) -> str | None:
    """The ``fits`` of chains whose scalars get no gradient.

    Example:
        >>> without_scalar_tensors([torch.zeros(2), torch.tensor(0.1)])
        'a scalar that is a tensor'
    """
    if any(tensor.dim() == 0 for tensor in tensors):
        return "a scalar that is a tensor"
    return unfit_for_cpu(tensors)


def register_native(kernel: str, chain: Chain, fits: Fits = unfit_for_cpu) -> None:
    """Registers a compiled chain of a kernel, or says why there is none."""
    try:
        missing = why_not()
    except ValueError:
        missing = ""  # the environment asks for what cannot run: the first call says so
    if missing:
        register_missing("native", missing)
    else:
        register(kernel, "native", chain, fits)
