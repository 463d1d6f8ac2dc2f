"""A sequence layer from a step function: the base for recurrences without a kernel of their own."""

from __future__ import annotations

import functools
import math
from collections import namedtuple
from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor

from anharmonic._checks import has_dtype
from anharmonic.nn.sequence.base import SequenceLayer
from anharmonic.ops.recurrence import HiddenState, Layer, stepwise
from anharmonic.ops.replay import run_chain
from anharmonic.ops.sequence import run_layers


class StepLayer(SequenceLayer):
    """A stack of layers made from one step of a recurrence, with the call of ``nn.LSTM``.

    A subclass says the shapes of its parameters (``parameter_shapes``) and its equation
    (``step_function``), and calls ``make_parameters`` at the end of its constructor; it gets
    stacking, both directions, packed sequences, dropout, streaming and saving. It runs as a loop in
    PyTorch, and keeps every state for the backward pass.

    ``drive`` is the input's share of all steps, one product over the whole sequence, ``prepare``
    what is the same at every step (a matrix exponential, say), and ``init_parameter`` how a
    parameter starts. An equation with a step size sets ``has_step_size = True`` and ``self.dt``;
    ``elapsed`` times then multiply it. ``state_type`` names the variables of the state: the first
    is the output.

    Args:
        bias: Whether there is a parameter called "bias"; if not, it is None in the weights.

    Example:
        >>> import torch
        >>> from anharmonic.nn import HiddenState, StepLayer
        >>> class LeakyRNN(StepLayer):
        ...     def __init__(
        ...         self, input_size, hidden_size, num_layers=1, *,
        ...         leak=0.1, device=None, dtype=None, **options,
        ...     ):
        ...         super().__init__(input_size, hidden_size, num_layers, **options)
        ...         self.leak = leak
        ...         self.make_parameters(device=device, dtype=dtype)
        ...
        ...     def parameter_shapes(self, input_size):
        ...         H = self.hidden_size
        ...         return {"weight_ih": (H, input_size), "weight_hh": (H, H), "bias": (H,)}
        ...
        ...     def step_function(self, u, state, w, dt):
        ...         new = torch.tanh(u + state.h @ w.weight_hh.T)
        ...         return HiddenState(torch.lerp(state.h, new, self.leak))
        >>> layer = LeakyRNN(2, 8, leak=0.5, bidirectional=True)
        >>> layer
        LeakyRNN(2, 8, leak=0.5, bidirectional=True)
        >>> output, state = layer(torch.zeros(5, 3, 2))
        >>> output.shape, state.h.shape
        (torch.Size([5, 3, 16]), torch.Size([2, 3, 8]))
    """

    state_type: ClassVar[Any] = HiddenState
    has_step_size = False
    memory: str = "stored"
    dt: float

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional
        )

    # ---- what a subclass says ----------------------------------------------------------------
    def parameter_shapes(self, input_size: int) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter of a layer, by name, for an input of this many features."""
        raise NotImplementedError

    def step_function(self, u: Any, state: Any, w: Any, dt: float | Tensor) -> Any:
        """One step of one layer.

        Args:
            u: The drive of this step, [B, ...].
            state: The state before it, [B, H] each.
            w: What ``prepare`` returned.
            dt: Step size times the elapsed time, a number or [B, 1]; 1 without a step size.

        Returns:
            The new state.
        """
        raise NotImplementedError

    def drive(self, x: Tensor, w: Any) -> Any:
        """The input's share of every step, [T, B, F] -> [T, B, ...] (or a named tuple of such)."""
        return F.linear(x, w.weight_ih, w.bias)

    def prepare(self, w: Any) -> Any:
        """What every step takes alike, from the layer's parameters by name."""
        return w

    def init_parameter(self, name: str, parameter: Tensor) -> None:
        """Fills a parameter in place with its first values: U(-1/sqrt(H), 1/sqrt(H))."""
        bound = 1 / math.sqrt(self.hidden_size)
        parameter.uniform_(-bound, bound)

    # ---- how it runs -------------------------------------------------------------------------
    def _shapes(self, layer: int, widths: list[int]) -> dict[str, tuple[int, ...]]:
        return self.parameter_shapes(widths[layer])

    def _initialise(self, stem: str, parameter: Tensor, width: int) -> None:
        self.init_parameter(stem, parameter)

    def layer_weights(self, suffix: str = "_l0") -> Any:
        """The parameters of one layer by name, None for an absent bias; "_l0_reverse" and so on."""
        return self._weights(_named(tuple(self.parameter_shapes(1))), [suffix])[0]

    def _kernel(
        self, x: Tensor, suffixes: list[str], state: Any, **call: Any
    ) -> tuple[Tensor | None, ...]:
        weights = [self.layer_weights(suffix) for suffix in suffixes]
        for suffix, own in zip(suffixes, weights, strict=True):
            for name, value in zip(own._fields, own, strict=True):
                if value is not None:
                    has_dtype(name + suffix, value, x.dtype)
        return run_layers(self._chain, x, weights, state, settings={}, **call)

    def _chain(
        self, x: Tensor, weights: list[Any], *state: Tensor, **shared: Any
    ) -> tuple[Tensor | None, ...]:
        walk = stepwise(self._layer, self.step_function)
        return run_chain(walk, x, weights, self.state_type(*state), tile=x.shape[0], **shared)

    def _layer(self, w: Any, inputs: list[Tensor]) -> Layer:
        dt = self.dt if self.has_step_size else 1.0
        return Layer(self.drive(inputs[-1], w), self.prepare(w), dt)


@functools.cache
def _named(names: tuple[str, ...]) -> Any:
    """A named tuple of a layer's parameters, with a bias even where there is none."""
    return namedtuple("LayerWeights", dict.fromkeys((*names, "bias")))
