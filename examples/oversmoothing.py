"""What a thousand layers do to the differences between neighbours: plain GCN, gated, oscillating.

A 10 x 10 grid, random features and random weights. The mean average distance is one minus the
cosine of a node's features and a neighbour's, which does not depend on their scale. In a plain
network it vanishes: the features of all nodes end on one line. Wrapped in one line, it stays.

    python examples/oversmoothing.py --layers 1000 --picture oversmoothing.png   # a minute
"""

import argparse
from pathlib import Path

import torch
from torch_geometric.nn import GCNConv

import anharmonic as ah
from anharmonic.diagnostics import grid_graph, mean_average_distance, plain_states
from anharmonic.pages import lines, panels, save

WIDTH = 64
FLOOR = 1e-14  # of distances around 1 in float64: what is smaller is rounding


def distances(layers):
    """The distance of neighbours after every layer, by name of the network."""
    torch.manual_seed(0)
    graph, x = grid_graph(10, 10), torch.rand(100, WIDTH).double()
    convs = [GCNConv(WIDTH, WIDTH).double() for _ in range(layers)]
    gated = ah.GradientGating(convs, num_layers=layers)
    oscillating = ah.GraphCON(convs, num_layers=layers, dt=0.1, damping=0.0)
    with torch.no_grad():
        found = {
            "plain GCN": plain_states(convs, x, graph),
            "GradientGating(GCN)": gated(x, graph, return_states=True)[1].x,
            "GraphCON(GCN), undamped": oscillating(x, graph, return_states=True)[1].x,
        }
        return {name: mean_average_distance(states, graph) for name, states in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=50)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    found = distances(arguments.layers)
    for name, distance in found.items():
        ends = f"{distance[1]:9.2e} after 1 layer, {distance[-1]:9.2e} after {len(distance) - 1}"
        print(f"{name:32s} {ends}")
    if arguments.picture is not None:
        figure, (axes,) = panels(1, height=3.4)
        curves = {name: (range(1, len(d)), d[1:].tolist()) for name, d in found.items()}
        words = {"x": "layer", "y": "cosine distance to neighbours"}
        lines(axes, curves, **words, log="xy", low=FLOOR)
        save(figure, arguments.picture)


if __name__ == "__main__":
    main()
