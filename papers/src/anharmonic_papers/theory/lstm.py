r"""LEM and LSTM with weights that make them equal, (5.6).

.. math::
    c_n = (1 - i_n) \odot c_{n-1} + i_n \odot \tanh(W h_{n-1} + V u_n + b), \quad h_n = \tanh(c_n)

is a LEM with dt = 1, z = c, y = h, the gate of y open, W_y = I, V_y = 0 and b_y = 0, and an LSTM
whose output gate is open and whose forget gate has the negative weights of its input gate. (The
paper names the gates only.)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.nn import LEM
from anharmonic_papers.theory.emulators import OPEN


def lstm_from_lem(layer: LEM) -> nn.LSTM:
    """The LSTM that does what a LEM of the form that ``lstm_like`` makes does."""
    blocks = _blocks(layer)
    V_1, V_2, V_z, V_y = blocks["weight_ih_l0"]
    W_1, W_2, W_z = blocks["weight_hh_l0"]
    b_1, b_2, b_z, b_y = blocks["bias_l0"]
    (W_y,) = blocks["weight_zh_l0"]
    zeros = (V_2, W_2, V_y, b_y, W_y - torch.eye(len(W_y)).to(W_y))
    _checks.require(
        not any(part.any() for part in zeros) and bool((b_2 >= OPEN).all()), "layer", repr(layer),
        f"one with W_y = I, V_y = 0 and b_y = 0, whose gate of y has biases of {OPEN:g} or more "
        "alone", "make it with lstm_like",
    )  # fmt: skip
    lstm = nn.LSTM(
        layer.input_size, layer.hidden_size, batch_first=layer.batch_first, dtype=W_y.dtype
    )
    W = dict(lstm.named_parameters())
    with torch.no_grad():
        W["weight_ih_l0"].copy_(torch.cat([V_1, -V_1, V_z, 0 * V_1]))
        W["weight_hh_l0"].copy_(torch.cat([W_1, -W_1, W_z, 0 * W_1]))
        W["bias_ih_l0"].copy_(torch.cat([b_1, -b_1, b_z, b_2]))
        W["bias_hh_l0"].zero_()
    return lstm


def lstm_like(layer: LEM) -> LEM:
    """A LEM with the gate and the update of z of a given one, and the rest as in an LSTM."""
    blocks = _blocks(layer)
    V_1, _, V_z, _ = blocks["weight_ih_l0"]
    W_1, _, W_z = blocks["weight_hh_l0"]
    b_1, _, b_z, _ = blocks["bias_l0"]
    like = LEM(layer.input_size, layer.hidden_size, batch_first=layer.batch_first, dtype=V_1.dtype)
    W = dict(like.named_parameters())
    with torch.no_grad():
        W["weight_ih_l0"].copy_(torch.cat([V_1, 0 * V_1, V_z, 0 * V_1]))
        W["weight_hh_l0"].copy_(torch.cat([W_1, 0 * W_1, W_z]))
        W["weight_zh_l0"].copy_(torch.eye(len(W_1)))
        W["bias_l0"].copy_(torch.cat([b_1, 0 * b_1 + OPEN, b_z, 0 * b_1]))
    return like


def _blocks(layer: LEM) -> dict[str, tuple[Tensor, ...]]:
    """Every parameter of a plain layer in blocks of H rows."""
    plain = layer.num_layers == 1 and not layer.bidirectional and layer.bias
    gated = layer.dt == 1 and layer.multiscale and layer.gate_floor is None
    _checks.require(
        plain and gated, "layer", repr(layer),
        "one layer in one direction with dt=1, biases and free learned gates", "pass a plain layer",
    )  # fmt: skip
    return {
        name: torch.split(weight.detach(), layer.hidden_size)
        for name, weight in layer.named_parameters()
    }
