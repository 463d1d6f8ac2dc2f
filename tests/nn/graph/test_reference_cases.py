"""GraphCON and G² against cases made with the authors' code: states and every gradient to 1e-10."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from anharmonic import Adjacency, GradientGating, GraphCON
from anharmonic.nn.graph.couplings import ChannelGroupMean, ResidualCoupling

pyg = pytest.importorskip("torch_geometric.nn", reason="the cases wrap PyG's convolutions")

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

    def fill(self, module, **names):
        for attribute, key in names.items():
            weight = module.get_parameter(attribute)
            weight.data = self.arrays[key].clone()
            self.leaves[key] = weight
        return module

    def check(self, name, got):
        expected = self.arrays[name]
        error, scale = (got - expected).abs().max().item(), expected.abs().max().item()
        assert error <= RELATIVE * scale, f"{name}: off by {error:.2e} of {scale:.2e}"

    def check_gradients(self, loss):
        self.check("loss", loss)
        gradients = torch.autograd.grad(loss, list(self.leaves.values()))
        for key, gradient in zip(self.leaves, gradients, strict=True):
            self.check(f"grad_{key}", gradient)
        assert {f"grad_{key}" for key in self.leaves} == {
            key for key in self.arrays if key.startswith("grad_")
        }


def linear(case, prefix):
    weight = case.arrays[f"{prefix}_weight"]
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
    return case.fill(layer, weight=f"{prefix}_weight", bias=f"{prefix}_bias")


def gcn(case, prefix="conv"):
    width = case.arrays[f"{prefix}_bias"].shape[0]
    names = {"lin.weight": f"{prefix}_lin_weight", "bias": f"{prefix}_bias"}
    return case.fill(pyg.GCNConv(width, width).double(), **names)


def gat(case, prefix="conv"):
    _, heads, width = case.arrays[f"{prefix}_att_src"].shape
    names = {
        "lin.weight": f"{prefix}_lin_weight",
        "att_src": f"{prefix}_att_src",
        "att_dst": f"{prefix}_att_dst",
        "bias": f"{prefix}_bias",
    }
    return case.fill(pyg.GATConv(width, width, heads=heads).double(), **names)


def sage(case, prefix="conv"):
    width = case.arrays[f"{prefix}_lin_l_bias"].shape[0]
    names = {f"{part}": f"{prefix}_{part.replace('.', '_')}" for part in
             ("lin_l.weight", "lin_l.bias", "lin_r.weight")}  # fmt: skip
    return case.fill(pyg.SAGEConv(width, width).double(), **names)


def edges(case, sparse):
    edge_index = case.arrays["edge_index"]
    return Adjacency(edge_index, case.meta["n_nodes"]) if sparse else edge_index


def finish(case, layer, x, sparse):
    h, states = layer(x, edges(case, sparse), return_states=True)
    out = linear(case, "dec")(h)
    case.check("out", out)
    case.check_gradients((case.arrays["cot_out"] * out).sum())
    return states


@pytest.mark.parametrize("sparse", [False, True])
def test_graphcon_readme(sparse):
    case = Case("graphcon_readme_gcn")
    convs = [gcn(case, f"GNNs_{i}") for i in range(5)]
    meta = case.meta
    layer = GraphCON(convs, 5, meta["dt"], frequency=meta["gamma"], damping=meta["alpha"])
    states = finish(case, layer, linear(case, "enc")(case.leaves["x"]), sparse)
    case.check("X", states.x)
    case.check("Y", states.y)


@pytest.mark.parametrize("sparse", [False, True])
def test_graphcon_gat(sparse):
    case = Case("graphcon_gat")
    inner = ResidualCoupling(gat(case), 6, 24, "plain").double()
    case.fill(inner, **{"residual.weight": "res_weight", "residual.bias": "res_bias"})
    meta = case.meta
    layer = GraphCON(
        ChannelGroupMean(inner), 5, meta["dt"], frequency=meta["gamma"], damping=meta["alpha"],
        activation="identity",
    )  # fmt: skip
    states = finish(case, layer, linear(case, "enc")(case.leaves["x"]).relu(), sparse)
    case.check("X", states.x)
    case.check("Y", states.y)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("name", "conv", "separate"),
    [("g2_gcn_shared_p2", gcn, False), ("g2_sage_separate_p2", sage, True)],
)
def test_gradient_gating(name, conv, separate, sparse):
    case = Case(name)
    assert case.meta["separate_gating_conv"] is separate
    layer = GradientGating(
        conv(case), 5, p=case.meta["p"], gate_conv=conv(case, "conv_gg") if separate else None,
        aggr="mean", neighbours="out",
    )  # fmt: skip
    states = finish(case, layer, linear(case, "enc")(case.leaves["x"]).relu(), sparse)
    case.check("X", states.x)
    case.check("tau", states.tau)


def test_the_documents_sum():
    case = Case("g2_gcn_shared_p2")
    layer = GradientGating(gcn(case), 1, p=case.meta["p"], aggr="sum", neighbours="out")
    for n in range(5):
        x = case.arrays["X"][n]
        _, states = layer(x, case.arrays["edge_index"], return_states=True)
        assert torch.allclose(states.tau[0], case.arrays["tau_sum"][n], rtol=0, atol=1e-12)
