"""UnICORNN: uncoupled undamped oscillators with learned time scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from anharmonic.kernels.dispatch import implementation, register
from anharmonic.kernels.unicornn.reference import unicornn_reference


class UnICORNNWeights(NamedTuple):
    """Weights of one layer in one direction: V [H, F], w, b or None, c [H]; Λ [H, F'] or None."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias: Tensor | None
    timescale: Tensor
    weight_skip: Tensor | None = None


register("unicornn", "reference", unicornn_reference)


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
    backend: str = "auto",
) -> tuple[Tensor, Tensor, Tensor]:
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
        backend: ``"auto"`` or the name of one of ``available_backends("unicornn")``.

    Shape:
        x [T, B, F]; y0, z0 [L * D, B, H]; lengths [B]; masks L - 1 tensors [B, D * H].
        Returns outputs y [T, B, D * H], final y and final z [L * D, B, H].

    Raises:
        ValueError: If the backend is unknown.

    Example:
        >>> import torch
        >>> w = UnICORNNWeights(torch.ones(3, 2), torch.ones(3), None, torch.zeros(3))
        >>> zero = torch.zeros(1, 4, 3)
        >>> out, y, z = unicornn(torch.ones(5, 4, 2), [w], zero, zero, dt=[0.1], frequency=1.0)
        >>> out.shape, torch.equal(out[-1], y[0])
        (torch.Size([5, 4, 3]), True)
    """
    output, y, z = implementation("unicornn", backend)(
        x,
        weights,
        y0,
        z0,
        dt=dt,
        frequency=frequency,
        skipped_layers=skipped_layers,
        bidirectional=bidirectional,
        lengths=lengths,
        masks=masks,
    )
    return output, y, z
