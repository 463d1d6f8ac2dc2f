"""IndRNN: neurons that are independent within a layer.

A neuron's memory of N steps ago has the weight w^N, which the bound |w| <= 2^(1/N) keeps below 2.
``weight_hh`` is w (the paper's u), ``weight_ih`` V (its W), ``longest_dependency`` N (its T).
"""

from typing import Any

import torch
from torch import Tensor

from anharmonic import _checks
from anharmonic.nn import HiddenState, StepLayer

_ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}


class IndRNN(StepLayer):
    r"""Independently recurrent network: each neuron sees only its own past.

    .. math::
        h_n = \sigma(w \odot h_{n-1} + V u_n + b)

    Parameters of layer k are ``weight_ih_lk`` [H, F or D * H], ``weight_hh_lk`` [H] and ``bias_lk``
    [H].

    Args:
        input_size: Features per step, F >= 1.
        hidden_size: Neurons per layer, H >= 1.
        num_layers: Layers stacked on each other, L >= 1; neurons meet between layers only.
        bias: Whether the affine maps have a bias.
        batch_first: Whether input and output are [B, T, ...] instead of [T, B, ...].
        dropout: Probability in [0, 1] of zeroing an output between layers; one mask per sequence.
        bidirectional: Whether every layer also reads the sequence backwards.
        activation: "relu" or "tanh".
        longest_dependency: Number of steps N >= 1 to remember. |w| is clamped to 2^(1/N), and the
            last layer starts with memories of that length, w from U(2^(-1/N), 2^(1/N)). None for no
            bound.
        device: Device of the parameters.
        dtype: Floating-point type of the parameters.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; state: h [L * D, B, H].

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If an argument has the wrong type.

    Note:
        w starts from U(0, 1) (with N, up to 2^(1/N)), V from U(-1/sqrt(H), 1/sqrt(H)), biases at
        zero; the lower end of the last layer's interval is ours. The bound clamps w at every step.
        The layer omits the paper's batch normalisation, because statistics over time and batch
        would make an output depend on later samples and on other sequences.

    Example:
        >>> import torch
        >>> layer = IndRNN(6, 32, num_layers=2, batch_first=True)
        >>> output, state = layer(torch.zeros(8, 100, 6))
        >>> output.shape, state.h.shape
        (torch.Size([8, 100, 32]), torch.Size([2, 8, 32]))

    References:
        Li, Li, Cook, Zhu and Gao, Independently Recurrent Neural Network (IndRNN): Building A
        Longer and Deeper RNN, CVPR 2018.
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
        activation: str = "relu",
        longest_dependency: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional
        )
        self.activation = _checks.choice("activation", activation, _ACTIVATIONS)
        if longest_dependency is not None:
            _checks.positive_int("longest_dependency", longest_dependency)
        self.longest_dependency = longest_dependency
        self.make_parameters(device=device, dtype=dtype)

    def parameter_shapes(self, input_size: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes listed above."""
        H = self.hidden_size
        return {"weight_ih": (H, input_size), "weight_hh": (H,), "bias": (H,)}

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Initialise a parameter as described in the note above."""
        if name == "weight_ih":
            super().init_parameter(name, parameter)
        elif name == "bias":
            parameter.zero_()
        else:
            parameter.uniform_(0.0, self._bound)

    @property
    def _bound(self) -> float:
        """Return the largest |w|; without a bound, the largest initial |w|."""
        return 1.0 if self.longest_dependency is None else 2 ** (1 / self.longest_dependency)

    def reset_parameters(self) -> None:
        """Redraw every weight; ``longest_dependency`` gives the last layer long memories."""
        super().reset_parameters()
        if self.longest_dependency is None:
            return
        with torch.no_grad():
            for suffix in self._suffixes[-self.num_directions :]:
                getattr(self, "weight_hh" + suffix).uniform_(1 / self._bound, self._bound)

    def prepare(self, w: Any) -> Tensor:
        """Return the vector w, clamped to its bound."""
        if self.longest_dependency is None:
            return w.weight_hh  # type: ignore[no-any-return]
        return w.weight_hh.clamp(-self._bound, self._bound)  # type: ignore[no-any-return]

    def step_function(
        self, u: Tensor, state: HiddenState, w: Tensor, dt: float | Tensor
    ) -> HiddenState:
        """Take one step of the equation above."""
        return HiddenState(_ACTIVATIONS[self.activation](torch.addcmul(u, w, state.h)))
