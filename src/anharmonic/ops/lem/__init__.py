"""LEM: long expressive memory, two states with learned time scales."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from anharmonic.ops.bridge.native import register_native, without_scalar_tensors
from anharmonic.ops.dispatch import register
from anharmonic.ops.gpu.backend import register_triton
from anharmonic.ops.gpu.backend import without_scalar_tensors as without_scalars_on_gpu
from anharmonic.ops.lem.native import lem_native
from anharmonic.ops.lem.reference import lem_reference
from anharmonic.ops.stack import run_stack


class LEMWeights(NamedTuple):
    """Weights of one layer in one direction.

    weight_ih [4H, F] (V1, V2, Vz, Vy), weight_hh [3H, H] (W1, W2, Wz), weight_zh [H, H] (Wy),
    bias [4H] or None; without multiscale [2H, F] (Vz, Vy), [H, H] (Wz), [H, H], [2H].
    """

    weight_ih: Tensor
    weight_hh: Tensor
    weight_zh: Tensor
    bias: Tensor | None


register("lem", "reference", lem_reference)
register_native("lem", lem_native, without_scalar_tensors)


def _on_gpu(*tensors: Any, **words: Any) -> tuple[Tensor | None, Tensor, Tensor]:
    from anharmonic.ops.lem.triton import lem_triton

    return lem_triton(*tensors, **words)


register_triton("lem", _on_gpu, without_scalars_on_gpu)


def lem(
    x: Tensor,
    weights: list[LEMWeights],
    y0: Tensor,
    z0: Tensor,
    *,
    dt: float,
    multiscale: bool = True,
    gate_floor: float | None = None,
    bidirectional: bool = False,
    lengths: Tensor | None = None,
    masks: list[Tensor] | None = None,
    elapsed: Tensor | None = None,
    output: str = "all",
    memory: str = "auto",
    backend: str = "auto",
) -> tuple[Tensor | None, Tensor, Tensor]:
    r"""Runs a stack of LEM layers over a sequence, (5.3).

    .. math::
        a_n &= dt\,\hat\sigma(W_1 y_{n-1} + V_1 u_n + b_1), \quad
        e_n = dt\,\hat\sigma(W_2 y_{n-1} + V_2 u_n + b_2) \\
        z_n &= (1 - a_n) \odot z_{n-1} + a_n \odot \tanh(W_z y_{n-1} + V_z u_n + b_z) \\
        y_n &= (1 - e_n) \odot y_{n-1} + e_n \odot \tanh(W_y z_n + V_y u_n + b_y)

    Args:
        x: Input, time-major.
        weights: One entry per layer and direction.
        y0: Initial slow states.
        z0: Initial fast states.
        dt: Step, > 0; states stay bounded for dt <= 1.
        multiscale: Whether the gates are learned; if not, both are dt everywhere.
        gate_floor: Clips both gates to [gate_floor, 1] if given (multiscale only).
        bidirectional: Whether every layer also walks from the end.
        lengths: Valid steps of each sequence, or None.
        masks: Dropout factors between layers, or None.
        elapsed: Time since the previous sample in nominal steps, >= 0; multiplies dt. None is 1.
        output: What to return of the outputs: "all", the "last" valid one of each sequence, "none".
        memory: What is kept for the backward pass: "stored", "chunked" or "auto".
        backend: ``"auto"`` or the name of one of ``available_backends("lem")``.

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H]; lengths [B]; masks L - 1 tensors [B, D * H];
        elapsed [T, B]. Returns outputs y [T, B, D * H] ([B, D * H] for "last", None for "none"),
        final y and final z [L * D, B, H].

    Raises:
        ValueError: If a name is unknown, or the policy or backend cannot run this input.

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

    own = {"dt": dt, "multiscale": multiscale, "gate_floor": gate_floor}
    return run_stack(
        "lem",
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
    )
