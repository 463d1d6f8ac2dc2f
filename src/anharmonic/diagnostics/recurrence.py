r"""A recurrent layer as a map from state to state, which is what the diagnostics look at.

.. math::
    X_n = f(X_{n-1}, u_n)

X is everything the layer carries on, in one vector: y and z of every level of ours, h and c of an
LSTM. Letters: `T` steps, `B` sequences, `F` features, `M` entries of the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from anharmonic._checks import require
from anharmonic._tensors import no_nan

Step = Callable[[Tensor, Tensor], Tensor]
"""From states [B, M] and inputs [B, F] to the next states [B, M]."""


@dataclass(frozen=True)
class Recurrence:
    """A layer as a map of flat states.

    Args:
        layer: What was taken apart.
        shapes: Shape [L, H] of each part of the state, in the layer's order.
        input_size: Features F.

    Example:
        >>> found = recurrence(nn.LSTM(3, 4, num_layers=2))
        >>> found.size, found.shapes
        (16, ((2, 4), (2, 4)))
    """

    layer: Any
    shapes: tuple[tuple[int, int], ...]
    input_size: int

    @property
    def size(self) -> int:
        """Entries M of the state of one sequence."""
        return sum(levels * width for levels, width in self.shapes)

    def start(self, batch: int) -> Tensor:
        """The state of rest, [B, M]."""
        example = next(self.layer.parameters())
        return torch.zeros(batch, self.size, dtype=example.dtype, device=example.device)

    def step(self, state: Tensor, x_t: Tensor) -> Tensor:
        """One step.

        Args:
            state: Flat states.
            x_t: The inputs of the step.

        Shape:
            state [B, M]; x_t [B, F]; result [B, M].
        """
        parts: Any = self.parts(state)
        if hasattr(self.layer, "step"):
            _, after = self.layer.step(x_t, parts if len(parts) > 1 else parts[0])
        else:
            x = x_t[:, None] if self.layer.batch_first else x_t[None]
            _, after = self.layer(x, parts if len(parts) > 1 else parts[0])
        after = (after,) if isinstance(after, Tensor) else tuple(after)
        return torch.cat([part.transpose(0, 1).flatten(1) for part in after], dim=1)

    def parts(self, state: Tensor) -> tuple[Tensor, ...]:
        """Take flat states [..., B, M] apart, into [..., L, B, H] each."""
        sizes = [levels * width for levels, width in self.shapes]
        return tuple(
            part.reshape(*part.shape[:-1], *shape).movedim(-2, -3).contiguous()
            for part, shape in zip(torch.split(state, sizes, dim=-1), self.shapes, strict=True)
        )

    def output(self, state: Tensor) -> Tensor:
        """What the layer puts out in a state: the top level of its first part, [..., B, H]."""
        return self.parts(state)[0][..., -1, :, :]

    def walk(self, x: Tensor, start: Tensor | None = None) -> list[Tensor]:
        """The states of all steps, the initial one first.

        Args:
            x: The inputs, time first.
            start: The initial state; rest if None.

        Shape:
            x [T, B, F]; result T + 1 times [B, M].
        """
        states = [self.start(x.shape[1]) if start is None else start]
        for x_t in x:
            states.append(self.step(states[-1], x_t))
        return states


def recurrence(layer: Any) -> Recurrence:
    """Take a recurrent layer as a map of flat states.

    Args:
        layer: A layer of this package, ``torch.nn.LSTM``, ``nn.GRU`` or ``nn.RNN``, or a
            ``SequenceModel``, whose layer is taken; in one direction.

    Raises:
        TypeError: If it is no such layer.
        ValueError: If it is bidirectional, or its output is no part of its state.

    Example:
        >>> from anharmonic import LEM
        >>> recurrence(LEM(2, 5)).size
        10
    """
    layer = layer_of(layer)
    expected = "False: the diagnostics walk in one direction"
    advice = "take a layer with bidirectional=False"
    require(not layer.bidirectional, "bidirectional", layer.bidirectional, expected, advice)
    require(
        getattr(layer, "output_is_state", True), "layer", type(layer).__name__,
        "one whose output is a part of its state", "look at its oscillators, such as LinOSS",
    )  # fmt: skip
    example = next(layer.parameters())
    with examined(layer), torch.no_grad():  # one step at rest, to see what the layer carries on
        x = example.new_zeros(1, 1, layer.input_size)
        _, state = layer(x)
    parts = (state,) if isinstance(state, Tensor) else tuple(state)
    shapes = tuple((part.shape[0], part.shape[2]) for part in parts)
    return Recurrence(layer, shapes, layer.input_size)


def layer_of(model: Any) -> Any:
    """The recurrent layer of a model, or the layer itself.

    Args:
        model: A ``SequenceModel`` or a layer.

    Raises:
        TypeError: If there is none in it.
    """
    layer = getattr(model, "layer", model)
    sizes = ("input_size", "hidden_size", "num_layers", "bidirectional")
    is_recurrent = isinstance(layer, nn.RNNBase) or hasattr(layer, "step")
    require(
        is_recurrent and all(hasattr(layer, name) for name in sizes),
        "layer",
        type(model).__name__,
        "a recurrent layer: of anharmonic, or torch.nn.LSTM, GRU or RNN",
        "pass the layer, or the SequenceModel that holds it",
        TypeError,
    )
    return layer


def check_inputs(x: Any, input_size: int) -> Tensor:
    """Refuse what is no time-first batch of sequences.

    Args:
        x: The inputs.
        input_size: Features F of the layer.

    Raises:
        ValueError: If its shape is another one, or it holds NaN.
    """
    fits = isinstance(x, Tensor) and x.dim() == 3 and x.shape[-1] == input_size and x.numel() > 0
    require(
        fits,
        "x",
        x,
        f"of shape [T, B, {input_size}], time first whatever the layer's layout",
        "transpose it, or add a dimension for a batch of one",
    )
    found: Tensor = x
    no_nan("x", found)
    return found


@contextmanager
def examined(module: nn.Module) -> Iterator[None]:
    """Look at a module without changing it: no dropout, its mode back afterwards.

    cuDNN is left out, because it has no backward pass in evaluation mode.
    """
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.backends.cudnn.flags(enabled=False):
            yield
    finally:
        for part, mode in modes:
            part.training = mode
