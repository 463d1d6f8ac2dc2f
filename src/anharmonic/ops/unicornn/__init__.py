"""UnICORNN: uncoupled undamped oscillators with learned time scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anharmonic._checks import message
from anharmonic.ops.bridge.native import register_native, without_scalar_tensors
from anharmonic.ops.dispatch import register
from anharmonic.ops.gpu.backend import register_triton
from anharmonic.ops.stack import run_stack
from anharmonic.ops.unicornn.native import unicornn_native
from anharmonic.ops.unicornn.reference import unicornn_reference


class UnICORNNWeights(NamedTuple):
    """Weights of one layer in one direction: V [H, F], w, b or None, c [H]; Λ [H, F'] or None."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor | None
    timescale: Tensor
    weight_skip: Tensor | None = None


register("unicornn", "reference", unicornn_reference)
register_native("unicornn", unicornn_native, without_scalar_tensors)


def _on_gpu(*tensors: Any, **words: Any) -> tuple[Tensor | None, Tensor, Tensor]:
    from anharmonic.ops.unicornn.triton import unicornn_triton

    return unicornn_triton(*tensors, **words)


register_triton("unicornn", _on_gpu)


def unicornn(
    x: Tensor,
    weights: list[UnICORNNWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: Sequence[float],
    frequency: float,
    skipped_layers: int | None = None,
    bidirectional: bool = False,
    lengths: Tensor | None = None,
    masks: list[Tensor] | None = None,
    elapsed: Tensor | None = None,
    output: str = "all",
    memory: str = "auto",
    backend: str = "auto",
) -> tuple[Tensor | None, Tensor, Tensor]:
    r"""Runs a stack of UnICORNN layers over a sequence, (3.6), with residual stacking (3.79).

    With :math:`h^l = dt^l\,\hat\sigma(c^l)` and
    :math:`x_n^l = V^l y_n^{l-1} + b^l\ (+\ \Lambda^l y_n^{l-S-1} \text{ if } l > S)`:

    .. math::
        z_n^l &= z_{n-1}^l - h^l \odot [\tanh(w^l \odot y_{n-1}^l + x_n^l) + \alpha y_{n-1}^l] \\
        y_n^l &= y_{n-1}^l + h^l \odot z_n^l

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial positions.
        z0: Initial velocities.
        dt: One step per layer, > 0.
        frequency: α, >= 0.
        skipped_layers: S of the residual stacking, or None for plain stacking.
        bidirectional: Whether every layer also walks from the end.
        lengths: Valid steps of each sequence, or None.
        masks: Dropout factors between layers, or None.
        elapsed: Time since the previous sample in nominal steps, >= 0; multiplies h. None is 1.
        output: What to return of the outputs: "all", the "last" valid one of each sequence, "none".
        memory: What is kept for the backward pass: "stored", "chunked", "reversible" (one
            direction; on a grid, see ``ops/unicornn/grid.py``) or "auto".
        backend: ``"auto"`` or the name of one of ``available_backends("unicornn")``.

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H]; lengths [B]; masks L - 1 tensors [B, D * H];
        elapsed [T, B]. Returns outputs y [T, B, D * H] ([B, D * H] for "last", None for "none"),
        final y and final z [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, or the policy or backend cannot run this input.
        OverflowError: If states leave the grid of the reversible policy (on a GPU: NaN).

    Example:
        >>> import torch
        >>> w = UnICORNNWeights(torch.ones(3, 2), torch.ones(3), None, torch.zeros(3))
        >>> zero = torch.zeros(1, 4, 3)
        >>> out, y, z = unicornn(torch.ones(5, 4, 2), [w], zero, zero, dt=[0.1], frequency=1.0)
        >>> out.shape, torch.equal(out[-1], y[0])
        (torch.Size([5, 4, 3]), True)
    """
    layers = len(weights) // (2 if bidirectional else 1)
    if len(dt) != layers:
        raise ValueError(
            message(f"dt must have one step per layer, {layers}", f"{len(dt)}", "give each its own")
        )

    def shapes(layer: int, widths: list[int], hidden: int) -> dict[str, tuple[int, ...]]:
        one = (hidden,)
        found = {"weight_ih": (hidden, widths[layer]), "weight_hh": one, "bias": one}
        found["timescale"] = one
        if skipped_layers is not None and layer >= skipped_layers:
            found["weight_skip"] = (hidden, widths[layer - skipped_layers])
        return found

    own = {"dt": dt, "frequency": frequency, "skipped_layers": skipped_layers}

    def one_layer(
        layer: int, levels: list[Tensor], weight: UnICORNNWeights
    ) -> tuple[Tensor, UnICORNNWeights, dict[str, Any]]:
        """A layer by itself; what skips into it is joined to its input."""
        source, words = levels[layer], {**own, "dt": [dt[layer]], "skipped_layers": None}
        if weight.weight_skip is None or skipped_layers is None:
            return source, weight, words
        joined = torch.cat([weight.weight_ih, weight.weight_skip], dim=1)
        source = torch.cat([source, levels[layer - skipped_layers]], dim=-1)
        return source, weight._replace(weight_ih=joined, weight_skip=None), words

    return run_stack(
        "unicornn",
        x,
        weights,
        y0,
        z0,
        own=own,
        shapes=shapes,
        bidirectional=bidirectional,
        lengths=lengths,
        masks=masks,
        elapsed=elapsed,
        output=output,
        memory=memory,
        backend=backend,
        invertible=True,
        one_layer=one_layer,
    )
