"""coRNN: coupled oscillators with damping."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from anharmonic._checks import choice
from anharmonic.ops.bridge.native import register_native
from anharmonic.ops.cornn.native import cornn_native
from anharmonic.ops.cornn.reference import cornn_reference
from anharmonic.ops.dispatch import register
from anharmonic.ops.gpu.backend import register_triton
from anharmonic.ops.stack import run_stack

SCHEMES = ("explicit", "implicit")


class CoRNNWeights(NamedTuple):
    """Weights of one layer in one direction: V [H, F], W [H, H], 𝒲 [H, H], b [H] or None."""

    weight_ih: Tensor
    weight_hy: Tensor
    weight_hz: Tensor
    bias: Tensor | None


register("cornn", "reference", cornn_reference)
register_native("cornn", cornn_native)


def _on_gpu(*tensors: Any, **words: Any) -> tuple[Tensor | None, Tensor, Tensor]:
    from anharmonic.ops.cornn.triton import cornn_triton

    return cornn_triton(*tensors, **words)


register_triton("cornn", _on_gpu)


def _shapes(layer: int, widths: list[int], hidden: int) -> dict[str, tuple[int, ...]]:
    square = (hidden, hidden)
    return {
        "weight_ih": (hidden, widths[layer]),
        "weight_hy": square,
        "weight_hz": square,
        "bias": (hidden,),
    }


def cornn(
    x: Tensor,
    weights: list[CoRNNWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float | Tensor,
    frequency: float | Tensor,
    damping: float | Tensor,
    scheme: str = "explicit",
    bidirectional: bool = False,
    lengths: Tensor | None = None,
    masks: list[Tensor] | None = None,
    elapsed: Tensor | None = None,
    output: str = "all",
    memory: str = "auto",
    backend: str = "auto",
) -> tuple[Tensor | None, Tensor, Tensor]:
    r"""Runs a stack of coRNN layers over a sequence, (2.3).

    With :math:`A = W y_{n-1} + \mathcal{W} z_{n-1} + V u_n + b`:

    .. math::
        \text{explicit: } z_n &= z_{n-1} + dt\,(\tanh A - \gamma y_{n-1} - \epsilon z_{n-1}) \\
        \text{implicit: } z_n &= (z_{n-1} + dt\,(\tanh A - \gamma y_{n-1})) / (1 + dt\,\epsilon) \\
        y_n &= y_{n-1} + dt\, z_n

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial positions.
        z0: Initial velocities.
        dt: Step, > 0; a number or a scalar tensor (then it gets a gradient).
        frequency: γ, >= 0; number or scalar tensor.
        damping: ε; number or scalar tensor.
        scheme: ``"explicit"`` or ``"implicit"`` damping.
        bidirectional: Whether every layer also walks from the end.
        lengths: Valid steps of each sequence, or None.
        masks: Dropout factors between layers, or None.
        elapsed: Time since the previous sample in nominal steps, >= 0; multiplies dt. None is 1.
        output: What to return of the outputs: "all", the "last" valid one of each sequence, "none".
        memory: What is kept for the backward pass: "stored", "chunked" or "auto".
        backend: ``"auto"`` or the name of one of ``available_backends("cornn")``.

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H]; lengths [B]; masks L - 1 tensors [B, D * H];
        elapsed [T, B]. Returns outputs y [T, B, D * H] ([B, D * H] for "last", None for "none"),
        final y and final z [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, or the policy or backend cannot run this input.

    Example:
        >>> import torch
        >>> w = CoRNNWeights(torch.ones(3, 2), torch.eye(3), torch.eye(3), None)
        >>> zero = torch.zeros(1, 4, 3)
        >>> x = torch.ones(5, 4, 2)
        >>> out, y, z = cornn(x, [w], zero, zero, dt=0.1, frequency=1.0, damping=1.0)
        >>> out.shape, torch.equal(out[-1], y[0])
        (torch.Size([5, 4, 3]), True)
    """
    choice("scheme", scheme, SCHEMES)
    own = {"dt": dt, "frequency": frequency, "damping": damping, "scheme": scheme}
    return run_stack(
        "cornn",
        x,
        weights,
        y0,
        z0,
        own=own,
        shapes=_shapes,
        bidirectional=bidirectional,
        lengths=lengths,
        masks=masks,
        elapsed=elapsed,
        output=output,
        memory=memory,
        backend=backend,
    )
