"""A step function run over time: tile by tile, all layers together.

A model says one step and what a layer needs for it (``Layer``); ``stepwise`` makes a walk of it,
which takes one layer over a few steps. Time is cut into the same tiles whatever is saved for the
backward pass (``replay.py``), so that every product has the same operands.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

_scanning = False
"""Whether recurrences run as scans, see ``as_scan``."""
TILE = 64
"""Steps whose input product is made at once."""


class State(NamedTuple):
    """State of an oscillator or multiscale layer.

    Attributes:
        y: Positions (slow states in LEM); the output is y.
        z: Velocities (fast states in LEM).

    Shape:
        [L * D, B, H] each for a layer ([L * D, H] unbatched), [B, H] or [H] for a cell; L layers,
        D directions, ordered layer by layer, forward before reverse.
    """

    y: Tensor
    z: Tensor


class HiddenState(NamedTuple):
    """State of a layer with one variable: h [L * D, B, H]."""

    h: Tensor


class Steps(NamedTuple):
    """A stretch of time: x [n, B, F], elapsed [n, B] or None, valid [n, B, 1] or None."""

    x: Tensor
    elapsed: Tensor | None
    valid: Tensor | None

    def part(self, start: int, length: int) -> Steps:
        """The ``length`` steps (or what is left of them) from ``start`` on."""
        stretch = slice(start, start + length)
        return Steps(*(None if t is None else t[stretch] for t in self))  # type: ignore[arg-type]

    def gaps(self) -> Sequence[Tensor | None]:
        """The elapsed time of every step, [B, 1] each, or None where time is even."""
        if self.elapsed is None:
            return [None] * len(self.x)
        return self.elapsed.unsqueeze(-1).unbind(0)

    def running(self) -> Sequence[Tensor | None]:
        """Which sequences still run at every step, [B, 1] each, or None where all do."""
        return [None] * len(self.x) if self.valid is None else self.valid.unbind(0)


class Layer(NamedTuple):
    """What the steps of one layer are made of, over a stretch of time.

    Attributes:
        drive: The input's share of every step: a tensor [n, B, ...] or a named tuple of such.
        weights: What every step takes alike.
        dt: Step size, before it is multiplied by the elapsed time.
        output: Which of the variables that a step returns the layer gives, by position.
    """

    drive: Any
    weights: Any
    dt: float | Tensor = 1.0
    output: int = 0

    def drives(self) -> Iterator[Any]:
        """The drive of every step, one after another."""
        if isinstance(self.drive, Tensor):
            yield from self.drive.unbind(0)
        else:
            parts = zip(*(part.unbind(0) for part in self.drive), strict=True)
            yield from map(type(self.drive)._make, parts)


Step = Callable[[Any, Any, Any, Any], tuple[Tensor, ...]]
"""``step(u, state, weights, dt)`` -> the new state: a model's equation.

``u`` is the drive of this step, [B, ...]; ``state`` holds [B, H] each; ``dt`` is a number, [], [H],
or with elapsed times [B, 1] or [B, H]. Variables that it returns behind those of the state are not
carried on: a layer can give one as its output.
"""

Prepare = Callable[[Any, list[Tensor]], Layer]
"""``prepare(weights, inputs)``: makes a layer ready for a stretch of time.

