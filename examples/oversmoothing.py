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


def draw(path, found):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    layers = len(next(iter(found.values()))) - 1
    figure, axes = plt.subplots(figsize=(5.4, 3.3), dpi=180)
    styles = zip(("#D55E00", "#0072B2", "#009E73"), ("-", "-", (0, (5, 2))), strict=True)
    heights = {"plain GCN": 12, "GradientGating(GCN)": -10, "GraphCON(GCN), undamped": 4}
    for (name, distance), (colour, dash) in zip(found.items(), styles, strict=True):
        alike = (distance < FLOOR).nonzero()
        end = len(distance) if len(alike) == 0 else int(alike[0])
        axes.plot(range(1, end), distance[1:end], color=colour, ls=dash, lw=1.8)
        axes.annotate(
            name.replace(", ", ",\n"), (end - 1, float(distance[end - 1])),
            xytext=(6, heights[name]), textcoords="offset points", color=colour,
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="layer", ylabel="cosine distance to neighbours")
    axes.set(xlim=(1, layers), ylim=(FLOOR, 3))
    axes.grid(color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)


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
        draw(arguments.picture, found)


if __name__ == "__main__":
    main()
