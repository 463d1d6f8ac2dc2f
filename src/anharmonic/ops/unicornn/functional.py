"""UnICORNN as a function on whole sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Unpack

import torch
from torch import Tensor

from anharmonic._checks import require
from anharmonic.ops.bridge import native
from anharmonic.ops.dispatch import (
    register,
    register_native,
    unfit_for_cpu,
    without_scalar_tensors,
)
from anharmonic.ops.gpu.backend import register_triton
from anharmonic.ops.recurrence import State, stepwise
from anharmonic.ops.replay import run_chain
from anharmonic.ops.sequence import Recurrence, SequenceOptions, run_sequence
from anharmonic.ops.unicornn import grid
from anharmonic.ops.unicornn.step import (
    UnICORNNTerms,
    UnICORNNWeights,
    unicornn_layer,
    unicornn_step,
)


def unicornn(
    x: Tensor,
    weights: list[UnICORNNWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: Sequence[float],
    frequency: float,
    skipped_layers: int | None = None,
    **options: Unpack[SequenceOptions],
) -> tuple[Tensor | None, Tensor, Tensor]:
    """Runs a stack of UnICORNN layers over a sequence, with residual stacking (3.79).

    The equation is that of ``unicornn_step``, the drive of a layer that of ``unicornn_layer``.

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial positions.
        z0: Initial velocities.
        dt: One step per layer, > 0.
        frequency: α, >= 0.
        skipped_layers: S of the residual stacking, or None for plain stacking.
        options: Directions, lengths, memory and the like: see ``SequenceOptions``.
            ``memory="reversible"`` needs one direction, and walks on a grid
            (``ops/unicornn/grid.py``).

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H] with D directions. Returns outputs y [T, B, D * H]
        ([B, D * H] for ``output="last"``, None for "none"), final y and final z [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, a shape does not fit, or the policy or backend cannot run
            this input.
        OverflowError: If states leave the grid of the reversible policy (on a GPU: NaN).

    Example:
        >>> import torch
        >>> w = UnICORNNWeights(torch.ones(3, 2), torch.ones(3), None, torch.zeros(3))
        >>> zero = torch.zeros(1, 4, 3)
        >>> out, y, z = unicornn(torch.ones(5, 4, 2), [w], zero, zero, dt=[0.1], frequency=1.0)
        >>> out.shape, torch.equal(out[-1], y[0])
        (torch.Size([5, 4, 3]), True)
    """
    layers = len(weights) // (2 if options.get("bidirectional") else 1)
    require(
        len(dt) == layers, "dt", dt, f"one step per layer, {layers} in all", "give each its own"
    )

    def shapes(layer: int, widths: list[int], hidden: int) -> dict[str, tuple[int, ...]]:
        one = (hidden,)
        fields = {"weight_ih": (hidden, widths[layer]), "weight_hh": one, "bias": one}
        fields["timescale"] = one
        if skipped_layers is not None and layer >= skipped_layers:
            fields["weight_skip"] = (hidden, widths[layer - skipped_layers])
        return fields

    settings = {"dt": dt, "frequency": frequency, "skipped_layers": skipped_layers}

    def one_layer(
        layer: int, levels: list[Tensor], weight: UnICORNNWeights
    ) -> tuple[Tensor, UnICORNNWeights, dict[str, Any]]:
        """A layer by itself; what skips into it is joined to its input."""
        source, own = levels[layer], {**settings, "dt": [dt[layer]], "skipped_layers": None}
        if weight.weight_skip is None or skipped_layers is None:
            return source, weight, own
        joined = torch.cat([weight.weight_ih, weight.weight_skip], dim=1)
        source = torch.cat([source, levels[layer - skipped_layers]], dim=-1)
        return source, weight._replace(weight_ih=joined, weight_skip=None), own

    recurrence = Recurrence("unicornn", settings, shapes, invertible=True, one_layer=one_layer)
    return run_sequence(recurrence, x, weights, (y0, z0), **options)  # type: ignore[return-value]


def unicornn_reference(
    x: Tensor,
    weights: Sequence[UnICORNNWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: Sequence[float],
    frequency: float,
    skipped_layers: int | None,
    **shared: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain in plain PyTorch; with ``memory="reversible"`` it walks on the grid."""
    terms = [UnICORNNTerms(*w, h, skipped_layers) for w, h in zip(weights, dt, strict=True)]
    if shared["memory"] == "reversible":
        start = State(grid.rounded(y0), grid.rounded(z0))
        walk, undo = (partial(way, frequency=frequency) for way in (grid.walk, grid.undo))
        output, y, z = run_chain(walk, x, terms, start, undo=undo, **shared)
        return output, y.to(y0.dtype), z.to(z0.dtype)
    steps = stepwise(unicornn_layer, partial(unicornn_step, frequency=frequency))
    return run_chain(steps, x, terms, State(y0, z0), **shared)


def unicornn_native(
    x: Tensor,
    weights: Sequence[Any],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: Sequence[float],
    frequency: float,
    skipped_layers: int | None,
    **shared: Any,
) -> tuple[Tensor | None, Tensor, Tensor]:
    """The chain in C (csrc/unicornn.h)."""
    flat = [w for weight in weights for w in weight]
    scalars = [1.0, frequency, 0.0, 0.0, *dt]
    return native.run(native.UNICORNN, x, flat, y0, z0, scalars, skip=skipped_layers or 0, **shared)


def _small_case(make_tensor: Callable[..., Tensor], backend: str) -> Sequence[Tensor | None]:
    """What is compared at the first use on a GPU."""
    weights = UnICORNNWeights(make_tensor(3, 2), make_tensor(3), make_tensor(3), make_tensor(3))
    start = make_tensor(1, 4, 3), make_tensor(1, 4, 3)
    x = make_tensor(5, 4, 2)
    return unicornn(x, [weights], *start, dt=[0.1], frequency=1.2, backend=backend)


def _on_gpu(*tensors: Any, **settings: Any) -> tuple[Tensor | None, Tensor, Tensor]:
    from anharmonic.ops.unicornn.triton import unicornn_triton

    return unicornn_triton(*tensors, **settings)


register("unicornn", "reference", unicornn_reference)
register_native("unicornn", unicornn_native, without_scalar_tensors(unfit_for_cpu))
register_triton("unicornn", _on_gpu, _small_case)
