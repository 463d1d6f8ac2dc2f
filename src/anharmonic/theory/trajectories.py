"""States of a sequence layer at every step, as the statements need them."""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.models.base import SequenceLayer


def states(layer: SequenceLayer, x: Tensor) -> tuple[Tensor, Tensor]:
    """Both states of a single layer after every step, from rest.

    Args:
        layer: One layer, one direction.
        x: The inputs, time first.

    Shape:
        x [T, B, F]; y, z [T, B, H].

    Raises:
        ValueError: If the layer has more than one layer or direction.

    Example:
        >>> from anharmonic import CoRNN
        >>> y, z = states(CoRNN(2, 4), torch.randn(10, 3, 2))
        >>> y.shape
        torch.Size([10, 3, 4])
    """
    if layer.num_layers > 1 or layer.bidirectional:
        raise ValueError(
            _checks.message(
                "the statement is about one layer in one direction",
                f"num_layers={layer.num_layers}, bidirectional={layer.bidirectional}",
                "pass a single unidirectional layer",
            )
        )
    ys, zs, state = [], [], None
    with torch.no_grad():
        for x_t in x:
            _, state = layer.step(x_t, state)
            ys.append(state.y[0].clone())
            zs.append(state.z[0].clone())
    return torch.stack(ys), torch.stack(zs)
