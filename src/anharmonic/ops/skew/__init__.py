"""A recurrence whose state matrix is skew-symmetric and depends on state and input."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from anharmonic.ops.dispatch import register
from anharmonic.ops.skew.reference import skew_reference
from anharmonic.ops.stack import run_stack


class SkewWeights(NamedTuple):
    """Weights of one layer in one direction.

    weight_ih [2H, F] (V_s, V), weight_hh [2H, H] (W_s, M), bias [2H] or None.
    """

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor | None


register("skew", "reference", skew_reference)


def skew(
    x: Tensor,
    weights: list[SkewWeights],
    y0: Tensor,
    *,
    dt: float,
    bidirectional: bool = False,
    lengths: Tensor | None = None,
    masks: list[Tensor] | None = None,
    elapsed: Tensor | None = None,
    output: str = "all",
    memory: str = "auto",
    backend: str = "auto",
) -> tuple[Tensor | None, Tensor]:
    r"""Runs a stack of skew-symmetric layers over a sequence.

    .. math::
        s_n &= \hat\sigma(W_s y_{n-1} + V_s u_n + b_s), \qquad C = (M - M^T) / \sqrt 2 \\
        y_n &= y_{n-1} + dt\,\big(\tanh(V u_n + b) + s_n \odot C (s_n \odot y_{n-1})\big)

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial states.
        dt: Step, > 0.
        bidirectional: Whether every layer also walks from the end.
        lengths: Valid steps of each sequence, or None.
        masks: Dropout factors between layers, or None.
        elapsed: Time since the previous sample in nominal steps, >= 0; multiplies dt. None is 1.
        output: What to return of the outputs: "all", the "last" valid one of each sequence, "none".
        memory: What is kept for the backward pass: "stored", "chunked" or "auto".
        backend: ``"auto"`` or the name of one of ``available_backends("skew")``.

    Shape:
        x [T, B, F]; y0 [L * D, B, H]; lengths [B]; masks L - 1 tensors [B, D * H]; elapsed [T, B].
        Returns outputs y [T, B, D * H] ([B, D * H] for "last", None for "none") and final y
        [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, or the policy or backend cannot run this input.

    Example:
        >>> import torch
        >>> w = SkewWeights(torch.ones(6, 2), torch.zeros(6, 3), None)
        >>> out, y = skew(torch.ones(5, 4, 2), [w], torch.zeros(1, 4, 3), dt=0.1)
        >>> out.shape, torch.equal(out[-1], y[0])
        (torch.Size([5, 4, 3]), True)
    """

    def shapes(layer: int, widths: list[int], hidden: int) -> dict[str, tuple[int, ...]]:
        return {
            "weight_ih": (2 * hidden, widths[layer]),
            "weight_hh": (2 * hidden, hidden),
            "bias": (2 * hidden,),
        }

    # Chains carry two states; the second of this recurrence is one that nobody reads.
    out, y, _ = run_stack(
        "skew",
        x,
        weights,
        y0,
        y0.detach(),
        own={"dt": dt},
        shapes=shapes,
        bidirectional=bidirectional,
        lengths=lengths,
        masks=masks,
        elapsed=elapsed,
        output=output,
        memory=memory,
        backend=backend,
    )
    return out, y
