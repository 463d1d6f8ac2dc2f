r"""A recurrent layer as a map from state to state, for diagnostics.

.. math::
    X_n = f(X_{n-1}, u_n)

X is the layer's whole state in one vector: y and z of every level for ours, h and c for an LSTM.
Letters: `T` steps, `B` sequences, `F` features, `M` entries of the state.
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
"""Maps states [B, M] and inputs [B, F] to the next states [B, M]."""


@dataclass(frozen=True)
class Recurrence:
    """A layer as a map of flat states.

    Args:
        layer: The original layer.
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
        """Number M of entries in the state of one sequence."""
        return sum(levels * width for levels, width in self.shapes)

    def start(self, batch: int) -> Tensor:
        """Return the state at rest, [B, M]."""
        example = next(self.layer.parameters())
        return torch.zeros(batch, self.size, dtype=example.dtype, device=example.device)

    def step(self, state: Tensor, x_t: Tensor) -> Tensor:
        """Take one step.

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
        """Split flat states [..., B, M] into parts [..., L, B, H]."""
        sizes = [levels * width for levels, width in self.shapes]
        return tuple(
            part.reshape(*part.shape[:-1], *shape).movedim(-2, -3).contiguous()
            for part, shape in zip(torch.split(state, sizes, dim=-1), self.shapes, strict=True)
        )

    def output(self, state: Tensor) -> Tensor:
        """Return the layer's output in a state: the top level of its first part, [..., B, H]."""
        top = self.parts(state)[0][..., -1, :, :]
        # Of layers of unequal widths the state has the largest one.
        widths = getattr(self.layer, "hidden_sizes", None)
        return top[..., : widths[-1]] if widths else top

    def walk(self, x: Tensor, start: Tensor | None = None) -> list[Tensor]:
        """Return the states of all steps after the start (at rest if None), which comes first.

        Shape:
            x [T, B, F]; result T + 1 times [B, M].
        """
        states = [self.start(x.shape[1]) if start is None else start]
        for x_t in x:
            states.append(self.step(states[-1], x_t))
        return states


def recurrence(layer: Any) -> Recurrence:
    """Return a recurrent layer as a map of flat states.

    Args:
        layer: A unidirectional layer of this package, ``torch.nn.LSTM``, ``nn.GRU``, ``nn.RNN``, or
            a ``SequenceModel`` of one.

    Raises:
        TypeError: If it is not such a layer.
        ValueError: If it is bidirectional, or its output is not part of its state.

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
        "one whose output is a part of its state",
        "of a LinOSSNetwork give the oscillators of a block, network.blocks[0].oscillators",
    )  # fmt: skip
    example = next(layer.parameters())
    with examined(layer), torch.no_grad():  # one step at rest shows the parts of the state
        x = example.new_zeros(1, 1, layer.input_size)
        _, state = layer(x)
    parts = (state,) if isinstance(state, Tensor) else tuple(state)
    shapes = tuple((part.shape[0], part.shape[2]) for part in parts)
    return Recurrence(layer, shapes, layer.input_size)


def layer_of(model: Any) -> Any:
    """Return the recurrent layer of a model, or the layer itself."""
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
    """Check for a time-first batch of sequences."""
    fits = isinstance(x, Tensor) and x.dim() == 3 and x.shape[-1] == input_size and x.numel() > 0
    expected = f"of shape [T, B, {input_size}], time first whatever the layer's layout"
    require(fits, "x", x, expected, "transpose it, or add a dimension for a batch of one")
    found: Tensor = x
    no_nan("x", found)
    return found


def check_one(x: Any, input_size: int) -> Tensor:
    """Check for one time-first sequence, [T, 1, F]."""
    found = check_inputs(x, input_size)
    advice = "pass x[:, :1]"
    if found.shape[0] == 1:
        advice = "time comes first whatever the layer's layout: pass x.transpose(0, 1)"
    require(found.shape[1] == 1, "x", found, "one sequence, [T, 1, F]", advice)
    return found


@contextmanager
def examined(module: nn.Module) -> Iterator[None]:
    """Switch off dropout within a block, then restore the module's mode.

    cuDNN is switched off, because it has no backward pass in evaluation mode.
    """
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.backends.cudnn.flags(enabled=False):
            yield
    finally:
        for part, mode in modes:
            part.training = mode
