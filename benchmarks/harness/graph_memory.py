"""Peak memory of one training step of a deep graph network, each in a process of its own."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch

from anharmonic import diagnostics
from anharmonic.nn import GradientGating, GraphCON, make_conv
from anharmonic.ops import Adjacency
from harness import isolated

NODES, EDGES = 19_717, 88_648
"""Those of Pubmed; the edges are drawn at random."""
TARGET = 1000.0
"""Megabytes for 128 layers of width 64 with a checkpoint."""


def measure(
    layers: int = 128,
    width: int = 64,
    nodes: int = NODES,
    edges: int = EDGES,
    *,
    only: str = "",
    threads: int = 1,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measures both models with and without checkpoint, on edge_index and on an Adjacency.

    Args:
        layers: Layers, which share one GCN convolution.
        width: Features per node.
        nodes: Nodes.
        edges: Directed edges.
        only: Part of the titles of the cases wanted, such as "GraphCON, Adjacency".
        threads: Threads of each process.
        say: Takes a line whenever a case is begun.

    Returns:
        JSON values: ``machine``, ``versions``, the sizes and ``measurements``, each with
        ``peak_mb`` (above what the process held before the step), ``cpu_seconds`` and
        whether all gradients are ``finite``.
    """
    found = []
    for model in ("GraphCON", "GradientGating"):
        for graph in ("edge_index", "Adjacency"):
            for checkpoint in (False, True):
                title = f"{model}, {graph}{', checkpoint' if checkpoint else ''}"
                if only not in title:
                    continue
                say(f"{title} ...")
                one = isolated.run(
                    title,
                    f"{__name__}:one_step",
                    model=model,
                    sparse=graph == "Adjacency",
                    checkpoint=checkpoint,
                    sizes=[layers, width, nodes, edges],
                    threads=threads,
                )
                found.append({"title": title, "checkpoint": checkpoint, **one})
    return {
        "machine": diagnostics.cpu(),
        "versions": diagnostics.versions(["torch", "torch_geometric"]),
        "sizes": {"layers": layers, "width": width, "nodes": nodes, "edges": edges},
        "measurements": found,
    }


def one_step(
    model: str, sparse: bool, checkpoint: bool, sizes: list[int], threads: int
) -> dict[str, Any]:
    """Takes one training step in this process and says its peak memory.

    A step of two layers comes first, so that libraries are loaded.

    Args:
        model: "GraphCON" or "GradientGating".
        sparse: Whether the graph is an Adjacency.
        checkpoint: The layer's argument.
        sizes: Layers, width, nodes and edges.
        threads: Threads of this process from now on.
    """
    layers, width, nodes, edges = sizes
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    kind = {"GraphCON": GraphCON, "GradientGating": GradientGating}[model]
    conv = make_conv("GCN", width)
    edge_index = torch.randint(0, nodes, (2, edges))
    graph: Any = Adjacency(edge_index, nodes) if sparse else edge_index
    x = torch.rand(nodes, width, requires_grad=True)
    for depth in (2, layers):
        layer = kind(conv, depth, checkpoint=checkpoint)
        diagnostics.reset_peak_memory("cpu")
        before, began = diagnostics.peak_memory_mb("cpu"), time.process_time()
        layer(x, graph).square().mean().backward()
    gradients = [p.grad for p in (x, *conv.parameters()) if p.grad is not None]
    return {
        "peak_mb": diagnostics.peak_memory_mb("cpu") - before,
        "cpu_seconds": time.process_time() - began,
        "finite": all(math.isfinite(gradient.abs().sum().item()) for gradient in gradients),
    }


def table(result: dict[str, Any]) -> str:
    """The measurements in Markdown.

    Args:
        result: What ``measure`` gave.
    """
    sizes = result["sizes"]
    size = (
        f"{sizes['layers']} layers of width {sizes['width']}, {sizes['nodes']:,} nodes, "
        f"{sizes['edges']:,} edges"
    )
    lines = [f"| one training step, {size} | peak, MB | gradients |", "| --- | ---: | --- |"]
    for one in result["measurements"]:
        gradients = "finite" if one["finite"] else "NOT FINITE"
        lines.append(f"| {one['title']} | {one['peak_mb']:,.0f} | {gradients} |")
    computer, versions = result["machine"], result["versions"]
    kind = computer["instruction_set"] or "no compiled kernels"
    said = f"{computer['processor']}, {kind}; torch {versions['torch']}, "
    return "\n".join([*lines, "", f"{said}torch_geometric {versions['torch_geometric']}."])
