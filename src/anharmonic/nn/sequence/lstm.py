r"""LSTM and the LSTM with chrono initialisation: torch's own layer under this package's contract.

.. math::
    i, f, o = \hat\sigma(W_\cdot h_{n-1} + V_\cdot u_n + b_\cdot), \quad
    c_n = f \odot c_{n-1} + i \odot \tanh(W h_{n-1} + V u_n + b), \quad h_n = o \odot \tanh c_n

References: Hochreiter and Schmidhuber, Long short-term memory, 1997; Tallec and Ollivier, Can
recurrent neural networks warp time?, ICLR 2018.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from anharmonic import _checks
from anharmonic.nn.sequence.torch_layers import _TorchLayer, torch_arguments


class LSTMState(NamedTuple):
    """State of an LSTM: output h and cell c, [L * D, B, H] each."""

    h: Tensor
    c: Tensor


class LSTM(_TorchLayer, nn.LSTM):
    r"""Long short-term memory: ``torch.nn.LSTM`` with a named state and ``step``.

    .. math::
        i, f, o &= \hat\sigma(W_\cdot h_{n-1} + V_\cdot u_n + b_\cdot) \\
        c_n &= f \odot c_{n-1} + i \odot \tanh(W h_{n-1} + V u_n + b), \quad
        h_n = o \odot \tanh c_n

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
        output [T, B, D * H] likewise; state: h and c [L * D, B, H].

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument is of the wrong kind.

    Example:
        >>> import torch
        >>> layer = LSTM(6, 32, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.h.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Hochreiter and Schmidhuber, Long short-term memory, Neural Computation 9, 1997.
    """

    state_type = LSTMState

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


class ChronoLSTM(_TorchLayer, nn.LSTM):
    r"""LSTM whose forget gates start with time constants up to ``chrono_length`` steps.

    .. math::
        b_f \sim \log U[1, T_{\max} - 1], \quad b_i = -b_f

    The other biases start at zero; nothing else differs from ``LSTM``. :math:`T_{\max}` is
    ``chrono_length``.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Layers stacked on each other, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers (torch's: a new mask at
            every step).
        bidirectional: Whether every layer also walks from the end.
        chrono_length: Longest dependency expected, in steps, >= 3. Default 100.
        device: Where the parameters live.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h and c [L * D, B, H].

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument is of the wrong kind.

    Example:
        >>> import torch
        >>> layer = ChronoLSTM(6, 32, chrono_length=100, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.h.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Tallec and Ollivier, Can recurrent neural networks warp time?, ICLR 2018.
    """

    state_type = LSTMState

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
        chrono_length: int = 100,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        _checks.positive_int("chrono_length", chrono_length)
        if chrono_length < 3:
            raise ValueError(
                _checks.message(
                    "chrono_length must be >= 3",
                    f"chrono_length={chrono_length}",
                    "give the longest dependency in steps",
                )
            )
        if not bias:
            raise ValueError(
                _checks.message(
                    "chrono initialisation sets biases, it needs bias=True",
                    "bias=False",
                    "use LSTM, or keep the bias",
                )
            )
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
        self.chrono_length = chrono_length
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights as torch does and the biases by the chrono rule."""
        super().reset_parameters()
        longest = getattr(self, "chrono_length", None)
        if longest is None:  # torch calls this before the length is known
            return
        H = self.hidden_size
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.startswith("bias"):
                    parameter.zero_()
                if name.startswith("bias_ih"):  # rows: input, forget, cell, output
                    parameter[H : 2 * H].uniform_(1.0, longest - 1.0).log_()
                    parameter[:H] = -parameter[H : 2 * H]
