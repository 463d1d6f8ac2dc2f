"""Times taken in turns in one process, so that all entrants meet the same disturbances."""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

import torch
from torch import nn

Name = TypeVar("Name")
LSTM = "nn.LSTM"


def take_turns(
    turns: Mapping[Name, Callable[[], object]],
    goes_on: Callable[[int], bool],
    warm_up: int = 1,
    slow: Collection[Name] = (),
    clock: Callable[[], float] | None = None,
) -> dict[Name, list[float]]:
    """Let all take turns, and return the seconds of each turn that counts, by name.

    ``goes_on`` says from the number of rounds so far whether there is another. The first rounds
    ``warm_up``. Names in ``slow`` take part in two further rounds only. The clock is
    ``time.perf_counter`` unless another is given.

    Example:
        >>> {name: len(v) for name, v in take_turns({"a": int}, lambda number: number < 4).items()}
        {'a': 3}
    """
    clock = clock or time.perf_counter
    taken: dict[Name, list[float]] = {name: [] for name in turns}
    number = 0
    with no_garbage_collection():
        while goes_on(number):
            for name, turn in turns.items():
                if name in slow and number >= warm_up + 2:
                    continue
                start = clock()
                turn()
                if number >= warm_up:
                    taken[name].append(clock() - start)
            number += 1
    return taken


def medians(
    turns: Mapping[Name, Callable[[], object]],
    repeats: int,
    warm_up: int = 1,
    slow: Collection[Name] = (),
    clock: Callable[[], float] | None = None,
) -> dict[Name, float]:
    """Return the median seconds of each, of so many turns."""
    taken = take_turns(turns, lambda number: number < repeats + warm_up, warm_up, slow, clock)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def training_step(layer: nn.Module, x: torch.Tensor, *, every: bool = False) -> Callable[[], None]:
    """Return a training step: forward, loss on the last output or on ``every`` one, backward.

    Output, graph and gradients are made anew and released within the step, as a user's are.
    """

    def step() -> None:
        layer.zero_grad()
        output = layer(x)[0]
        (output.square().mean() if every else output[-1].sum()).backward()

    return step


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect garbage before a ``with`` block and not during it, so that no turn pays for it."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
