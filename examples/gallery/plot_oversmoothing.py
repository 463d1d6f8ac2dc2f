"""
Fifty layers of a graph network
===============================

Plain graph convolutions average neighbours until all nodes are alike; the Dirichlet energy, the
mean
squared difference of neighbours, falls to nothing. One line around the same convolutions keeps
it.
"""

# %%
# A grid of 100 nodes with random features, fifty convolutions with random weights.
import matplotlib.pyplot as plt
import torch
from torch_geometric.nn import GCNConv

import anharmonic as ah
from anharmonic.diagnostics import dirichlet_energy, grid_graph, plain_states

torch.manual_seed(0)
layers, width = 50, 64
graph, x = grid_graph(10, 10), torch.rand(100, width)
convs = [GCNConv(width, width) for _ in range(layers)]

with torch.no_grad():
    states = {
        "plain GCN": plain_states(convs, x, graph),
        "GradientGating(GCN)": ah.GradientGating(convs, num_layers=layers)(
            x, graph, return_states=True
        )[1].x,
        "GraphCON(GCN)": ah.GraphCON(convs, num_layers=layers, dt=0.1, damping=0.0)(
            x, graph, return_states=True
        )[1].x,
    }

# %%
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
looks = (("#D55E00", "--"), ("#0072B2", "-"), ("#009E73", "-."))
for (name, state), (colour, dash) in zip(states.items(), looks, strict=True):
    energy = dirichlet_energy(state, graph)
    axes.plot(range(len(energy)), energy, dash, color=colour)
    axes.annotate(
        name, (layers, energy[-1]), (-4, 8), textcoords="offset points", color=colour, ha="right"
    )
axes.set(xlabel="layer", ylabel="Dirichlet energy", yscale="log")
plt.show()
