"""States of a sequence layer at every step, as the statements need them."""

from __future__ import annotations

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn import SequenceLayer, State


def check_single(layer: SequenceLayer) -> None:
    """Refuse a layer with more than one layer or direction."""
    is_single, advice = layer.num_layers == 1 and not layer.bidirectional, "pass a single layer"
    _checks.require(is_single, "layer", layer, "one layer in one direction", advice)


def check_one_sequence(x: Tensor) -> None:
    """Refuse inputs that are not one sequence in a batch of one, time first."""
    is_one, advice = x.dim() == 3 and x.shape[1] == 1, "pass one sequence of the batch, x[:, :1]"
    _checks.require(is_one, "x", x, "one sequence, [T, 1, F]", advice)


def weights(layer: SequenceLayer, level: int = 0) -> dict[str, Tensor]:
    """The weights of one layer of a stack, without gradient, by their names less the ``_l0``.

    A layer without bias has a bias of zeros here.
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
    """All states of a stack in one direction, the initial one first: y, z [T + 1, L, B, H]."""
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
    """The y and z of a single layer after every step, from rest, [T, B, H] each."""
    check_single(layer)
    y, z = trajectory(layer, x)
    return y[1:, 0], z[1:, 0]
