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

    def fill(self, module, **names):
        for attribute, key in names.items():
            weight = module.get_parameter(attribute)
            weight.data = self.arrays[key].clone()
            self.leaves[key] = weight
        return module

    def settings(self):
        """Of GraphCON."""
        names = {"dt": "dt", "frequency": "gamma", "damping": "alpha"}
        return {ours: self.meta[theirs] for ours, theirs in names.items()}

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
    outputs, inputs = case.arrays[f"{prefix}_weight"].shape
    return weights_of(case, torch.nn.Linear(inputs, outputs), prefix, ("weight", "bias"))


def weights_of(case, module, prefix, names):
    return case.fill(module.double(), **{n: f"{prefix}_{n.replace('.', '_')}" for n in names})


def gcn(case, prefix="conv"):
    width = case.arrays[f"{prefix}_bias"].shape[0]
    return weights_of(case, pyg.GCNConv(width, width), prefix, ("lin.weight", "bias"))


def gat(case, prefix="conv"):
    _, heads, width = case.arrays[f"{prefix}_att_src"].shape
    names = ("lin.weight", "att_src", "att_dst", "bias")
    return weights_of(case, pyg.GATConv(width, width, heads=heads), prefix, names)


def sage(case, prefix="conv"):
    width = case.arrays[f"{prefix}_lin_l_bias"].shape[0]
    names = ("lin_l.weight", "lin_l.bias", "lin_r.weight")
    return weights_of(case, pyg.SAGEConv(width, width), prefix, names)


def finish(case, layer, x, sparse, *names):
    edges = case.arrays["edge_index"]
    graph = Adjacency(edges, case.meta["n_nodes"]) if sparse else edges
    h, states = layer(x, graph, return_states=True)
    out = linear(case, "dec")(h)
    case.check("out", out)
    case.check_gradients((case.arrays["cot_out"] * out).sum())
    for name in names:
        case.check(name, getattr(states, name if name == "tau" else name.lower()))


@sparse
def test_graphcon_readme(sparse):
    case = Case("graphcon_readme_gcn")
    convs, x = [gcn(case, f"GNNs_{i}") for i in range(5)], linear(case, "enc")(case.leaves["x"])
    finish(case, GraphCON(convs, 5, **case.settings()), x, sparse, "X", "Y")


@sparse
def test_graphcon_gat(sparse):
    case = Case("graphcon_gat")
    inner = ResidualCoupling(gat(case), 6, 24, "plain").double()
    case.fill(inner, **{"residual.weight": "res_weight", "residual.bias": "res_bias"})
    conv, x = ChannelGroupMean(inner), linear(case, "enc")(case.leaves["x"]).relu()
    layer = GraphCON(conv, 5, **case.settings(), activation="identity")
    finish(case, layer, x, sparse, "X", "Y")


@sparse
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
    finish(case, layer, linear(case, "enc")(case.leaves["x"]).relu(), sparse, "X", "tau")


def test_the_documents_sum():
    case = Case("g2_gcn_shared_p2")
    layer = GradientGating(gcn(case), 1, p=case.meta["p"], aggr="sum", neighbours="out")
    for n in range(5):
        x = case.arrays["X"][n]
        _, states = layer(x, case.arrays["edge_index"], return_states=True)
        assert torch.allclose(states.tau[0], case.arrays["tau_sum"][n], rtol=0, atol=1e-12)
