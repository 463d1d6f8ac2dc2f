"""The recurrences against cases made with other programs: states and every gradient to 1e-10."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from anharmonic import ops

CASES = Path(__file__).parents[1] / "reference"
# The cases agree with an independent replay to 1e-12; 1e-10 of the largest entry leaves room for
# another order of summation over at most 200 steps.
RELATIVE = 1e-10


def load(name):
    data = np.load(CASES / f"{name}.npz")
    meta = json.loads(str(data["meta"]))
    tensors = {
        k: torch.tensor(data[k], requires_grad=data[k].dtype == np.float64)
        for k in data.files
        if k != "meta"
    }
    return tensors, meta


def check(name, got, expected):
    error = (got - expected).abs().max().item()
    scale = expected.abs().max().item()
    assert error <= RELATIVE * scale, f"{name}: off by {error:.2e} of {scale:.2e}"


def all_states(run, x, y, z):
    """Runs a kernel one step at a time to see z at every step (the kernel returns only y)."""
    ys, zs = [], []
    for x_t in x:
        _, y, z = run(x_t[None], y, z)
        ys.append(y[0])
        zs.append(z[0])
    return torch.stack(ys), torch.stack(zs)


def compare(case, run, leaves, x="x"):
    """Whole-sequence outputs, step-by-step states, the loss and all gradients of one case."""
    y0, z0 = case["y0"][None], case["z0"][None]
    output, y_n, z_n = run(case[x], y0, z0)
    check("y", output, case["y"])
    check("final y", y_n[0], case["y"][-1])
    check("final z", z_n[0], case["z"][-1])
    y, z = all_states(run, case[x], y0, z0)
    check("y by steps", y, case["y"])
    check("z by steps", z, case["z"])
    loss = (case["cot_y"] * y).sum() + (case["cot_z"] * z).sum()
    if "cot_out" in case:
        weight = case.get("readout_weight", case.get("classifier_weight"))
        bias = case.get("readout_bias", case.get("classifier_bias"))
        out = y[-1] @ weight.T + bias
        check("out", out, case["out"])
        loss = loss + (case["cot_out"] * out).sum()
    check("loss", loss, case["loss"])
    for leaf in leaves:
        (gradient,) = torch.autograd.grad(loss, case[leaf], retain_graph=True)
        check(f"grad_{leaf}", gradient, case[f"grad_{leaf}"])


@pytest.mark.parametrize(
    "name, scheme",
    [("cornn_explicit_small", "explicit"), ("cornn_implicit_from_paper", "implicit")],
)
def test_cornn(name, scheme):
    case, meta = load(name)
    weights = [ops.CoRNNWeights(case["V"], case["Wy"], case["Wz"], case["b"])]
    own = {"dt": meta["dt"], "frequency": meta["gamma"], "damping": meta["epsilon"]}

    def run(x, y, z):
        return ops.cornn(x, weights, y, z, scheme=scheme, **own)

    compare(case, run, ["x", "y0", "z0", "V", "Wz", "Wy", "b"])


def test_lem():
    case, meta = load("lem_small")
    V, W, b = (
        torch.cat([case[m + k] for k in ("1", "2", "z", "y") if m + k != "Wy"]) for m in "VWb"
    )
    weights = [ops.LEMWeights(V, W, case["Wy"], b)]

    def run(x, y, z):
        return ops.lem(x, weights, y, z, dt=meta["dt"])

    leaves = [m + k for m in "WVb" for k in ("1", "2", "z", "y")]
    compare(case, run, ["x", "y0", "z0", *leaves])


def test_unicornn_recurrence():
    case, meta = load("unicornn_layer_small")
    hidden = case["w"].numel()
    identity = torch.eye(hidden, dtype=torch.float64)  # the case gives u = V x + b itself
    weights = [ops.UnICORNNWeights(identity, case["w"], None, case["c"])]

    def run(x, y, z):
        return ops.unicornn(x, weights, y, z, dt=[meta["dt"]], frequency=meta["alpha"])

    compare(case, run, ["u", "w", "c", "y0", "z0"], x="u")
    output, _, _ = run(case["u"], case["y0"][None], case["z0"][None])
    loss = (case["cot_y"] * output).sum()
    check("loss_y_only", loss, case["loss_y_only"])
    for leaf in ("u", "w", "c", "y0", "z0"):
        (gradient,) = torch.autograd.grad(loss, case[leaf], retain_graph=True)
        check(f"grad_yonly_{leaf}", gradient, case[f"grad_yonly_{leaf}"])
