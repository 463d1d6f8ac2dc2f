"""Oversmoothing with random weights: Figures 7.2, 8.2 and 8.9 of the thesis (T)."""

import warnings
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from anharmonic import StabilityWarning
from anharmonic.diagnostics import dirichlet_energy, grid_graph, mean_average_distance, plain_states
from anharmonic.nn import GradientGating, GraphCON, make_conv
from anharmonic.ops import Adjacency
from anharmonic_papers.figures.base import Curves, Figure

_WIDTH = 64
_NOTE = (
    "10 x 10 grid with 4 neighbours, features uniform in [0, 1], one draw of PyTorch Geometric's "
    f"initial weights per layer (seed 0), float64. The thesis prints no width; ours is {_WIDTH}."
)
_DECAY = "exponential decay to zero"

Measure = Callable[[Tensor, Adjacency | Tensor], Tensor]


def _curves(layers: int, measure: Measure, wrapped: str) -> Curves:
    """Measure plain and wrapped GCN and GAT, layer by layer."""
    graph = grid_graph(10, 10)
    found: dict[str, list[float]] = {}
    with torch.random.fork_rng(devices=()), torch.no_grad():
        for conv in ("GCN", "GAT"):
            torch.manual_seed(0)
            x = torch.rand(100, _WIDTH).double()
            convs = [make_conv(conv, _WIDTH).double() for _ in range(layers)]
            found[conv] = measure(plain_states(convs, x, graph), graph).tolist()
            if wrapped == "G²":
                _, gated = GradientGating(convs, layers)(x, graph, return_states=True)
                found[f"G²-{conv}"] = measure(gated.x, graph).tolist()
                continue
            for damping in (0.0, 0.5):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", StabilityWarning)  # the figure shows the decay
                    model = GraphCON(convs, layers, 1.0, damping=damping)
                _, states = model(x, graph, return_states=True)
                name = f"GraphCON-{conv}, α = {damping:g}"
                found[name] = measure(states.x, graph).tolist()
    return Curves(found)


of_layers = partial(Figure, x="layer", log="xy")
FIGURES = (
    of_layers(
        id="graphcon-dirichlet-energy",
        title="Dirichlet energy against depth, GraphCON",
        source="thesis Figure 7.2",
        y="Dirichlet energy",
        outcomes={
            "GCN": _DECAY,
            "GAT": _DECAY,
            "GraphCON-GCN, α = 0": "no decay",
            "GraphCON-GCN, α = 0.5": "initial decay, then stable",
            "GraphCON-GAT, α = 0": "no decay",
            "GraphCON-GAT, α = 0.5": "initial decay, then stable",
        },
        measure=lambda environment: _curves(100, dirichlet_energy, "GraphCON"),
        marks=(0, 1, 10, 30, 100),
        note=f"{_NOTE} γ = 1, dt = 1.",
        low=1e-20,
    ),
    of_layers(
        id="g2-dirichlet-energy",
        title="Dirichlet energy against depth, gradient gating",
        source="thesis Figure 8.2",
        y="Dirichlet energy",
        outcomes={
            "GCN": "exponential decay, practically zero after ten layers",
            "GAT": "exponential decay, practically zero after ten layers",
            "G²-GCN": "nearly constant up to 1000 layers",
            "G²-GAT": "nearly constant up to 1000 layers",
        },
        measure=lambda environment: _curves(1000, dirichlet_energy, "G²"),
        marks=(0, 1, 10, 100, 1000),
        note=f"{_NOTE} p = 2.",
        low=1e-20,
    ),
    of_layers(
        id="g2-mad",
        title="Mean average distance against depth, gradient gating",
        source="thesis Figure 8.9",
        y="Mean average distance (MAD)",
        outcomes={
            "GCN": "exponential decay",
            "GAT": "exponential decay",
            "G²-GCN": "constant",
            "G²-GAT": "constant",
        },
        measure=lambda environment: _curves(1000, mean_average_distance, "G²"),
        marks=(0, 1, 10, 100, 1000),
        note=f"{_NOTE} p = 2. Below 1e-15 the distances are rounding: curves end there.",
        low=1e-15,
    ),
)
