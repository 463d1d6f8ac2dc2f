"""What is timed: the cases with their targets, and what stands beside our layers."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from anharmonic import ops as kernels
from anharmonic.nn import model_class

OURS = "anharmonic"
LSTM = "nn.LSTM"
GRU = "nn.GRU"
REFERENCE = "reference"
PEER = "torchrecurrent"
ENTRANTS = (LSTM, OURS, GRU, REFERENCE, PEER)
"""Who takes turns: what a user would pick instead, ours, and our own loops in PyTorch."""
SLOW = (REFERENCE, PEER)
"""Loops in Python; they may be left out where a turn takes seconds."""
_PEER_NAMES = {"CoRNN": "coRNN", "UnICORNN": "UnICORNN", "LEM": "LEM"}


@dataclass(frozen=True)
class Case:
    """One size of one model.

    Args:
        name: What ``--cases`` selects.
        model: Name of the layer, as ``list_models`` has it.
        layers: Layers stacked, of ours and of the LSTM.
        batch: Sequences.
        hidden: Hidden size, of ours and of the LSTM.
        steps: Length of the sequences; 1 is one step of a stream.
        target: Wanted ratio of the LSTM's time to ours, of a training step (of a step of a stream).
        stretch: The ratio that would be better still.
        inputs: Features per step.
    """

    name: str
    model: str
    layers: int
    batch: int
    hidden: int
    steps: int
    target: float
    stretch: float
    inputs: int = 1

    @property
    def modes(self) -> tuple[str, ...]:
        """What is timed: "training" and "inference", or "streaming".

        Example:
            >>> CASES[-1].modes
            ('streaming',)
        """
        return ("streaming",) if self.steps == 1 else ("training", "inference")

    @property
    def title(self) -> str:
        """The case in words.

        Example:
            >>> CASES[0].title
            'UnICORNN, B 32, H 128, T 1,000'
        """
        stack = f" {self.layers} layers" if self.layers > 1 else ""
        length = "one step" if self.steps == 1 else f"T {self.steps:,}"
        return f"{self.model}{stack}, B {self.batch}, H {self.hidden}, {length}"

    def quick(self) -> Case:
        """The same in small, to try the benchmark itself; its times say nothing.

        Example:
            >>> CASES[0].quick().title
            'UnICORNN, B 2, H 8, T 20'
        """
        return replace(
            self,
            batch=min(self.batch, 2),
            hidden=min(self.hidden, 8),
            steps=min(self.steps, 20),
        )


CASES = (
    Case("unicornn-b32", "UnICORNN", 1, 32, 128, 1000, 20, 40),
    Case("unicornn-3-layers", "UnICORNN", 3, 32, 128, 1000, 9, 15),
    Case("unicornn-long", "UnICORNN", 2, 8, 32, 17984, 15, 35),
    Case("cornn-b32", "CoRNN", 1, 32, 128, 1000, 4, 7),
    Case("cornn-b128", "CoRNN", 1, 128, 128, 1000, 4, 7),
    Case("cornn-long", "CoRNN", 1, 8, 32, 17984, 9, 20),
    Case("lem-b32", "LEM", 1, 32, 128, 1000, 2.2, 3.5),
    Case("lem-b128", "LEM", 1, 128, 128, 1000, 2.2, 3.5),
    Case("lem-long", "LEM", 1, 8, 32, 17984, 5, 10),
    Case("unicornn-streaming", "UnICORNN", 1, 1, 128, 1, 2, 5),
    Case("cornn-streaming", "CoRNN", 1, 1, 128, 1, 2, 5),
    Case("lem-streaming", "LEM", 1, 1, 128, 1, 2, 5),
)


def make(entrant: str, case: Case) -> nn.Module | None:
    """The layer of an entrant; None if its package is not installed.

    Args:
        entrant: One of `ENTRANTS`.
        case: Gives the sizes.

    Example:
        >>> make("nn.GRU", CASES[0].quick())
        GRU(1, 8)
    """
    sizes: Any = (case.inputs, case.hidden, case.layers)
    if entrant == LSTM:
        return nn.LSTM(*sizes)
    if entrant == GRU:
        return nn.GRU(*sizes)
    if entrant == PEER:
        if importlib.util.find_spec(PEER) is None:
            return None
        peer: nn.Module = getattr(importlib.import_module(PEER), _PEER_NAMES[case.model])(*sizes)
        return peer
    return model_class(case.model)(*sizes)


def work(entrant: str, case: Case, mode: str, steps: int) -> Callable[[], None] | None:
    """What one turn of an entrant does, as a function; None if its package is not installed.

    A training step makes its output, its graph and its gradients anew and lets go of them, as a
    user's does. A turn of a stream is ``steps`` steps, one after the other.

    Args:
        entrant: One of `ENTRANTS`.
        case: What is computed.
        mode: "training", "inference" or "streaming".
        steps: Length of the sequence, or steps of the stream.
    """
    layer = make(entrant, case)
    if layer is None:
        return None
    x = torch.randn(steps, case.batch, case.inputs)
    turn: Callable[[], None]
    if mode == "training":
        turn = _training(layer, x)
    elif mode == "inference":
        turn = torch.no_grad()(lambda: (layer(x), None)[1])
    else:
        turn = torch.no_grad()(_streaming(layer, x))
    return kernels.use_backend(REFERENCE)(turn) if entrant == REFERENCE else turn


def _training(layer: nn.Module, x: Tensor) -> Callable[[], None]:
    def turn() -> None:
        layer.zero_grad()
        output, _ = layer(x)
        output[-1].sum().backward()

    return turn


def _streaming(layer: nn.Module, x: Tensor) -> Callable[[], None]:
    step: Any = getattr(layer, "step", None)
    steps = (x if step is not None else x[:, None]).unbind(0)

    def turn() -> None:
        state = None
        for x_t in steps:
            _, state = layer(x_t, state) if step is None else step(x_t, state)

    return turn
