"""LEM as a function on whole sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Unpack

from torch import Tensor

from anharmonic.ops.bridge import native
from anharmonic.ops.dispatch import (
    register,
    register_native,
    unfit_for_cpu,
    without_scalar_tensors,
)
from anharmonic.ops.gpu.backend import register_triton, unfit_for_triton
from anharmonic.ops.lem.step import LEMWeights, lem_layer, lem_step
from anharmonic.ops.recurrence import State, stepwise
from anharmonic.ops.replay import run_chain
from anharmonic.ops.sequence import Recurrence, SequenceOptions, run_sequence


def lem(
    x: Tensor,
    weights: list[LEMWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    multiscale: bool = True,
    gate_floor: float | None = None,
    **options: Unpack[SequenceOptions],
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Runs a stack of LEM layers over a sequence; the equation is that of ``lem_step``.

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial slow states.
        z0: Initial fast states.
        dt: Step, > 0; states stay bounded for dt <= 1.
        multiscale: Whether the gates are learned; if not, both are dt everywhere.
        gate_floor: Clips both gates to [gate_floor, 1] if given (multiscale only).
        options: Directions, lengths, memory and the like: see ``SequenceOptions``.

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H] with D directions. Returns outputs y [T, B, D * H]
        ([B, D * H] for ``output="last"``, None for "none"), final y and final z [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, a shape does not fit, or the policy or backend cannot run
            this input.

    Example:
        >>> import torch
        >>> w = LEMWeights(torch.ones(12, 2), torch.zeros(9, 3), torch.eye(3), None)
        >>> zero = torch.zeros(1, 4, 3)
        >>> out, y, z = lem(torch.ones(5, 4, 2), [w], zero, zero, dt=1.0)
        >>> out.shape, torch.equal(out[-1], y[0])
        (torch.Size([5, 4, 3]), True)
    """
    blocks = 4 if multiscale else 2

    def shapes(layer: int, widths: list[int], hidden: int) -> dict[str, tuple[int, ...]]:
        return {
            "weight_ih": (blocks * hidden, widths[layer]),
            "weight_hh": ((blocks - 1) * hidden, hidden),
            "weight_zh": (hidden, hidden),
            "bias": (blocks * hidden,),
        }

    settings = {"dt": dt, "multiscale": multiscale, "gate_floor": gate_floor}
    return run_sequence(Recurrence("lem", settings, shapes), x, weights, (y0, z0), **options)  # type: ignore[return-value]


def _reference(
    x: Tensor,
    weights: Sequence[LEMWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    multiscale: bool,
    gate_floor: float | None,
    **shared: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    walk = stepwise(partial(lem_layer, dt=dt), partial(lem_step, gate_floor=gate_floor))
    return run_chain(walk, x, weights, State(y0, z0), **shared)


def _native(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    multiscale: bool,
    gate_floor: float | None,
    **shared: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain in C (csrc/lem.h)."""
    model = native.LEM if gate_floor is None else native.LEM_CLIPPED
    if not multiscale:
        model = native.LEM_SINGLE_SCALE
    flat = [w for weight in weights for w in (*weight, None)]
    return native.run(model, x, flat, y0, z0, [dt, 0.0, 0.0, gate_floor or 0.0], **shared)


def _small_case(make_tensor: Callable[..., Tensor], backend: str) -> Sequence[Tensor | None]:
    """What is compared at the first use on a GPU."""
    weights = LEMWeights(make_tensor(12, 2), make_tensor(9, 3), make_tensor(3, 3), make_tensor(12))
    start = make_tensor(1, 4, 3), make_tensor(1, 4, 3)
    return lem(make_tensor(5, 4, 2), [weights], *start, dt=0.5, backend=backend)


def _on_gpu(*tensors: Any, **settings: Any) -> tuple[Tensor | None, Tensor, Tensor]:
    from anharmonic.ops.lem.triton import lem_triton

    return lem_triton(*tensors, **settings)


register("lem", "reference", _reference)
register_native("lem", _native, without_scalar_tensors(unfit_for_cpu))
register_triton("lem", _on_gpu, _small_case, without_scalar_tensors(unfit_for_triton))
