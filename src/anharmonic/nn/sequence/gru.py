r"""GRU: torch's own layer under this package's contract.

.. math::
    r, s = \hat\sigma(W_\cdot h_{n-1} + V_\cdot u_n + b_\cdot), \quad
    h_n = s \odot h_{n-1} + (1 - s) \odot \tanh(V u_n + b + r \odot (W h_{n-1} + b'))

Reference: Cho et al., Learning phrase representations using RNN encoder-decoder, EMNLP 2014.
"""

from __future__ import annotations

import torch
from torch import nn

from anharmonic.nn.sequence.torch_layers import _TorchLayer, torch_arguments
from anharmonic.ops.recurrence import HiddenState


class GRU(_TorchLayer, nn.GRU):
    r"""Gated recurrent unit: ``torch.nn.GRU`` with a named state and ``step``.

    .. math::
        r, s = \hat\sigma(W_\cdot h_{n-1} + V_\cdot u_n + b_\cdot), \quad
        h_n = s \odot h_{n-1} + (1 - s) \odot \tanh(V u_n + b + r \odot (W h_{n-1} + b'))

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Layers stacked on each other, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers (torch's: a new mask at
            every step).
        bidirectional: Whether every layer also walks from the end.
        device: Where the parameters live.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h [L * D, B, H].

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument is of the wrong kind.

    Example:
        >>> import torch
        >>> layer = GRU(6, 32, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.h.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Cho et al., Learning phrase representations using RNN encoder-decoder for statistical
        machine translation, EMNLP 2014.
    """

    state_type = HiddenState

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            **torch_arguments(
                input_size,
                hidden_size,
                num_layers,
                bias,
                batch_first,
                dropout,
                bidirectional,
                device,
                dtype,
            )
        )
