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


def lem_from_lstm(lstm: nn.LSTM) -> LEM:
    """The LEM that does what an LSTM does.

    Args:
        lstm: One layer, one direction, with biases, whose forget gate has the negative weights of
            its input gate and whose output gate has no weights and biases of 40 or more in all.

    Raises:
        ValueError: If the LSTM is not of that form.

    Example:
        >>> layer = LEM(2, 3, dtype=torch.float64)
        >>> lstm = lstm_from_lem(lstm_like(layer))
        >>> x = torch.randn(7, 2, dtype=torch.float64)
        >>> torch.allclose(lstm(x)[0], lem_from_lstm(lstm)(x)[0], atol=1e-14, rtol=0)
        True
    """
    H = lstm.hidden_size
    if lstm.num_layers > 1 or lstm.bidirectional or not lstm.bias or lstm.proj_size:
        raise ValueError(
            _checks.message(
                "lstm must have one layer, one direction, biases and no projection",
                repr(lstm),
                "pass a plain layer",
            )
        )
    blocks = _blocks(lstm)
    V_i, V_f, V_g, V_o = blocks["weight_ih_l0"]
    W_i, W_f, W_g, W_o = blocks["weight_hh_l0"]
    both = zip(blocks["bias_ih_l0"], blocks["bias_hh_l0"], strict=True)
    b_i, b_f, b_g, b_o = (one + other for one, other in both)
    _equal(
        "the forget gate must have the negative weights of the input gate",
        [
            (V_f, -V_i),
            (W_f, -W_i),
            (b_f, -b_i),
        ],
    )
    _equal("the output gate must have no weights", [(V_o, 0 * V_o), (W_o, 0 * W_o)])
    _open("the output gate", b_o)
    layer = LEM(lstm.input_size, H, batch_first=lstm.batch_first, dtype=V_i.dtype)
    _set(layer, V_i, V_g, W_i, W_g, b_i, b_g)
    return layer


def lstm_from_lem(layer: LEM) -> nn.LSTM:
    """The LSTM that does what a LEM does.

    Args:
        layer: One layer, one direction, dt = 1, of the form that ``lstm_like`` makes.

    Raises:
        ValueError: If the LEM is not of that form.
    """
    _plain(layer)
    H, F = layer.hidden_size, layer.input_size
    blocks = _blocks(layer)
    V_1, V_2, V_z, V_y = blocks["weight_ih_l0"]
    W_1, W_2, W_z = blocks["weight_hh_l0"]
    b_1, b_2, b_z, b_y = blocks["bias_l0"]
    (W_y,) = blocks["weight_zh_l0"]
    _equal(
        "W_y must be the identity, V_y and b_y zero",
        [
            (W_y, torch.eye(H).to(W_y)),
            (V_y, 0 * V_y),
            (b_y, 0 * b_y),
        ],
    )
    _equal("the gate of y must have no weights", [(V_2, 0 * V_2), (W_2, 0 * W_2)])
    _open("the gate of y", b_2)
    lstm = nn.LSTM(F, H, batch_first=layer.batch_first, dtype=W_y.dtype)
    W = dict(lstm.named_parameters())
    with torch.no_grad():
        W["weight_ih_l0"].copy_(torch.cat([V_1, -V_1, V_z, 0 * V_1]))
        W["weight_hh_l0"].copy_(torch.cat([W_1, -W_1, W_z, 0 * W_1]))
        W["bias_ih_l0"].copy_(torch.cat([b_1, -b_1, b_z, b_2]))
        W["bias_hh_l0"].zero_()
    return lstm


def lstm_like(layer: LEM) -> LEM:
    """A LEM with the gate and the update of z of a given one, and the rest as in an LSTM.

    Args:
        layer: One layer, one direction, dt = 1, with biases and learned gates.

    Raises:
        ValueError: If the layer is not of that kind.
    """
    _plain(layer)
    blocks = _blocks(layer)
    V_1, _, V_z, _ = blocks["weight_ih_l0"]
    W_1, _, W_z = blocks["weight_hh_l0"]
    b_1, _, b_z, _ = blocks["bias_l0"]
    like = LEM(layer.input_size, layer.hidden_size, batch_first=layer.batch_first, dtype=V_1.dtype)
    _set(like, V_1, V_z, W_1, W_z, b_1, b_z)
    return like


def _blocks(layer: LEM | nn.LSTM) -> dict[str, tuple[Tensor, ...]]:
    """Every parameter in blocks of H rows."""
    return {
        name: torch.split(weight.detach(), layer.hidden_size)
        for name, weight in layer.named_parameters()
    }


def _set(
    layer: LEM, V_1: Tensor, V_z: Tensor, W_1: Tensor, W_z: Tensor, b_1: Tensor, b_z: Tensor
) -> None:
    """Give a LEM the gate and update of z, opens the gate of y and make y = tanh(z)."""
    W = dict(layer.named_parameters())
    with torch.no_grad():
        W["weight_ih_l0"].copy_(torch.cat([V_1, 0 * V_1, V_z, 0 * V_1]))
        W["weight_hh_l0"].copy_(torch.cat([W_1, 0 * W_1, W_z]))
        W["weight_zh_l0"].copy_(torch.eye(len(W_1)))
        W["bias_l0"].copy_(torch.cat([b_1, 0 * b_1 + OPEN, b_z, 0 * b_1]))


def _plain(layer: LEM) -> None:
    plain = layer.num_layers == 1 and not layer.bidirectional and layer.bias
    gated = layer.dt == 1 and layer.multiscale and layer.gate_floor is None
    if not plain or not gated:
        raise ValueError(
            _checks.message(
                "layer must have one layer, one direction, dt=1, biases and free learned gates",
                repr(layer),
                "pass a plain layer",
            )
        )


def _equal(expected: str, pairs: list[tuple[Tensor, Tensor]]) -> None:
    off = max(float((a - b).abs().max()) for a, b in pairs)
    if off:
        raise ValueError(
            _checks.message(expected, f"a difference of {off:.3g}", "set them so, see lstm_like")
        )


def _open(name: str, bias: Tensor) -> None:
    if float(bias.min()) < OPEN:
        raise ValueError(
            _checks.message(
                f"{name} must be open, its biases {OPEN:g} or more",
                f"{float(bias.min()):g}",
                "set them so, see lstm_like",
            )
        )
