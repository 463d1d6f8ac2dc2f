"""Times taken in turns, so that all meet the same disturbances; processes; steps of training."""

import gc
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

LSTM = "nn.LSTM"


@dataclass(frozen=True)
class Case:
    """A layer and its input; the precision is that of products."""

    model: str
    layers: int
    batch: int
    hidden: int
    steps: int
    inputs: int = 1
    memory: str = "auto"
    precision: str = "float32"


def medians(
    turns: Mapping[str, Callable[[], object]],
    repeats: int,
    *,
    warm_up: int = 1,
    least_seconds: float = 0.0,
    slow: Collection[str] = (),
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the median seconds of each, of so many turns or as many as take ``least_seconds``.

    The first turns ``warm_up`` and do not count. Names in ``slow`` take two further turns only.
    """
    taken: dict[str, list[float]] = {name: [] for name in turns}
    number, end = 0, time.perf_counter() + least_seconds
    gc.collect()
    gc.disable()  # no turn pays for garbage of another
    try:
        while number < warm_up + repeats or time.perf_counter() < end:
            for name, turn in turns.items():
                if name in slow and number >= warm_up + 2:
                    continue
                start = clock()
                turn()
                if number >= warm_up:
                    taken[name].append(clock() - start)
            number += 1
    finally:
        gc.enable()
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def isolated(function: Callable[..., Any], *given: Any, variables: Mapping[str, str] | None = None):
    """Call a function of a module in a fresh process, where nothing ran before, with variables."""
    fresh = multiprocessing.get_context("spawn")
    with mock.patch.dict(os.environ, variables or {}), ProcessPoolExecutor(1, fresh) as pool:
        return pool.submit(function, *given).result()


def training_step(layer: nn.Module, x: Tensor, *, every: bool = False) -> Callable[[], None]:
    """Return a training step: forward, loss on the last output or on ``every`` one, backward.

    Output, graph and gradients are made anew and released within the step, as a user's are.
    """

    def step() -> None:
        layer.zero_grad()
        output = layer(x)[0]
        (output.square().mean() if every else output[-1].sum()).backward()

    return step


def descent(model: nn.Module, rate: float, steps: int) -> Callable[[Tensor], None]:
    """Return a step of Adam on a loss, with clipped gradients and one cycle of the rate."""
    optimizer = torch.optim.Adam(model.parameters(), rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)

    def step(loss: Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()

    return step
