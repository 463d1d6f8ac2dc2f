"""Figure 3.2 of the thesis (T): duration of a forward and a backward pass on this CPU."""

import statistics
import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from anharmonic import nn, use_backend
from anharmonic.train import RunEnvironment
from anharmonic_papers.figures.base import Curves, Figure
from anharmonic_papers.models.exprnn import ExpRNN
from anharmonic_papers.models.indrnn import IndRNN

LENGTHS = (250, 500, 1000)
BATCH, INPUTS, HIDDEN, TURNS = 128, 1, 128, 5


def _layers() -> Mapping[str, tuple[str, Callable[[], torch.nn.Module]]]:
    """Return the backend and the constructor of the layer of each curve, by its name."""
    sizes = (INPUTS, HIDDEN)
    return {
        "UnICORNN, 2 layers": ("auto", lambda: nn.UnICORNN(*sizes, num_layers=2)),
        "UnICORNN, 2 layers, Python loop": (
            "reference", lambda: nn.UnICORNN(*sizes, num_layers=2),
        ),
        "coRNN": ("auto", lambda: nn.CoRNN(*sizes)),
        "coRNN, Python loop": ("reference", lambda: nn.CoRNN(*sizes)),
        "LEM": ("auto", lambda: nn.LEM(*sizes)),
        "LSTM": ("auto", lambda: torch.nn.LSTM(*sizes)),
        "IndRNN, 2 layers, Python loop": ("auto", lambda: IndRNN(*sizes, num_layers=2)),
        "expRNN, Python loop": ("auto", lambda: ExpRNN(*sizes)),
    }  # fmt: skip


def milliseconds(layer: torch.nn.Module, x: Tensor, turns: int = TURNS) -> float:
    """Return the median time of a forward and backward pass in ms, after one warm-up pass."""
    found = []
    for _ in range(turns + 1):
        begun = time.perf_counter()
        output, _ = layer(x)
        output.sum().backward()
        found.append(1000 * (time.perf_counter() - begun))
    return statistics.median(found[1:])


def _measure(environment: RunEnvironment) -> Curves:
    threads = torch.get_num_threads()
    torch.set_num_threads(environment.threads or threads)
    values: dict[str, list[float]] = {}
    try:
        for name, (backend, make) in _layers().items():
            with use_backend(backend):
                layer = make()
                values[name] = [
                    milliseconds(layer, torch.randn(length, BATCH, INPUTS)) for length in LENGTHS
                ]
        places = {name: [float(length) for length in LENGTHS] for name in values}
        return Curves(values, places)
    finally:
        torch.set_num_threads(threads)


FIGURES = (
    Figure(
        id="unicornn-speed",
        title="Time of a forward and a backward pass",
        source="thesis Figure 3.2; UnICORNN paper Figure 2",
        x="sequence length",
        y="milliseconds per batch of 128",
        outcomes={
            "UnICORNN, 2 layers": "30 to 40 times faster than expRNN and coRNN",
            "LSTM": "slowest of UnICORNN, SRU, IndRNN and LSTM (cuDNN)",
            "IndRNN, 2 layers, Python loop": "similar to UnICORNN",
        },
        measure=_measure,
        marks=tuple(float(length) for length in LENGTHS),
        note=(
            "128 units, one input, float32, median of five passes. The paper times CUDA kernels on "
            "an RTX 2080 Ti at lengths 1000 and 2000 and prints no numbers; these are times on a "
            "CPU. A Python loop is the same step in plain PyTorch, as the papers' coRNN is; IndRNN "
            "has no batch normalisation here. SRU is not in this package."
        ),
        log="xy",
    ),
)
