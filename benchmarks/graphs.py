"""Graph convolutions on an Adjacency beside every form in which PyTorch Geometric takes a graph."""

import functools
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric.nn import GCNConv, SAGEConv
from torch_geometric.utils import scatter

from anharmonic import Adjacency
from anharmonic.nn import convolve
from anharmonic.ops import gradient_gate
from harness.results import Cases, Options, Result, caption, duration, markdown_table
from harness.speed import medians

PACKAGES = ("torch-geometric",)
EDGES, EDGE_INDEX, CSR, COMPILED = "edge_index", "EdgeIndex", "sparse CSR", "edge_index, compiled"
OURS = "anharmonic"
PATHS = (EDGES, EDGE_INDEX, CSR, COMPILED, OURS)
SIZES = ((19_717, 88_648, 64), (20_000, 200_000, 128))
"""Nodes, edges and features: those of Pubmed with a common width, and a denser, wider one."""
LAYERS = (
    "GCN, normalised before", "SAGE, mean", "sum over neighbours alone", "gate, p = 2",
    "gate, p = 2.5",
)  # fmt: skip
REPEATS = 9
Function = Callable[[Tensor], Tensor]


def cases(options: Options) -> Cases:
    repeats = 1 if options.quick else REPEATS
    return {
        f"{layer}; {size[0]:,} nodes; {mode}": (measure, layer, size, mode, repeats)
        for size in (((200, 2_000, 16),) if options.quick else SIZES)
        for layer in LAYERS
        for mode in ("training step", "forward")
    }


def measure(layer: str, size: tuple[int, int, int], mode: str, repeats: int) -> Result:
    """Return the median processor time of each path; two first turns warm up and compile.

    On one thread, other work on the machine disturbs the processor's time less than the clock's.
    """
    torch.set_num_threads(1)
    torch.compiler.reset()
    torch.manual_seed(0)
    nodes, edges, width = size
    # Sorted by target, as PyTorch Geometric advises: its own best case.
    edge_index = torch.randint(0, nodes, (2, edges))
    edge_index = edge_index[:, edge_index[1].argsort(stable=True)]
    x, grad = torch.randn(nodes, width, requires_grad=True), torch.randn(nodes, width)

    def turn(function: Function) -> None:
        if mode == "forward":
            with torch.no_grad():
                function(x)
        else:
            function(x).backward(grad)
            x.grad = None

    ways = functions(layer, edge_index, nodes, width)
    turns = {name: functools.partial(turn, function) for name, function in ways.items()}
    seconds = medians(turns, repeats, warm_up=2, clock=time.process_time)
    return {"nodes": nodes, "edges": edges, "features": width, "seconds": seconds}


def functions(layer: str, edge_index: Tensor, nodes: int, width: int) -> dict[str, Function]:
    """Return the functions of the features that are timed, by path."""
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

    def gathered(x: Tensor) -> Tensor:
        return scatter(x.index_select(0, source), target, dim_size=nodes)

    def edge_by_edge(x: Tensor) -> Tensor:
        terms = (x.index_select(0, source) - x.index_select(0, target)).abs().pow(p)
        return torch.tanh(scatter(terms, target, dim_size=nodes))

    if layer.startswith("gate"):
        p = float(layer.rpartition(" ")[2])
        return {
            EDGES: edge_by_edge,
            COMPILED: torch.compile(edge_by_edge),
            OURS: lambda x: gradient_gate(x, graph, p=p),
        }
    if layer == LAYERS[0]:
        return paths(lambda **c: GCNConv(width, width, **c), cached=True)
    if layer == LAYERS[1]:
        return paths(lambda: SAGEConv(width, width))
    return {
        EDGES: gathered,
        EDGE_INDEX: lambda x: sorted_once.matmul(x, transpose=True),
        CSR: lambda x: torch.sparse.mm(csr, x),
        COMPILED: torch.compile(gathered),
        OURS: graph.matmul,
    }


def tables(results: list[Result]) -> dict[str, str]:
    rows = [["case, processor time", *PATHS, "times as fast as the best other"]]
    for one in results:
        seconds = one["seconds"]
        best = min(value for name, value in seconds.items() if name != OURS)
        cells = [duration(seconds[name]) if name in seconds else "" for name in PATHS]
        rows.append([one["case"], *cells, f"{best / seconds[OURS]:.1f}"])
    sizes = {(one["nodes"], one["edges"], one["features"]) for one in results}
    said = (f"{n:,} nodes: {e:,} edges, {f} features" for n, e, f in sorted(sizes))
    about = caption(results, *said, f"float32, one thread, medians of {REPEATS} runs")
    return {"graphs": f"{markdown_table(rows)}\n\n{about}"}
