"""Peak memory of one training step: long sequences, and graph networks of many layers."""

from __future__ import annotations

import functools
import itertools
import math
import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from anharmonic import diagnostics, nn
from harness import isolated
from harness.results import Result, caption, markdown_table
from harness.speed import LSTM

PACKAGES = ("torch", "torch_geometric")
PAGES = {
    "memory": ("benchmarks/README.md",),
    "graph-memory": ("benchmarks/README.md",),
    "large-graph-memory": ("docs/more-than-one-machine.md",),
}
GRAPHS = {"Pubmed": (128, 64, 19_717, 88_648), "arXiv": (64, 64, 170_000, 1_200_000)}
"""Layers, width, nodes and edges; edges are drawn at random."""
# glibc keeps freed blocks of a few megabytes and hardly ever reuses them, so a checkpoint saves
# nothing. Blocks above this size go back to the system; the variable is read when a process starts.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "1000000"}


@dataclass(frozen=True)
class Case:
    """One training step on sequences: forward, backward, loss on the final state.

    The target is what is wanted at most, in MB (10**6 bytes).
    """

    model: str
    layers: int
    steps: int
    batch: int
    memory: str = "auto"
    target: float | None = None
    hidden: int = 32
    inputs: int = 1

    @property
    def title(self) -> str:
        """The case in words."""
        stack = f"{self.model} {self.layers} layers" if self.layers > 1 else self.model
        policy = "" if self.model == LSTM else f" {self.memory},"
        return f"{stack},{policy} T {self.steps:,}, B {self.batch}, H {self.hidden}"


SEQUENCES = {
    case.title: case
    for case in (
        Case("UnICORNN", 3, 17_984, 8, target=30, inputs=6),
        Case("LEM", 1, 17_984, 8, target=30, inputs=6),
        Case("CoRNN", 1, 17_984, 8, target=30, inputs=6),
        Case(LSTM, 1, 17_984, 8, inputs=6),
        Case("UnICORNN", 3, 1_000_000, 1, target=200),
        Case("LEM", 1, 1_000_000, 1, target=200),
        Case("CoRNN", 1, 1_000_000, 1, target=200),
        Case("UnICORNN", 3, 1_000_000, 1, memory="reversible", target=40),
    )
}


def cases(options: Namespace) -> dict[str, Callable[[], Result]]:
    found: dict[str, Callable[[], Result]] = {}
    for title, case in SEQUENCES.items():
        small = replace(case, steps=20) if options.quick else case
        found[title] = functools.partial(isolated.run, sequence_step, case=small)
    for size, numbers in GRAPHS.items():
        graphs = ("edge_index", "Adjacency") if size == "Pubmed" else ("Adjacency",)
        combinations = itertools.product(("GraphCON", "GradientGating"), graphs, (False, True))
        for model, graph, checkpoint in combinations:
            name = f"{size}: {model}, {graph}{', checkpoint' if checkpoint else ''}"
            sizes = (4, 2, 6, 9) if options.quick else numbers
            given = {"model": model, "graph": graph, "checkpoint": checkpoint, "sizes": sizes}
            found[name] = functools.partial(isolated.run, graph_step, MALLOC, **given)
    return found


def sequence_step(case: Case) -> Result:
    """Take one training step in this process and return its peak memory.

    A step over eight time steps comes first, so that libraries are loaded and threads run.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sizes: Any = (case.inputs, case.hidden, case.layers)
    if case.model == LSTM:
        layer: Any = torch.nn.LSTM(*sizes)
    else:
        # The papers' rule; with 0.03, gradients through a million steps pass 10^38.
        dt = case.steps**-0.5
        layer = nn.model_class(case.model)(*sizes, memory=case.memory, dt=dt)
    x = torch.randn(case.steps, case.batch, case.inputs)

    def step(x: torch.Tensor) -> None:
        layer.zero_grad()
        is_lstm = case.model == LSTM
        last = layer(x)[1][0][-1] if is_lstm else layer(x, output="none")[1].y[-1]
        last.sum().backward()

    step(x[:8])
    return measured(lambda: step(x), list(layer.parameters()))


def graph_step(model: str, graph: str, checkpoint: bool, sizes: tuple[int, ...]) -> Result:
    """Take one training step of a graph network in this process; one of two layers comes first."""
    from anharmonic.ops import Adjacency

    layers, width, nodes, edges = sizes
    torch.manual_seed(0)
    torch.set_num_threads(1)
    conv = nn.make_conv("GCN", width)
    edge_index = torch.randint(0, nodes, (2, edges))
    given: Any = Adjacency(edge_index, nodes) if graph == "Adjacency" else edge_index
    x = torch.rand(nodes, width, requires_grad=True)

    def step(depth: int) -> None:
        deep = getattr(nn, model)(conv, depth, checkpoint=checkpoint)
        deep(x, given).square().mean().backward()

    step(2)
    return measured(lambda: step(layers), [x, *conv.parameters()])


def measured(step: Callable[[], None], leaves: list[torch.Tensor]) -> Result:
    """The peak above what the process held before the step, its input included.

    Where the system cannot reset the peak (macOS, or a closed /proc), it counts from the peak so
    far: at most as much.
    """
    diagnostics.reset_peak_memory("cpu")
    before = diagnostics.peak_memory_mb("cpu")
    start, cpu_start = time.perf_counter(), time.process_time()
    step()
    gradients = [leaf.grad for leaf in leaves if leaf.grad is not None]
    return {
        "peak_mb": diagnostics.peak_memory_mb("cpu") - before,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu_start,
        "is_finite": all(math.isfinite(gradient.abs().sum().item()) for gradient in gradients),
    }


def tables(results: list[Result]) -> dict[str, str]:
    finite = {True: "finite", False: "NOT FINITE"}
    by_case = {one["case"]: one for one in results}
    sequences = [one for one in results if one["case"] in SEQUENCES]
    heads = ["training step, loss on the final state", "peak, MB", "target", "seconds", "gradients"]
    rows = [heads]
    for one in sequences:
        target = SEQUENCES[one["case"]].target
        wanted = "" if target is None else f"{target:g}"
        cells = [f"{one['peak_mb']:.1f}", wanted, f"{one['seconds']:.2f}"]
        rows.append([one["case"], *cells, finite[one["is_finite"]]])
    graphs = [one for one in results if one["case"].startswith("Pubmed: ")]
    layers, width, nodes, edges = GRAPHS["Pubmed"]
    size = f"{layers} layers of width {width}, {nodes:,} nodes, {edges:,} edges"
    deep = [[f"one training step, {size}", "peak, MB", "gradients"]]
    for one in graphs:
        title = one["case"].removeprefix("Pubmed: ")
        deep.append([title, f"{one['peak_mb']:,.0f}", finite[one["is_finite"]]])
    again = "with `checkpoint=True`"
    large = [["model", "peak memory", again, "CPU seconds", again]]
    for model in ("GraphCON", "GradientGating"):
        name = f"arXiv: {model}, Adjacency"
        if name in by_case:
            both = [by_case[name], by_case[f"{name}, checkpoint"]]
            peaks = [f"{one['peak_mb']:,.0f} MB" for one in both]
            large.append([model, *peaks, *(f"{one['cpu_seconds']:.0f}" for one in both)])
    return {
        "memory": f"{markdown_table(rows)}\n\n{caption(sequences)}",
        "graph-memory": f"{markdown_table(deep)}\n\n{caption(graphs)}",
        "large-graph-memory": markdown_table(large),
    }
