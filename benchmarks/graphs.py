"""Sums over neighbours beside PyTorch Geometric with ``edge_index``: one training step.

python benchmarks/graphs.py --json benchmarks/graphs.json --markdown benchmarks/graphs.md \
    --readme benchmarks/README.md
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
from torch import Tensor
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, TransformerConv
from torch_geometric.utils import scatter

from anharmonic import Adjacency, diagnostics
from anharmonic.nn import convolve
from anharmonic.ops import gradient_gate
from harness.speed import no_garbage_collection, plural
from harness.speed_report import duration, fill

EDGES, OURS, DENSE = "edge_index", "anharmonic", "linear maps alone"
TARGET = 10.0
Function = Callable[[Tensor], Tensor]


def cases(edge_index: Tensor, nodes: int, width: int) -> dict[str, dict[str, Function]]:
    """The functions of the features that are timed, by case and entrant."""
    graph = Adjacency(edge_index, nodes)
    source, target = edge_index
    gcn, cached = GCNConv(width, width), GCNConv(width, width, cached=True)
    sage = SAGEConv(width, width)
    ours: dict[str, Function] = {
        OURS: lambda x: convolve(gcn, x, graph),
        DENSE: lambda x: gcn.lin(x).add_(gcn.bias),
    }
    found: dict[str, dict[str, Function]] = {
        "GCN": {EDGES: lambda x: gcn(x, edge_index), **ours},
        "GCN, normalised before": {EDGES: lambda x: cached(x, edge_index), **ours},
        "SAGE, mean": {
            EDGES: lambda x: sage(x, edge_index),
            OURS: lambda x: convolve(sage, x, graph),
            DENSE: lambda x: sage.lin_l(x).add_(sage.lin_r(x)),
        },
        "sum over neighbours alone": {
            EDGES: lambda x: scatter(x.index_select(0, source), target, dim_size=nodes),
            OURS: graph.matmul,
        },
    }
    for title, conv in (
        ("GAT, 4 heads", GATConv(width, width // 4, heads=4)),
        ("Transformer, 4 heads", TransformerConv(width, width // 4, heads=4)),
    ):
        found[title] = {
            EDGES: lambda x, conv=conv: conv(x, edge_index),
            OURS: lambda x, conv=conv: convolve(conv, x, graph),
        }
    for p in (2.0, 2.5):
        found[f"gate, p = {p:g}"] = {
            EDGES: lambda x, p=p: gradient_gate(x, graph, p=p, backend="reference"),
            OURS: lambda x, p=p: gradient_gate(x, graph, p=p),
        }
    return found


def measure(nodes: int, edges: int, width: int, threads: list[int], repeats: int) -> dict[str, Any]:
    torch.manual_seed(0)
    edge_index = torch.randint(0, nodes, (2, edges))
    x = torch.randn(nodes, width, requires_grad=True)
    grad = torch.randn(nodes, width)
    measurements = []
    for title, functions in cases(edge_index, nodes, width).items():
        for count in threads:
            torch.set_num_threads(count)
            taken = turns(functions, x, grad, repeats)
            measurements.append(
                {
                    "case": title,
                    "threads": count,
                    "seconds": taken,
                    "ratio": taken[EDGES] / taken[OURS],
                    "target": TARGET,
                }
            )
            print(f"{title}, {plural(count, 'thread')}: {taken}", file=sys.stderr, flush=True)
    return {
        "machine": diagnostics.cpu(),
        "versions": diagnostics.versions(["torch", "torch-geometric"]),
        "settings": {
            "nodes": nodes,
            "edges": edges,
            "features": width,
            "dtype": "float32",
            "repeats": repeats,
        },
        "measurements": measurements,
    }


def turns(
    functions: dict[str, Function], x: Tensor, grad: Tensor, repeats: int
) -> dict[str, float]:
    """The median time of a training step of each, taken in turns; the first turn warms up."""

    def seconds(function: Function) -> float:
        start = time.perf_counter()
        function(x).backward(grad)
        x.grad = None
        return time.perf_counter() - start

    taken: dict[str, list[float]] = {name: [] for name in functions}
    with no_garbage_collection():
        for number in range(repeats + 1):
            for name, function in functions.items():
                one = seconds(function)
                if number:
                    taken[name].append(one)
    return {name: statistics.median(values) for name, values in taken.items()}


def table(result: dict[str, Any]) -> str:
    lines = [
        f"| case | threads | {EDGES} | {OURS} | ratio | {DENSE} |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for one in result["measurements"]:
        cells = [one["case"], str(one["threads"])]
        cells += [duration(one["seconds"][name]) for name in (EDGES, OURS)]
        cells.append(f"{one['ratio']:.1f}")
        cells.append(duration(one["seconds"][DENSE]) if DENSE in one["seconds"] else "")
        lines.append("| " + " | ".join(cells) + " |")
    computer, versions, settings = result["machine"], result["versions"], result["settings"]
    lines += [
        "",
        f"{computer['processor']}, {plural(computer['cores'], 'core')}, "
        f"{computer['instruction_set'] or 'no compiled kernels'}; "
        f"anharmonic {versions['anharmonic']}, torch {versions['torch']}, "
        f"torch-geometric {versions['torch-geometric']}, Python {versions['python']}; "
        f"{settings['nodes']:,} nodes, {settings['edges']:,} edges, "
        f"{settings['features']} features, {settings['dtype']}, "
        f"medians of {settings['repeats']} turns.",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=7, help="turns that count")
    parser.add_argument("--from-json", type=Path, help="numbers measured before")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    parser.add_argument("--markdown", type=Path, help="file for the table")
    parser.add_argument("--readme", type=Path, help="page with a block <!-- graphs -->")
    parser.add_argument("--quick", action="store_true", help="a small graph, to try it")
    arguments = parser.parse_args()
    sizes = (200, 2_000, 16) if arguments.quick else (20_000, 200_000, 128)
    if arguments.from_json is not None:
        result = json.loads(arguments.from_json.read_text("utf-8"))
    else:
        result = measure(*sizes, arguments.threads, arguments.repeats)
    text = table(result)
    print(text)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    if arguments.markdown is not None:
        arguments.markdown.write_text(text + "\n", "utf-8")
    if arguments.readme is not None:
        fill(arguments.readme, "graphs", text)
    missed = [one for one in result["measurements"] if one["ratio"] < one["target"]]
    for one in missed:
        name = f"{one['case']}, {plural(one['threads'], 'thread')}"
        print(f"below target: {name}: {one['ratio']:.1f} of {one['target']:g}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
