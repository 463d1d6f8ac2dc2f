"""Carrying a value over many hops of a graph: waves beside networks that pass messages.

    python benchmarks/graph_transfer.py [--hops 50] [--steps 400] [--seeds 2] [--graphs line,ring]

The task that is usual (Gravina et al., A-DGN): the source's feature is 1, the target's 0, all
others are random; what is asked for is the same with source and target swapped. No message is
needed for it: a formula of a node's own value has an error as small as reported ones, and is
printed first.

The task asked here: source and target hold random values and are flagged, and each must give the
other's. Nothing of a node's own says the answer: without messages over all hops the error of a
value is that of a uniform number, 1/12 = 0.083. All models have the same encoder and decoder, as
many layers as there are hops (the mix of wave layers twice as many), 64 training graphs drawn anew
in each step, and Adam at the best of two rates by a validation draw of its own; printed is the mean
squared error on a test draw, of one seed after the other.
"""

import argparse
import statistics

import torch
from torch import nn
from torch_geometric.nn import AntiSymmetricConv

from anharmonic import Adjacency, GradientGating, GraphCON
from anharmonic.nn import convolve, make_conv
from anharmonic.nn.graph.couplings import RandomWalk

WIDTH = 16


def graph(kind, hops):
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


def copies(edges, nodes, batch):
    """The adjacency of many copies side by side."""
    shift = nodes * torch.arange(batch)[:, None, None]
    return Adjacency((edges[None] + shift).transpose(0, 1).flatten(1), nodes * batch)


def usual_task(nodes, source, target, batch, generator):
    x = torch.rand(batch, nodes, generator=generator, dtype=torch.float64)
    x[:, source], x[:, target] = 1, 0
    y = x.clone()
    y[:, source], y[:, target] = 0, 1
    return x, y


def formula(x, width=1e-5):
    """Swap what is 1 and what is 0, of each node on its own."""
    one, zero = (1 - (1 - x) / width).clamp(min=0), (1 - x / width).clamp(min=0)
    return x + zero - one


def task(nodes, source, target, batch, generator):
    """Features [batch * nodes, 3]: value and two flags; what source and target must give."""
    x = torch.zeros(batch, nodes, 3)
    values = torch.rand(batch, 2, generator=generator)
    x[:, source, 0], x[:, target, 0] = values[:, 0], values[:, 1]
    x[:, source, 1], x[:, target, 2] = 1, 1
    return x.flatten(0, 1), values.flip(1)


class Model(nn.Module):
    """An encoder, a block of layers, a decoder that also sees the features."""

    def __init__(self, block):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, WIDTH))
        self.block = block
        self.decoder = nn.Sequential(nn.Linear(WIDTH + 3, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x, adjacency):
        """A prediction for every node."""
        return self.decoder(torch.cat([self.block(self.encoder(x), adjacency), x], dim=1))[:, 0]


class Plain(nn.Module):
    """Graph convolutions with ReLU, each with a skip."""

    def __init__(self, layers):
        super().__init__()
        self.convs = nn.ModuleList(make_conv("GCN", WIDTH) for _ in range(layers))

    def forward(self, x, adjacency):
        """All layers."""
        for conv in self.convs:
            x = x + torch.relu(convolve(conv, x, adjacency))
        return x


def wave(layers):
    """Undamped GraphCON from rest, whose layer n is the Chebyshev polynomial T_n of the walk."""
    return GraphCON(
        RandomWalk(2.0), layers, 1, 2, 0, activation="identity", initial_velocity="rest"
    )


class Mix(nn.Module):
    """A learned sum of the layers of a wave, with weights of its own for each channel."""

    def __init__(self, layers):
        super().__init__()
        self.wave = wave(layers)
        self.weight = nn.Parameter(torch.randn(layers + 1, 1, WIDTH) / layers**0.5)

    def forward(self, x, adjacency):
        """The sum over all layers."""
        return (self.weight * self.wave(x, adjacency, return_states=True)[1].x).sum(0)


class Antisymmetric(nn.Module):
    """A-DGN: one antisymmetric convolution, as often as there are layers, without damping."""

    def __init__(self, layers):
        super().__init__()
        self.conv = AntiSymmetricConv(WIDTH, num_iters=layers, epsilon=0.5, gamma=0.0)

    def forward(self, x, adjacency):
        """All layers."""
        return convolve(self.conv, x, adjacency)


BLOCKS = {
    "wave": wave,
    "mix of wave layers": lambda layers: Mix(2 * layers),
    "A-DGN": Antisymmetric,
    "GraphCON": lambda layers: GraphCON(make_conv("GCN", WIDTH), layers),
    "G²": lambda layers: GradientGating(make_conv("GCN", WIDTH), layers),
    "GCN with skips": Plain,
    "no messages": lambda layers: Own(),
}


class Own(nn.Module):
    """The features as they are: what can be known without messages."""

    def forward(self, x, adjacency):
        """The features."""
        return x


def trained(name, kind, hops, steps, seed, rate):
    """Errors on a validation and on a test draw."""
    torch.manual_seed(seed)
    edges, nodes, source, target = graph(kind, hops)
    model, generator = Model(BLOCKS[name](hops)), torch.Generator().manual_seed(seed)
    adjacency = copies(edges, nodes, 64)
    ends = (nodes * torch.arange(64)[:, None] + torch.tensor([source, target])).flatten()
    optimiser = torch.optim.Adam(model.parameters(), rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, steps)

    def loss(generator):
        x, y = task(nodes, source, target, 64, generator)
        return nn.functional.mse_loss(model(x, adjacency)[ends], y.flatten())

    for _ in range(steps):
        optimiser.zero_grad()
        loss(generator).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        found = [
            statistics.fmean(loss(torch.Generator().manual_seed(s + n)).item() for n in range(8))
            for s in (10**6, 2 * 10**6)
        ]
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hops", type=int, default=50)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--graphs", default="line,ring,crossed")
    parser.add_argument("--models", default=",".join(BLOCKS))
    parser.add_argument("--rates", type=float, nargs="+", default=[3e-3, 1e-2])
    given = parser.parse_args()
    kinds = given.graphs.split(",")
    print("| usual task | " + " | ".join(kinds) + " |\n| --- |" + " ---: |" * len(kinds))
    errors = []
    for kind in kinds:
        _, nodes, source, target = graph(kind, given.hops)
        x, y = usual_task(nodes, source, target, 20_000, torch.Generator().manual_seed(0))
        errors.append(f"{float((formula(x) - y).square().mean()):.1e}")
    print("| a formula of a node's own value | " + " | ".join(errors) + " |\n", flush=True)
    print("| task asked here | " + " | ".join(kinds) + " |\n| --- |" + " ---: |" * len(kinds))
    for name in given.models.split(","):
        cells = []
        for kind in kinds:
            found = []
            for seed in range(given.seeds):
                of_rate = (
                    trained(name, kind, given.hops, given.steps, seed, r) for r in given.rates
                )
                found.append(min(of_rate)[1])
            cells.append(" ".join(f"{error:.1e}" for error in found))
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
