"""Neural oscillators in layers: independent ones within a layer, driven by the layer below."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from anharmonic import _checks
from anharmonic.nn.sequence.oscillator import SQUARED_FREQUENCIES, _NeuralOscillators
from anharmonic.ops.oscillator import OscillatorWeights, only_reference
from anharmonic.ops.recurrence import State


class MultiLayerNeuralOscillator(_NeuralOscillators):
    r"""Neural oscillators in layers, (4.2), with the call of ``nn.LSTM``.

    Equation (4.2) for layer l, with :math:`y^0 = u` the input:

    .. math::
        (y^l)'' = \sigma(w^l \odot y^l + V^l y^{l-1} + b^l)

    Discretised as ``NeuralOscillator`` is; every step is invertible and preserves volume. Mind the
    sign: +σ here, where UnICORNN has -tanh.

    Parameters of layer k are ``weight_ih_lk`` (V) [m_k, F or D * m_(k-1)], ``weight_hh_lk`` (w) and
    ``bias_lk`` [m_k], with m_k from ``hidden_sizes``; those of a reverse direction end in
    ``_reverse``.

    Args:
        hidden_size: Neurons of the top layer, and of all layers without ``hidden_sizes``; H >= 1.
        hidden_sizes: Neurons of every layer from the bottom up, the last of them ``hidden_size``;
            None gives all layers ``hidden_size``.
        memory: What is kept for the backward pass: "stored" states, "chunked" (a state now and
            then, the rest computed again), "reversible" (the end state only; one direction,
            symplectic Euler, tanh), or "auto", which picks one of the first two.
        dt: Step size, > 0. Default 0.05.
        scheme: "symplectic-euler" or "velocity-verlet" (two evaluations of σ per step).
        activation: σ: "tanh", "sin", or "identity", which makes the layer linear.

    Shape:
        x [T, B, F] ([B, T, F] with ``batch_first``), [T, F] unbatched or a ``PackedSequence``;
        output [T, B, D * H] likewise; elapsed [T, B] likewise; state: y and z [L * D, B, M] with M
        the largest width: narrower layers fill the front of their row, the rest is zero.

    Raises:
        ValueError: If an argument is out of range, or the widths do not fit.
        TypeError: If an argument is of the wrong kind.

    Note:
        Nothing damps here: near rest neuron i is stable iff w_i = -ω² < 0, and its steps iff dt ω
        < 2. So w starts from U(-1.5, -0.5); V and b start as UnICORNN's: V Kaiming-uniform with
        slope 8, b zero. ``|σ| <= 1`` keeps ``|y_n|`` below (n dt)² whatever the weights. A
        ``StabilityWarning`` is about the start; ``NeuralOscillator`` says what holds over long
        times. With ``elapsed`` e_n dt becomes dt e_n. Symplectic Euler with tanh runs on UnICORNN's
        compiled kernel on a CPU (``memory="reversible"`` on its grid), the others on the reference.
        Unlike widths are computed as if all were the largest.

    Example:
        >>> import torch
        >>> layer = MultiLayerNeuralOscillator(6, 32, 3, hidden_sizes=[64, 48, 32])
        >>> output, state = layer(torch.zeros(100, 8, 6))
        >>> output.shape, state.y.shape
        (torch.Size([100, 8, 32]), torch.Size([3, 8, 64]))

    References:
        Lanthaler, Rusch and Mishra, Neural Oscillators are Universal, NeurIPS 2023.
    """

    _invertible = True

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        hidden_sizes: list[int] | None = None,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        memory: str = "auto",
        dt: float = 0.05,
        scheme: str = "symplectic-euler",
        activation: str = "tanh",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, memory
        )
        self.hidden_sizes = None if hidden_sizes is None else self._checked_widths(hidden_sizes)
        self._set(dt, scheme, activation)
        unfit = only_reference(self.scheme, self.activation)
        _checks.require(
            memory != "reversible" or unfit is None, "memory", memory,
            f"'stored', 'chunked' or 'auto' for {unfit}",
            "use memory='chunked', or scheme='symplectic-euler' and activation='tanh'",
        )  # fmt: skip
        self.make_parameters(device=device, dtype=dtype)

    def _checked_widths(self, hidden_sizes: list[int]) -> list[int]:
        """The width of every layer."""
        _checks.require(
            isinstance(hidden_sizes, list | tuple), "hidden_sizes", hidden_sizes,
            "a list of ints, one per layer, or None", "list the widths from the bottom up",
            TypeError,
        )  # fmt: skip
        widths = [_checks.positive_int(f"hidden_sizes[{k}]", m) for k, m in enumerate(hidden_sizes)]
        _checks.require(
            len(widths) == self.num_layers and widths[-1] == self.hidden_size, "hidden_sizes",
            widths, f"{self.num_layers} widths (num_layers), the last of them "
            f"hidden_size={self.hidden_size}", "make the three agree",
        )  # fmt: skip
        return widths

    def _sizes(self) -> list[int]:
        return self.hidden_sizes or [self.hidden_size] * self.num_layers

    def _shapes(self, layer: int, widths: list[int]) -> dict[str, tuple[int, ...]]:
        m = self._sizes()[layer]
        return {"weight_ih": (m, widths[layer]), "weight_hh": (m,), "bias": (m,)}

    def _initialise_couplings(self, parameter: Tensor) -> None:
        low, high = SQUARED_FREQUENCIES
        parameter.uniform_(-high, -low)

    def _weights(self, kind: Any, suffixes: list[str]) -> list[Any]:
        """The weights, those of narrower layers filled up with neurons that stay at rest."""
        weights: list[OscillatorWeights] = super()._weights(kind, suffixes)
        if self.hidden_sizes is None:
            return weights
        wide, D, filled = max(self.hidden_sizes), self.num_directions, []
        for k, (V, w, b) in enumerate(weights):
            below, missing = k // D - 1, wide - len(w)
            if below >= 0:  # the columns of each direction of the layer below
                size = self.hidden_sizes[below]
                V = pad(V.reshape(len(w), D, size), (0, wide - size)).flatten(1)
            b = None if b is None else pad(b, (0, missing))
            filled.append(OscillatorWeights(pad(V, (0, 0, 0, missing)), pad(w, (0, missing)), b))
        return filled

    def _kernel(
        self, x: Tensor, suffixes: list[str], state: State, **call: Any
    ) -> tuple[Tensor | None, Tensor, Tensor]:
        output, y, z = super()._kernel(x, suffixes, state, **call)
        if output is not None and self.hidden_sizes is not None:
            by_direction = output.reshape(*output.shape[:-1], self.num_directions, -1)
            output = by_direction[..., : self.hidden_size].flatten(-2)
        return output, y, z
