"""What a thousand layers do to the differences between neighbours: plain GCN, gated, oscillating.

A 10 x 10 grid, random features and random weights. The Dirichlet energy is the mean squared
difference of a node's features to its neighbours'. A plain network loses it in a few layers: every
node ends with the same features. Wrapped in one line, it keeps it.

    python examples/oversmoothing.py --layers 1000 --picture oversmoothing.png   # a minute
"""

import argparse
from pathlib import Path

import torch
from torch_geometric.nn import GCNConv

import anharmonic as ah
from anharmonic.diagnostics import dirichlet_energy, grid_graph, plain_states

WIDTH = 64
FLOOR = 1e-20  # of energies around 1 in float32: what is smaller is rounding


def energies(layers):
    """Dirichlet energy after every layer, by name of the network."""
    torch.manual_seed(0)
    graph, x = grid_graph(10, 10), torch.rand(100, WIDTH)
    convs = [GCNConv(WIDTH, WIDTH) for _ in range(layers)]
    gated = ah.GradientGating(convs, num_layers=layers)
    oscillating = ah.GraphCON(convs, num_layers=layers, dt=0.1, damping=0.0)
    with torch.no_grad():
        found = {
            "plain GCN": plain_states(convs, x, graph),
            "GradientGating(GCN)": gated(x, graph, return_states=True)[1].x,
            "GraphCON(GCN), undamped": oscillating(x, graph, return_states=True)[1].x,
        }
        return {name: dirichlet_energy(states, graph) for name, states in found.items()}


def draw(path, found):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.4, 3.3), dpi=180)
    styles = zip(("#D55E00", "#0072B2", "#009E73"), ("-", "-", (0, (5, 2))), strict=True)
    for (name, energy), (colour, dash) in zip(found.items(), styles, strict=True):
        alike = (energy < FLOOR).nonzero()
        end = len(energy) if len(alike) == 0 else int(alike[0]) + 1
        axes.plot(range(1, end), energy[1:end], color=colour, ls=dash, lw=1.8)
        name = name.replace(", ", ",\n")
        said = name if end == len(energy) else f"{name}:\nall nodes alike\nafter {end - 1} layers"
        height = max(float(energy[end - 1]), 30 * FLOOR)
        offset = (6, -12 if "," in name else 4)
        axes.annotate(
            said, (end - 1, height), xytext=offset, textcoords="offset points", color=colour
        )
    axes.set(xscale="log", yscale="log", xlabel="layer", ylabel="Dirichlet energy")
    axes.set(xlim=(1, len(energy) - 1), ylim=(FLOOR, 1e5))
    axes.grid(color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=50)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    found = energies(arguments.layers)
    for name, energy in found.items():
        print(
            f"{name:32s} {energy[1]:9.2e} after 1 layer, {energy[-1]:9.2e} after {len(energy) - 1}"
        )
    if arguments.picture is not None:
        draw(arguments.picture, found)


if __name__ == "__main__":
    main()
