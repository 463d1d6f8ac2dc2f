"""What a model's Triton kernels are given: one layer over one tile of time, and its gradients."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

_SHORTEST_TILE, _LONGEST_TILE = 256, 8192
_FEWEST_NUMBERS = 2**19


def tile_steps(steps: int, batch: int, hidden: int) -> int:
    """Steps of a tile: near 8 sqrt(T), more where a step is small, to hide what a start costs.

    Args:
        steps: T.
        batch: B.
        hidden: H.

    Example:
        >>> tile_steps(1000, 128, 256), tile_steps(17_984, 8, 32), tile_steps(1_000_000, 8, 256)
        (256, 2048, 8000)
    """
    length = max(64 * int(math.sqrt(steps) / 8), _FEWEST_NUMBERS // (batch * hidden))
    return min(max(length, _SHORTEST_TILE), _LONGEST_TILE, steps)


def saved_shape(
    steps: int, batch: int, hidden: int, layers: int, sections: int, policy: str
) -> tuple[int, ...]:
    """The shape of what is saved between forward and backward.

    Args:
        steps: T.
        batch: B.
        hidden: H.
        layers: L.
        sections: Activations a model keeps per neuron and step.
        policy: "nothing", "stored", "chunked" or "reversible".

    Example:
        >>> [saved_shape(1000, 64, 64, 1, 1, policy) for policy in ("stored", "chunked")]
        [(12296192,), (4, 2, 1, 64, 64)]
    """
    if policy == "nothing":
        return (0,)
    if policy == "stored":
        states = stored_states(steps, batch, hidden, layers)
        return (states + layers * batch * hidden * sections * steps,)
    ends = (2, layers, batch, hidden)
    return (
        ends if policy == "reversible" else (-(-steps // tile_steps(steps, batch, hidden)), *ends)
    )


def stored_states(steps: int, batch: int, hidden: int, layers: int) -> int:
    """Numbers of all states, a multiple of 64, so that what lies behind them is aligned.

    Example:
        >>> stored_states(10, 2, 3, 1)
        192
    """
    return -(-2 * layers * batch * hidden * (steps + 1) // 64) * 64


class Part(NamedTuple):
    """One layer over one tile of n steps.

    Attributes:
        weights: Those of the recurrence.
        scalars: The model's numbers.
        acts: The drive; the forward pass puts the activations in its place.
        y, z: States; slot 0 holds the state before the tile.
        elapsed: Time since the previous sample, or None.
        lengths: Valid steps of each sequence (int32), or None.
        first: The tile's first step.
        precision: Of products.
        grid_y, grid_z: The state on the grid, moved in place, or None.

    Shape:
        acts [n, B, S * H]; y, z [n + 1, B, H]; elapsed [n, B]; grid_y, grid_z [B, H].
    """

    weights: Sequence[Tensor]
    scalars: Tensor
    acts: Tensor
    y: Tensor
    z: Tensor
    elapsed: Tensor | None
    lengths: Tensor | None
    first: int
    precision: str
    grid_y: Tensor | None = None
    grid_z: Tensor | None = None


class Sums(NamedTuple):
    """The gradients of a part.

    Attributes:
        grad: Of the outputs, or None where there is none.
        grad_y, grad_z: Of the state after the tile; the backward pass puts that before in place.
        g: Room for the gradient of the drive.
        by_gap: Room for the gradient of every neuron's elapsed time, or None.
        elementwise: Sums over time that the kernels add to.

    Shape:
        grad, by_gap [n, B, H]; grad_y, grad_z [B, H]; g [n, B, S * H]; elementwise [K, B, H].
    """

    grad: Tensor | None
    grad_y: Tensor
    grad_z: Tensor
    g: Tensor
    by_gap: Tensor | None
    elementwise: Tensor


class Model:
    """What a model's kernels do; a layer's weights are V, b, Λ and then ``recurrent`` of its own.

    Attributes:
        sections: Drives per neuron, and activations saved of a step.
        recurrent: Weights behind V, b and Λ.
        elementwise_sums: Sums over time that the backward kernel makes per neuron and sequence.
        grid: Whether states live on a fixed-point grid, which ``undo`` walks back.
    """

    sections = 1
    recurrent = 0
    elementwise_sums = 0
    grid = False

    def forward(self, part: Part) -> None:
        """Walks one layer over one tile."""
        raise NotImplementedError

    def backward(self, part: Part, sums: Sums) -> None:
        """Carries gradients back through one layer over one tile."""
        raise NotImplementedError

    def undo(self, part: Part) -> None:
        """Walks back on the grid."""
        raise NotImplementedError

    def add_weight_gradients(self, part: Part, sums: Sums, grads: list[Tensor]) -> None:
        """Adds one tile to the gradients of the recurrent matrices."""
        raise NotImplementedError

    def finish(self, elementwise: Tensor, grads: list[Tensor], scalars: Tensor) -> None:
        """Makes gradients of elementwise weights and scalars of the sums [K, B, H]."""
        raise NotImplementedError

    def to_grid(self, state: Tensor) -> Tensor:
        """A float32 state on the grid."""
        raise NotImplementedError


def sections_of(name: str) -> int:
    """Activations that a model keeps per neuron and step; known without Triton.

    Example:
        >>> sections_of("cornn_explicit"), sections_of("lem")
        (1, 4)
    """
    if name.startswith("lem"):
        return 2 if name == "lem_single_scale" else 4
    return 1


def model_of(name: str) -> Model:
    """The kernels of a model, which need Triton."""
    module = importlib.import_module(f"anharmonic.ops.gpu.{name.partition('_')[0]}")
    found: Model = module.MODELS[name]
    return found
