"""RNN, LSTM and GRU: torch's own layers under this package's contract.

They take the same arguments, check input in the same voice, return named-tuple states and can
stream. Their arithmetic is torch's own, and so is their dropout (a new mask at every step).
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from anharmonic import _checks
from anharmonic.nn.sequence.inputs import (
    check_can_step,
    checked_sequence,
    checked_state,
    checked_step,
    refuse_elapsed,
)
from anharmonic.nn.store import Stored, repr_of
from anharmonic.ops import HiddenState
from anharmonic.ops.sequence import OUTPUTS


class LSTMState(NamedTuple):
    """State of an LSTM: output h and cell c, [L * D, B, H] each."""

    h: Tensor
    c: Tensor


class _TorchLayer(Stored, nn.RNNBase):
    """Mixin for ``nn.RNN``, ``nn.LSTM`` and ``nn.GRU``."""

    state_type: ClassVar[Any] = HiddenState

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
        arguments: dict[str, Any] = {
            "input_size": _checks.positive_int("input_size", input_size),
            "hidden_size": _checks.positive_int("hidden_size", hidden_size),
            "num_layers": _checks.positive_int("num_layers", num_layers),
            "bias": _checks.boolean("bias", bias),
            "batch_first": _checks.boolean("batch_first", batch_first),
            "dropout": _checks.number("dropout", dropout, low=0.0, high=1.0),
            "bidirectional": _checks.boolean("bidirectional", bidirectional),
        }
        super().__init__(**arguments, device=device, dtype=dtype)

    def forward(
        self,
        input: Tensor | PackedSequence,
        hx: Any = None,
        *,
        elapsed: None = None,
        output: str = "all",
    ) -> tuple[Any, Any]:
        """Run the stack over whole sequences; see ``SequenceLayer.forward``.

        PyTorch always computes the whole output; ``output`` only selects what is returned.

        Raises:
            TypeError: If a tensor has another dtype than the layer, or the state another form.
            ValueError: If a shape or device does not fit, there are no steps, or elapsed is given
                (these equations have no step size).
        """
        refuse_elapsed(self, elapsed)
        _checks.choice("output", output, OUTPUTS)
        example, x = next(self.parameters()), input
        if isinstance(x, PackedSequence):
            checked_sequence(x.data, self.input_size, False, example, packed=True)
            lead: tuple[int, ...] = (int(x.batch_sizes[0]),)
        else:
            x = checked_sequence(x, self.input_size, self.batch_first, example)
            lead = () if x.dim() == 2 else (x.shape[0 if self.batch_first else 1],)
        given = None
        if hx is not None:
            levels = self.num_layers * (2 if self.bidirectional else 1)
            shape = (levels, *lead, self.hidden_size)
            variables = tuple(checked_state(hx, shape, example, self.state_type))
            given = variables if len(variables) > 1 else variables[0]
        if isinstance(x, PackedSequence) and not self.bidirectional and not x.data.is_cuda:
            result, last = self._by_lengths(x, given)
        else:
            result, last = super().forward(x, given)
        end = self.state_type(*(last if isinstance(last, tuple) else (last,)))
        if output == "all":
            return result, end
        directions = 2 if self.bidirectional else 1
        return (torch.cat(tuple(end[0][-directions:]), dim=-1) if output == "last" else None), end

    def _by_lengths(self, packed: PackedSequence, given: Any) -> tuple[PackedSequence, Any]:
        """Run packed sequences in stretches of constant batch size.

        The results equal PyTorch's, whose backward pass on a CPU takes time quadratic in the number
        of steps.
        """
        sizes, steps = torch.unique_consecutive(packed.batch_sizes, return_counts=True)
        states = given if isinstance(given, tuple) else (given,)
        if packed.sorted_indices is not None and given is not None:
            states = tuple(part[:, packed.sorted_indices] for part in states)
        outputs, ended, first = [], [], 0
        time = 1 if self.batch_first else 0
        for batch, length in zip(sizes.tolist(), steps.tolist(), strict=True):
            x = packed.data[first : first + length * batch].view(length, batch, -1)
            first += length * batch
            if states[0] is not None:
                ended.append(tuple(part[:, batch:] for part in states))
                states = tuple(part[:, :batch].contiguous() for part in states)
            state = states if len(states) > 1 else states[0]
            out, last = super().forward(x.transpose(0, time), state)
            states = last if isinstance(last, tuple) else (last,)
            outputs.append(out.transpose(0, time).flatten(0, 1))
        ended.append(states)
        parts = [torch.cat(part[::-1], 1) for part in zip(*ended, strict=True)]
        if packed.unsorted_indices is not None:
            parts = [part[:, packed.unsorted_indices] for part in parts]
        result = PackedSequence(
            torch.cat(outputs), packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices
        )
        return result, tuple(parts) if len(parts) > 1 else parts[0]

    def step(self, x_t: Tensor, state: Any = None, elapsed: None = None) -> tuple[Tensor, Any]:
        """Take one step of a stream; see ``SequenceLayer.step``.

        Raises:
            ValueError: If the layer is bidirectional, trains with dropout between its layers, the
                input does not fit, or elapsed is given.
        """
        refuse_elapsed(self, elapsed)
        check_can_step(self)
        x_t = checked_step(x_t, self.input_size, next(self.parameters()))
        time = 1 if self.batch_first and x_t.dim() == 2 else 0
        output, last = self(x_t.unsqueeze(time), state)
        return output.squeeze(time), last

    extra_repr = repr_of


class RNN(_TorchLayer, nn.RNN):
    r"""Tanh recurrent network: ``torch.nn.RNN`` with a named state and ``step``.

    .. math::
        h_n = \tanh(W h_{n-1} + V u_n + b)

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers (torch's: a new mask at
            every step).
        bidirectional: Whether every layer also reads the sequence backwards.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h (LSTM: h and c), [L * D, B, H].

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Example:
        >>> import torch
        >>> layer = RNN(6, 32, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.h.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Elman, Finding structure in time, Cognitive Science 14, 1990.
    """


class LSTM(_TorchLayer, nn.LSTM):
    r"""Long short-term memory: ``torch.nn.LSTM`` with a named state and ``step``.

    .. math::
        i, f, o &= \hat\sigma(W_\cdot h_{n-1} + V_\cdot u_n + b_\cdot) \\
        c_n &= f \odot c_{n-1} + i \odot \tanh(W h_{n-1} + V u_n + b), \quad
        h_n = o \odot \tanh c_n

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers (torch's: a new mask at
            every step).
        bidirectional: Whether every layer also reads the sequence backwards.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h (LSTM: h and c), [L * D, B, H].

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

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


class GRU(_TorchLayer, nn.GRU):
    r"""Gated recurrent unit: ``torch.nn.GRU`` with a named state and ``step``.

    .. math::
        r, s = \hat\sigma(W_\cdot h_{n-1} + V_\cdot u_n + b_\cdot), \quad
        h_n = s \odot h_{n-1} + (1 - s) \odot \tanh(V u_n + b + r \odot (W h_{n-1} + b'))

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers (torch's: a new mask at
            every step).
        bidirectional: Whether every layer also reads the sequence backwards.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h (LSTM: h and c), [L * D, B, H].

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

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


class ChronoLSTM(LSTM):
    r"""LSTM whose forget gates start with time constants up to ``chrono_length`` steps.

    .. math::
        b_f \sim \log U[1, T_{\max} - 1], \quad b_i = -b_f

    The other biases start at zero; nothing else differs from ``LSTM``. :math:`T_{\max}` is
    ``chrono_length``.

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Number of stacked layers, L >= 1.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers (torch's: a new mask at
            every step).
        bidirectional: Whether every layer also reads the sequence backwards.
        chrono_length: Longest dependency expected, in steps, >= 3. Default 100.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h (LSTM: h and c), [L * D, B, H].

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Example:
        >>> import torch
        >>> layer = ChronoLSTM(6, 32, chrono_length=100, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.h.shape
        (torch.Size([8, 100, 32]), torch.Size([1, 8, 32]))

    References:
        Tallec and Ollivier, Can recurrent neural networks warp time?, ICLR 2018.
    """

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
        _checks.require(
            chrono_length >= 3, "chrono_length", chrono_length, ">= 3",
            "give the longest dependency in steps",
        )  # fmt: skip
        _checks.require(
            _checks.boolean("bias", bias), "bias", bias,
            "True, since the chrono initialisation sets biases", "use LSTM, or keep the bias",
        )  # fmt: skip
        super().__init__(
            input_size, hidden_size, num_layers, bias=bias, batch_first=batch_first,
            dropout=dropout, bidirectional=bidirectional, device=device, dtype=dtype,
        )  # fmt: skip
        self.chrono_length = chrono_length
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as PyTorch does and the biases by the chrono rule."""
        super().reset_parameters()
        longest = getattr(self, "chrono_length", None)
        if longest is None:  # PyTorch calls this before the length is known
            return
        H = self.hidden_size
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.startswith("bias"):
                    parameter.zero_()
                if name.startswith("bias_ih"):  # rows: input, forget, cell, output
                    parameter[H : 2 * H].uniform_(1.0, longest - 1.0).log_()
                    parameter[:H] = -parameter[H : 2 * H]