``inputs[-1]`` is the layer's input [n, B, F], ``inputs[-1 - s]`` that of the layer s below.
"""

Walk = Callable[[Any, list[Tensor], Any, Steps], tuple[Tensor, Any]]
"""``walk(weights, inputs, state, steps)`` -> outputs [n, B, H] and the state after these steps."""


def stepwise(prepare: Prepare, step: Step) -> Walk:
    """Makes a walk of a step function; states stand still beyond a sequence's end.

    Example:
        >>> walk = stepwise(lambda w, inputs: Layer(w * inputs[-1], None), lambda u, s, w, dt: (u,))
        >>> steps = Steps(torch.ones(3, 1, 1), None, None)
        >>> walk(2.0, [steps.x], HiddenState(torch.zeros(1, 1)), steps)[0].flatten()
        tensor([2., 2., 2.])
    """

    def walk(weights: Any, inputs: list[Tensor], state: Any, steps: Steps) -> tuple[Tensor, Any]:
        layer = prepare(weights, inputs)
        if _scanning:
            return _scanned(layer, step, state, steps)
        size = len(state)
        outputs = []
        for u, gap, valid in zip(layer.drives(), steps.gaps(), steps.running(), strict=True):
            new = step(u, state, layer.weights, layer.dt if gap is None else layer.dt * gap)
            state = type(state)._make(map(keep, [valid] * size, new, state))
            outputs.append((*state, *new[size:])[layer.output])
        return torch.stack(outputs), state

    return walk


def _scanned(layer: Layer, step: Step, state: Any, steps: Steps) -> tuple[Tensor, Any]:
    """The walk as one loop of the exported graph, however many steps there are."""
    from torch._higher_order_ops.scan import scan

    kind, size, uneven = type(state), len(state), steps.elapsed is not None
    drive: Any = layer.drive if isinstance(layer.drive, Tensor) else tuple(layer.drive)
    xs = [drive] if isinstance(drive, Tensor) else list(drive)
    parts = len(xs)
    if steps.elapsed is not None:
        xs.append(steps.elapsed.unsqueeze(-1))
    if steps.valid is not None:
        xs.append(steps.valid)

    def one(before: tuple[Tensor, ...], x: list[Tensor]) -> tuple[Any, Tensor]:
        u = x[0] if isinstance(layer.drive, Tensor) else type(layer.drive)._make(x[:parts])
        dt = layer.dt * x[parts] if uneven else layer.dt
        new = step(u, kind._make(before), layer.weights, dt)
        valid = x[-1] if steps.valid is not None else None
        after = tuple(map(keep, [valid] * size, new, before))
        # A loop's results may not share memory with what it carries on.
        return tuple(t.clone() for t in after), (*after, *new[size:])[layer.output].clone()

    end, output = scan(one, tuple(t.clone() for t in state), [t.clone() for t in xs])
    return output, kind._make(end)


def scanning() -> bool:
    """Whether recurrences run as scans."""
    return _scanning


@contextlib.contextmanager
def as_scan() -> Iterator[None]:
    """Within, recurrences run as ``torch`` scans: loops that ``torch.export`` keeps as they are.

    The backend must be "reference", whose steps PyTorch sees.
    """
    global _scanning
    before, _scanning = _scanning, True
    try:
        yield
    finally:
        _scanning = before


def keep(valid: Tensor | None, new: Tensor, old: Tensor) -> Tensor:
    """The new state where a sequence still runs, the old one beyond its end.

    Example:
        >>> keep(None, torch.ones(1), torch.zeros(1))
        tensor([1.])
    """
    return new if valid is None else torch.where(valid, new, old)


def walk_stack(
    walk: Walk,
    weights: Sequence[Any],
    masks: Sequence[Tensor] | None,
    steps: Steps,
    state: Any,
    return_sequence: bool,
    tile: int = TILE,
) -> tuple[Tensor | None, Any]:
    """Walks a stack over ``steps``; the state's variables are [L, B, H], the output [n, B, H]."""
    kind: Any = type(state)
    states = [kind._make(layer) for layer in zip(*(v.unbind(0) for v in state), strict=True)]
    outputs = []
    # (The length of an exported graph is not known: len(...) would fix it.)
    for start in (0,) if _scanning else range(0, len(steps.x), tile):
        part = steps if _scanning else steps.part(start, tile)
        inputs = [part.x]
        for layer, weight in enumerate(weights):
            output, states[layer] = walk(weight, inputs, states[layer], part)
            if part.valid is not None:
                output = torch.where(part.valid, output, torch.zeros_like(output))
            if masks is not None and layer < len(weights) - 1:
                output = output * masks[layer]
            inputs.append(output)
        if return_sequence:
            outputs.append(inputs[-1])
    end = kind._make(torch.stack(variable) for variable in zip(*states, strict=True))
    return torch.cat(outputs) if return_sequence else None, end


def reversed_in_time(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Turns each sequence of [T, B, F] around within its own length; padding stays where it is.

    Example:
        >>> x = torch.tensor([1.0, 2.0, 3.0]).reshape(3, 1, 1)
        >>> reversed_in_time(x, torch.tensor([2])).flatten().tolist()
        [2.0, 1.0, 3.0]
    """
    if lengths is None:
        return x.flip(0)
    steps = torch.arange(x.shape[0], device=x.device)[:, None]
    last = lengths.to(x.device)[None, :] - 1
    index = torch.where(steps <= last, last - steps, steps)
    return x.gather(0, index[:, :, None].expand_as(x))


def gaps_walked_back(elapsed: Tensor, lengths: Tensor | None) -> Tensor:
    """The elapsed times [T, B] in the order in which a reverse direction meets them.

    The gap between samples n and n + 1 is ``elapsed[n + 1]`` from either side, so that a walk from
    the end of N samples meets N - 1, ..., 1; its first step takes what the first sample has.

    Example:
        >>> gaps_walked_back(torch.tensor([[1.0], [2.0], [3.0], [9.0]]), torch.tensor([3]))
        tensor([[1.],
                [3.],
                [2.],
                [9.]])
    """
    if lengths is None:
        return torch.cat([elapsed[:1], elapsed[1:].flip(0)])
    steps = torch.arange(elapsed.shape[0], device=elapsed.device)[:, None]
    length = lengths.to(elapsed.device)[None, :]
    return elapsed.gather(0, torch.where(steps < length, (length - steps) % length, steps))
