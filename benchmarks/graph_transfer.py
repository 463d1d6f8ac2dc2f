"""Carrying a value over 50 hops of a graph: waves beside networks that pass messages.

    python benchmarks/bench.py graph_transfer

The task that is usual (Gravina et al., A-DGN): the source's feature is 1, the target's 0, all
others are random; what is asked for is the same with source and target swapped. No message is
needed for it: a formula of a node's own value has an error as small as reported ones.

The task asked here: source and target hold random values and are flagged, and each must give the
other's. Nothing of a node's own says the answer: without messages over all hops the error of a
value is that of a uniform number, 1/12 = 0.083. All models have the same encoder and decoder, as
many layers as there are hops (the mix of wave layers twice as many), 64 training graphs drawn anew
in each step, and Adam at the best of two rates by a validation draw of its own; measured is the
mean squared error on a test draw.
"""

import itertools
import math
import statistics
import time
from collections.abc import Callable

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional
from torch_geometric.nn import AntiSymmetricConv

from anharmonic import Adjacency, GradientGating, GraphCON
from anharmonic.nn import convolve, make_conv
from anharmonic.nn.graph.couplings import RandomWalk
from harness.results import Cases, Options, Result, caption, grouped, markdown_table
from harness.speed import descent

PACKAGES = ("torch_geometric",)
GRAPHS = {"line": "line", "ring": "ring", "crossed": "ring with rungs"}
HOPS, STEPS, SEEDS, RATES = 50, 400, range(2), (3e-3, 1e-2)
BATCH, WIDTH, STEP = 64, 16, 0.5


def graph(kind: str, hops: int) -> tuple[Tensor, int, int, int]:
    """Edges [2, E], nodes, source and target, which are ``hops`` apart."""
    if kind == "line":
        pairs, nodes, target = [(i, i + 1) for i in range(hops)], hops + 1, hops
    else:
        nodes, target = 2 * hops, hops
        pairs = [(i, (i + 1) % nodes) for i in range(nodes)]
        if kind == "crossed":  # the two arms are tied, node by node, without a shorter way
            pairs += [(i, nodes - i) for i in range(1, hops)]
    edges = torch.tensor(pairs).t()
    return torch.cat([edges, edges.flip(0)], dim=1), nodes, 0, target


