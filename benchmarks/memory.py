"""Peak memory of one training step: long sequences, and graph networks of many layers."""

import functools
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from anharmonic import diagnostics, nn
from anharmonic.ops import Adjacency
from harness import speed
from harness.results import Cases, Options, Result, caption, markdown_table
from harness.speed import LSTM, Case

PACKAGES = ("torch_geometric",)
GRAPHS = {"Pubmed": (128, 64, 19_717, 88_648), "arXiv": (64, 64, 170_000, 1_200_000)}
"""Layers, width, nodes and edges; edges are drawn at random."""
# glibc keeps freed blocks of a few megabytes and hardly ever reuses them, so a checkpoint saves
# nothing. Blocks above this size go back to the system; the variable is read when a process starts.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "1000000"}


_LONG: dict[str, Any] = {"steps": 17_984, "batch": 8, "hidden": 32, "inputs": 6}
_MILLION: dict[str, Any] = {"steps": 1_000_000, "batch": 1, "hidden": 32}
TARGETS = {
    Case("UnICORNN", 3, **_LONG): 30,
    Case("LEM", 1, **_LONG): 30,
    Case("CoRNN", 1, **_LONG): 30,
    Case(LSTM, 1, **_LONG): None,
    Case("UnICORNN", 3, **_MILLION): 200,
    Case("LEM", 1, **_MILLION): 200,
    Case("CoRNN", 1, **_MILLION): 200,
    Case("UnICORNN", 3, **_MILLION, memory="reversible"): 40,
}
"""What is wanted at most, in MB (10**6 bytes)."""


def title(case: Case) -> str:
    stack = f"{case.model} {case.layers} layers" if case.layers > 1 else case.model
    policy = "" if case.model == LSTM else f" {case.memory},"
    return f"{stack},{policy} T {case.steps:,}, B {case.batch}, H {case.hidden}"


SEQUENCES = {title(case): case for case in TARGETS}


def cases(options: Options) -> Cases:
    found: Cases = {}
    apart = functools.partial(speed.isolated, graph_step, variables=MALLOC)
    for name, case in SEQUENCES.items():
        small = replace(case, steps=20) if options.quick else case
        found[name] = (speed.isolated, sequence_step, small)
    for size, numbers in GRAPHS.items():
        graphs = ("edge_index", "Adjacency") if size == "Pubmed" else ("Adjacency",)
        combinations = itertools.product(("GraphCON", "GradientGating"), graphs, (False, True))
        for model, graph, checkpoint in combinations:
            name = f"{size}: {model}, {graph}{', checkpoint' if checkpoint else ''}"
            sizes = (4, 2, 6, 9) if options.quick else numbers
            found[name] = (apart, model, graph, checkpoint, sizes)
    return found


def sequence_step(case: Case) -> Result:
    """Take one training step, with the loss on the final state, and return its peak memory.

    A step over eight time steps comes first, so that libraries are loaded and threads run.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    sizes: Any = (case.inputs, case.hidden, case.layers)
    is_lstm = case.model == LSTM
    # The papers' rule; with 0.03, gradients through a million steps pass 10^38.
    options = {} if is_lstm else {"memory": case.memory, "dt": case.steps**-0.5}
    layer: Any = (torch.nn.LSTM if is_lstm else nn.model_class(case.model))(*sizes, **options)
    x = torch.randn(case.steps, case.batch, case.inputs)

    def step(x: torch.Tensor) -> None:
        layer.zero_grad()
        last = layer(x)[1][0][-1] if is_lstm else layer(x, output="none")[1].y[-1]
        last.sum().backward()

    step(x[:8])
    return measured(lambda: step(x), list(layer.parameters()))


def graph_step(model: str, graph: str, checkpoint: bool, sizes: tuple[int, ...]) -> Result:
    """Take one training step of a graph network in this process; one of two layers comes first."""
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
    by_case = {one["case"]: one for one in results}
    sequences = [one for one in results if one["case"] in SEQUENCES]
    heads = ["training step, loss on the final state", "peak, MB", "target", "seconds", "gradients"]
    rows = [heads]
    for one in sequences:
        target = TARGETS[SEQUENCES[one["case"]]] or ""
        cells = [f"{one['peak_mb']:.1f}", f"{target}", f"{one['seconds']:.2f}", _gradients(one)]
        rows.append([one["case"], *cells])
    graphs = [one for one in results if one["case"].startswith("Pubmed: ")]
    layers, width, nodes, edges = GRAPHS["Pubmed"]
    size = f"{layers} layers of width {width}, {nodes:,} nodes, {edges:,} edges"
    deep = [[f"one training step, {size}", "peak, MB", "gradients"]]
    for one in graphs:
        name = one["case"].removeprefix("Pubmed: ")
        deep.append([name, f"{one['peak_mb']:,.0f}", _gradients(one)])
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


def _gradients(one: Result) -> str:
    return "finite" if one["is_finite"] else "NOT FINITE"
