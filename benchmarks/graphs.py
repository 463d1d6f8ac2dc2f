"""Graph convolutions on an Adjacency beside every form in which PyTorch Geometric takes a graph.

python benchmarks/graphs.py --json benchmarks/graphs.json --readme benchmarks/README.md
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric.nn import GCNConv, SAGEConv
from torch_geometric.utils import scatter

from anharmonic import Adjacency, diagnostics
from anharmonic.nn import convolve
from anharmonic.ops import gradient_gate
from harness.speed import no_garbage_collection
from harness.speed_report import duration, fill

EDGES, EDGE_INDEX, CSR, COMPILED = "edge_index", "EdgeIndex", "sparse CSR", "edge_index, compiled"
OURS = "anharmonic"
PATHS = (EDGES, EDGE_INDEX, CSR, COMPILED, OURS)
SIZES = ((19_717, 88_648, 64), (20_000, 200_000, 128))
"""Nodes, edges and features: those of Pubmed with a common width, and a denser, wider one."""
Function = Callable[[Tensor], Tensor]


def cases(edge_index: Tensor, nodes: int, width: int) -> dict[str, dict[str, Function]]:
    """The functions of the features that are timed, by case and path."""
    graph = Adjacency(edge_index, nodes)
    source, target = edge_index
    sorted_once = EdgeIndex(edge_index, sparse_size=(nodes, nodes), sort_order="col").fill_cache_()
    one = torch.ones(edge_index.shape[1])
    csr = torch.sparse_coo_tensor(edge_index.flip(0), one, (nodes, nodes)).to_sparse_csr()

    def paths(make: Callable[..., nn.Module], **cached: bool) -> dict[str, Function]:
        # A cache holds one form of the graph: each path has a convolution of its own.
        kept = {name: make(**cached) for name in (EDGES, EDGE_INDEX, CSR, COMPILED)}
        compiled, ours = torch.compile(kept[COMPILED]), make()
        return {
            EDGES: lambda x: kept[EDGES](x, edge_index),
            EDGE_INDEX: lambda x: kept[EDGE_INDEX](x, sorted_once),
            CSR: lambda x: kept[CSR](x, csr),
            COMPILED: lambda x: compiled(x, edge_index),
            OURS: lambda x: convolve(ours, x, graph),
        }

    def gate(p: float) -> dict[str, Function]:
        def edge_by_edge(x: Tensor) -> Tensor:
            terms = (x.index_select(0, source) - x.index_select(0, target)).abs().pow(p)
            return torch.tanh(scatter(terms, target, dim_size=nodes))

        return {
            EDGES: edge_by_edge,
            COMPILED: torch.compile(edge_by_edge),
            OURS: lambda x: gradient_gate(x, graph, p=p),
        }

    def gathered(x: Tensor) -> Tensor:
        return scatter(x.index_select(0, source), target, dim_size=nodes)

    return {
        "GCN, normalised before": paths(lambda **c: GCNConv(width, width, **c), cached=True),
        "SAGE, mean": paths(lambda: SAGEConv(width, width)),
        "sum over neighbours alone": {
            EDGES: gathered,
            EDGE_INDEX: lambda x: sorted_once.matmul(x, transpose=True),
            CSR: lambda x: torch.sparse.mm(csr, x),
            COMPILED: torch.compile(gathered),
            OURS: graph.matmul,
        },
        "gate, p = 2": gate(2.0),
        "gate, p = 2.5": gate(2.5),
    }


def measure(sizes: tuple[tuple[int, int, int], ...], repeats: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    measurements = []
    for nodes, edges, width in sizes:
        torch.manual_seed(0)
        # Sorted by target, as PyTorch Geometric advises: its own best case.
        edge_index = torch.randint(0, nodes, (2, edges))
        edge_index = edge_index[:, edge_index[1].argsort(stable=True)]
        x = torch.randn(nodes, width, requires_grad=True)
        grad = torch.randn(nodes, width)
        for title, functions in cases(edge_index, nodes, width).items():
            torch.compiler.reset()
            for mode in ("training step", "forward"):
                taken = turns(functions, x, grad, mode, repeats)
                best = min(seconds for name, seconds in taken.items() if name != OURS)
                measurements.append(
                    {
                        "case": title,
                        "mode": mode,
                        "nodes": nodes,
                        "edges": edges,
                        "features": width,
                        "seconds": taken,
                        "ratio": best / taken[OURS],
                    }
                )
                print(f"{title}, {nodes} nodes, {mode}: {taken}", file=sys.stderr, flush=True)
    return {
        "machine": diagnostics.cpu(),
        "versions": diagnostics.versions(["torch", "torch-geometric"]),
        "settings": {"dtype": "float32", "threads": 1, "repeats": repeats},
        "measurements": measurements,
    }


def turns(
    functions: dict[str, Function], x: Tensor, grad: Tensor, mode: str, repeats: int
) -> dict[str, float]:
    """The median processor time of each, taken in turns; two first turns warm up and compile.

    On one thread, other work on the machine disturbs the processor's time less than the clock's.
    """

    def seconds(function: Function) -> float:
        start = time.process_time()
        if mode == "forward":
            with torch.no_grad():
                function(x)
        else:
            function(x).backward(grad)
            x.grad = None
        return time.process_time() - start

    taken: dict[str, list[float]] = {name: [] for name in functions}
    with no_garbage_collection():
        for number in range(repeats + 2):
            for name, function in functions.items():
                one = seconds(function)
                if number > 1:
                    taken[name].append(one)
    return {name: statistics.median(values) for name, values in taken.items()}


def table(result: dict[str, Any]) -> str:
    lines = [
        f"| case | {' | '.join(PATHS)} | best other / {OURS} |",
        f"| --- |{' ---: |' * (len(PATHS) + 1)}",
    ]
    for one in result["measurements"]:
        seconds = one["seconds"]
        cells = [f"{one['case']}; {one['nodes']:,} nodes; {one['mode']}"]
        cells += [duration(seconds[name]) if name in seconds else "" for name in PATHS]
        lines.append("| " + " | ".join([*cells, f"{one['ratio']:.1f}"]) + " |")
    computer, versions, settings = result["machine"], result["versions"], result["settings"]
    sizes = {(one["nodes"], one["edges"], one["features"]) for one in result["measurements"]}
    lines += [
        "",
        f"{computer['processor']}, one thread, "
        f"{computer['instruction_set'] or 'no compiled kernels'}; "
        f"anharmonic {versions['anharmonic']}, torch {versions['torch']}, "
        f"torch-geometric {versions['torch-geometric']}, Python {versions['python']}; "
        + "; ".join(f"{n:,} nodes: {e:,} edges, {f} features" for n, e, f in sorted(sizes))
        + f"; {settings['dtype']}, medians of {settings['repeats']} turns.",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9, help="turns that count")
    parser.add_argument("--from-json", type=Path, help="numbers measured before")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--readme", type=Path, help="page with a block <!-- graphs -->")
    parser.add_argument("--quick", action="store_true", help="a small graph, to try it")
    arguments = parser.parse_args()
    if arguments.from_json is not None:
        result = json.loads(arguments.from_json.read_text("utf-8"))
    else:
        result = measure(((200, 2_000, 16),) if arguments.quick else SIZES, arguments.repeats)
    text = table(result)
    print(text)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    if arguments.readme is not None:
        fill(arguments.readme, "graphs", text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