def task(nodes: int, source: int, target: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Features [BATCH * nodes, 3]: value and two flags; what source and target must give."""
    x = torch.zeros(BATCH, nodes, 3)
    values = torch.rand(BATCH, 2, generator=generator)
    x[:, source, 0], x[:, target, 0] = values[:, 0], values[:, 1]
    x[:, source, 1], x[:, target, 2] = 1, 1
    return x.flatten(0, 1), values.flip(1)


class Model(nn.Module):
    """An encoder, a block of layers, a decoder that also sees the features."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, WIDTH))
        self.block = block
        self.decoder = nn.Sequential(nn.Linear(WIDTH + 3, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        return self.decoder(torch.cat([self.block(self.encoder(x), adjacency), x], dim=1))[:, 0]


class Plain(nn.Module):
    """Graph convolutions with ReLU, each with a skip."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(make_conv("GCN", WIDTH) for _ in range(layers))

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        for conv in self.convs:
            x = x + torch.relu(convolve(conv, x, adjacency))
        return x


class Antisymmetric(AntiSymmetricConv):
    """A-DGN: one antisymmetric convolution, as often as there are layers, without damping."""

    def __init__(self, layers: int) -> None:
        super().__init__(WIDTH, num_iters=layers, epsilon=STEP, gamma=0.0)

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        return super().forward(x, adjacency.edge_index)


def wave(layers: int) -> GraphCON:
    """Undamped GraphCON from rest, whose layer n is the Chebyshev polynomial T_n of the walk."""
    return GraphCON(
        RandomWalk(2.0), layers, 1, 2, 0, activation="identity", initial_velocity="rest"
    )


class Mix(nn.Module):
    """A learned sum of the layers of a wave, with weights of its own for each channel."""

    def __init__(self, layers: int, width: int = WIDTH) -> None:
        super().__init__()
        self.wave = wave(layers)
        self.weight = nn.Parameter(torch.randn(layers + 1, 1, width) / layers**0.5)

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        return (self.weight * self.wave(x, adjacency, return_states=True)[1].x).sum(0)


class Swan(nn.Module):
    """SWAN: antisymmetric in space and weights, the same at every layer, without damping.

    The change of X is tanh(X (W - Wᵀ) + (S + Sᵀ) X (V - Vᵀ) + (R - Rᵀ) X (Z + Zᵀ) + b), with S the
    normalised adjacency of GCN and R = D⁻¹ A (Gravina et al., 2025).
    """

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = layers
        self.own, self.around, self.skew = (
            nn.Parameter(torch.empty(WIDTH, WIDTH).uniform_(-1, 1) / WIDTH**0.5) for _ in range(3)
        )
        self.bias = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        own, around = self.own - self.own.t(), self.around - self.around.t()
        skew, degree = self.skew + self.skew.t(), adjacency.in_degree.clamp(min=1)[:, None]
        for _ in range(self.layers):
            both = 2 * adjacency.normalised.matmul(x)
            odd = adjacency.mean(x) - adjacency.transposed.matmul(x / degree)
            x = x + STEP * torch.tanh(x @ own + both @ around + odd @ skew + self.bias)
        return x


FORMULA = "usual task: a formula of a node's own value"
BLOCKS: dict[str, Callable[[int], nn.Module]] = {
    "wave": wave,
    "mix of wave layers": lambda layers: Mix(2 * layers),
    "A-DGN": Antisymmetric,
    "SWAN": Swan,
    "GraphCON": lambda layers: GraphCON(make_conv("GCN", WIDTH), layers),
    "G²": lambda layers: GradientGating(make_conv("GCN", WIDTH), layers),
    "GCN with skips": Plain,
    "no messages": lambda layers: Plain(0),
}


def trained(name: str, kind: str, seed: int, rate: float, hops: int, steps: int) -> list[float]:
    """Errors on a validation and on a test draw."""
    torch.manual_seed(seed)
    edges, nodes, source, target = graph(kind, hops)
    model, generator = Model(BLOCKS[name](hops)), Generator().manual_seed(seed)
    starts = nodes * torch.arange(BATCH)[:, None]  # the copies of the graph lie side by side
    adjacency = Adjacency((edges[:, None] + starts).flatten(1), nodes * BATCH)
    ends = (starts + torch.tensor([source, target])).flatten()
    descend = descent(model, rate, steps)

    def loss(generator: Generator) -> Tensor:
        x, y = task(nodes, source, target, generator)
        return functional.mse_loss(model(x, adjacency)[ends], y.flatten())

    for _ in range(steps):
        descend(loss(generator))
    model.eval()
    with torch.no_grad():
        return [
            statistics.fmean(loss(Generator().manual_seed(s + n)).item() for n in range(8))
            for s in (10**6, 2 * 10**6)
        ]


def measure(name: str, kind: str, seed: int, hops: int, steps: int) -> Result:
    """The error on the test draw at the rate with the smaller error on the validation draw."""
    start = time.process_time()
    tried = [trained(name, kind, seed, rate, hops, steps) for rate in RATES]
    found = min(tried, key=lambda errors: (math.isnan(errors[0]), errors[0]))
    seconds = round(time.process_time() - start, 1)
    return {"graph": kind, "model": name, "seed": seed, "error": found[1], "seconds": seconds}


def by_formula(kind: str, hops: int) -> Result:
    """The error on the usual task, source and target swapped, of swapping what is 1 and 0."""
    _, nodes, source, target = graph(kind, hops)
    x = torch.rand(20_000, nodes, generator=Generator().manual_seed(0), dtype=torch.float64)
    x[:, source], x[:, target] = 1, 0
    y = x.clone()
    y[:, source], y[:, target] = 0, 1
    one, zero = (1 - (1 - x) / 1e-5).clamp(min=0), (1 - x / 1e-5).clamp(min=0)
    error = float((x + zero - one - y).square().mean())
    return {"graph": kind, "model": FORMULA, "seed": 0, "error": error}


def cases(options: Options) -> Cases:
    hops, steps = (3, 2) if options.quick else (HOPS, STEPS)
    found: Cases = {f"{kind}, {FORMULA}": (by_formula, kind, hops) for kind in GRAPHS}
    for name, kind, seed in itertools.product(BLOCKS, GRAPHS, SEEDS):
        case = f"{kind}, {name}, seed {seed}"
        found[case] = (measure, name, kind, seed, hops, steps)
    return found


def tables(results: list[Result]) -> dict[str, str]:
    rows, found = [["network", *GRAPHS.values()]], grouped(results, "model", "graph")
    for name in (FORMULA, *BLOCKS):
        errors = [[one["error"] for one in found.get((name, kind), [])] for kind in GRAPHS]
        if any(errors):
            rows.append([name, *(", ".join(f"{e:.1e}" for e in cell) or "-" for cell in errors)])
    about = (
        f"Mean squared errors after {HOPS} hops, one for each seed. Lower is better. "
        f"Measured on {caption(results)}"
    )
    return {"graph-transfer": f"{markdown_table(rows)}\n\n{about}"}
