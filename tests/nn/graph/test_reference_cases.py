"""GraphCON and G² against cases made with the authors' code: states and every gradient to 1e-10."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from anharmonic import Adjacency, GradientGating, GraphCON
from anharmonic.nn.graph.couplings import ChannelGroupMean, ResidualCoupling

pyg = pytest.importorskip("torch_geometric.nn", reason="the cases wrap PyG's convolutions")

sparse = pytest.mark.parametrize("sparse", [False, True])
CASES = Path(__file__).parents[2] / "reference"
# The cases agree with an independent replay to 1e-12.
RELATIVE = 1e-10


class Case:
    """Weights as leaf tensors, put into modules by name."""

    def __init__(self, name):
        data = np.load(CASES / f"{name}.npz")
        self.meta = json.loads(str(data["meta"]))
        self.arrays = {k: torch.tensor(data[k]) for k in data.files if k != "meta"}
        self.leaves = {"x": self.arrays["x"].requires_grad_()}

    def fill(self, prefix, module):
        for name, weight in module.double().named_parameters():
            key = f"{prefix}_{name.replace('.', '_')}"
            weight.data = self.arrays[key].clone()
            self.leaves[key] = weight
        return module

    def linear(self, prefix):
        outputs, inputs = self.arrays[f"{prefix}_weight"].shape
        return self.fill(prefix, torch.nn.Linear(inputs, outputs))

    def graphcon(self, conv, **options):
        names = {"dt": "dt", "frequency": "gamma", "damping": "alpha"}
        return GraphCON(conv, 5, **{n: self.meta[key] for n, key in names.items()}, **options)

    def check(self, name, got):
        expected = self.arrays[name]
        error, scale = (got - expected).abs().max().item(), expected.abs().max().item()
        assert error <= RELATIVE * scale, f"{name}: off by {error:.2e} of {scale:.2e}"

    def check_layer(self, layer, x, sparse, *names):
        edges = self.arrays["edge_index"]
        graph = Adjacency(edges, self.meta["n_nodes"]) if sparse else edges
        h, states = layer(x, graph, return_states=True)
        out = self.linear("dec")(h)
        self.check("out", out)
        for name in names:
            self.check(name, getattr(states, name if name == "tau" else name.lower()))
        loss = (self.arrays["cot_out"] * out).sum()
        self.check("loss", loss)
        gradients = torch.autograd.grad(loss, list(self.leaves.values()))
        for key, gradient in zip(self.leaves, gradients, strict=True):
            self.check(f"grad_{key}", gradient)
        stored = {key for key in self.arrays if key.startswith("grad_")}
        assert stored == {f"grad_{key}" for key in self.leaves}


@sparse
def test_graphcon_readme(sparse):
    case = Case("graphcon_readme_gcn")
    x = case.linear("enc")(case.leaves["x"])
    convs = [case.fill(f"GNNs_{i}", pyg.GCNConv(x.shape[1], x.shape[1])) for i in range(5)]
    case.check_layer(case.graphcon(convs), x, sparse, "X", "Y")


@sparse
def test_graphcon_gat(sparse):
    case = Case("graphcon_gat")
    _, heads, width = case.arrays["conv_att_src"].shape
    gat = case.fill("conv", pyg.GATConv(width, width, heads=heads))
    inner = ResidualCoupling(gat, 6, 24, "plain")
    case.fill("res", inner.residual)
    x = case.linear("enc")(case.leaves["x"]).relu()
    layer = case.graphcon(ChannelGroupMean(inner), activation="identity")
    case.check_layer(layer, x, sparse, "X", "Y")


@sparse
@pytest.mark.parametrize(
    ("name", "conv"), [("g2_gcn_shared_p2", pyg.GCNConv), ("g2_sage_separate_p2", pyg.SAGEConv)]
)
def test_gradient_gating(name, conv, sparse):
    case = Case(name)
    x = case.linear("enc")(case.leaves["x"]).relu()
    both = [case.fill("conv", conv(x.shape[1], x.shape[1]))]
    if case.meta["separate_gating_conv"]:
        both.append(case.fill("conv_gg", conv(x.shape[1], x.shape[1])))
    options = {"p": case.meta["p"], "gate_conv": both[1] if len(both) > 1 else None}
    layer = GradientGating(both[0], 5, aggr="mean", neighbours="out", **options)
    case.check_layer(layer, x, sparse, "X", "tau")


def test_the_documents_sum():
    case = Case("g2_gcn_shared_p2")
    width = case.arrays["X"].shape[-1]
    conv = case.fill("conv", pyg.GCNConv(width, width))
    layer = GradientGating(conv, 1, p=case.meta["p"], aggr="sum", neighbours="out")
    for n in range(5):
        x = case.arrays["X"][n]
        _, states = layer(x, case.arrays["edge_index"], return_states=True)
        assert torch.allclose(states.tau[0], case.arrays["tau_sum"][n], rtol=0, atol=1e-12)
