r"""The tanh RNN: torch's own layer under this package's contract.

.. math::
    h_n = \tanh(W h_{n-1} + V u_n + b)

Reference: Elman, Finding structure in time, Cognitive Science 14, 1990.
"""

from __future__ import annotations

import torch
from torch import nn

from anharmonic.nn.sequence.torch_layers import _TorchLayer, torch_arguments
from anharmonic.ops.recurrence import HiddenState


class RNN(_TorchLayer, nn.RNN):
    r"""Tanh recurrent network: ``torch.nn.RNN`` with a named state and ``step``.

    .. math::
        h_n = \tanh(W h_{n-1} + V u_n + b)

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
        >>> layer = RNN(6, 32, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.h.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Elman, Finding structure in time, Cognitive Science 14, 1990.
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
