"""States of a sequence layer at every step, as the statements need them."""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn import SequenceLayer, State


def check_single(layer: SequenceLayer) -> None:
    """Check that a layer is one layer in one direction.

    Raises:
        ValueError: If it has more than one layer or direction.
    """
    if layer.num_layers > 1 or layer.bidirectional:
        raise ValueError(
            _checks.message(
                "the statement is about one layer in one direction",
                f"num_layers={layer.num_layers}, bidirectional={layer.bidirectional}",
                "pass a single unidirectional layer",
            )
        )


def check_one_sequence(x: Tensor) -> None:
    """Check that an input is one sequence in a batch of one, time first.

    Raises:
        ValueError: If it is not.
    """
    if x.dim() != 3 or x.shape[1] != 1:
        raise ValueError(
            _checks.message(
                "the statement is about one sequence, [T, 1, F]",
                f"shape {list(x.shape)}",
                "pass one sequence of the batch, x[:, :1]",
            )
        )


def weights(layer: SequenceLayer, level: int = 0) -> dict[str, Tensor]:
    """The weights of one layer of a stack, without gradient, by their names less the ``_l0``.

    A layer without bias has a bias of zeros here.

    Example:
        >>> from anharmonic import LEM
        >>> sorted(weights(LEM(2, 3, bias=False)))
        ['bias', 'weight_hh', 'weight_ih', 'weight_zh']
    """
    end = f"_l{level}"
    found = {
        name.removesuffix(end): value
        for name, value in layer.state_dict().items()
        if name.endswith(end)
    }
    found.setdefault("bias", found["weight_ih"].new_zeros(len(found["weight_ih"])))
    return found


def trajectory(
    layer: SequenceLayer, x: Tensor, state: tuple[Tensor, Tensor] | None = None
) -> State:
    """All states of a stack, the initial one first.

    Args:
        layer: A stack in one direction.
        x: The inputs, time first.
        state: The initial state; zeros if None.

    Shape:
        x [T, B, F]; state y, z [L, B, H]; returns y, z [T + 1, L, B, H].

    Raises:
        ValueError: If the layer is bidirectional.

    Example:
        >>> from anharmonic import UnICORNN
        >>> trajectory(UnICORNN(2, 4, 3), torch.randn(10, 5, 2)).z.shape
        torch.Size([11, 3, 5, 4])
    """
    if state is None:
        zeros = x.new_zeros(layer.num_layers, x.shape[1], layer.hidden_size)
        state = State(zeros, zeros)
    ys, zs = [state[0].clone()], [state[1].clone()]
    with torch.no_grad():
        for x_t in x:
            _, state = layer.step(x_t, state)
            ys.append(state[0].clone())
            zs.append(state[1].clone())
    return State(torch.stack(ys), torch.stack(zs))


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
    check_single(layer)
    y, z = trajectory(layer, x)
    return y[1:, 0], z[1:, 0]
