"""The recurrences against cases made with other programs: states and every gradient to 1e-10."""

import json
from functools import partial
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
    tensors = {
        k: torch.tensor(data[k], requires_grad=data[k].dtype == np.float64)
        for k in data.files
        if k != "meta"
    }
    return tensors, json.loads(str(data["meta"]))


def check(name, got, expected):
    error = (got - expected).abs().max().item()
    scale = expected.abs().max().item()
    assert error <= RELATIVE * scale, f"{name}: off by {error:.2e} of {scale:.2e}"


def compare(case, run, leaves, x="x"):
    """Whole-sequence outputs, step-by-step states, the loss and all gradients of one case."""
    start = case["y0"][None], case["z0"][None]
    output, y_n, z_n = run(case[x], y0=start[0], z0=start[1])
    check("y", output, case["y"])
    check("final y", y_n[0], case["y"][-1])
    check("final z", z_n[0], case["z"][-1])
    states = []  # of single steps, as a kernel returns only the last z
    for x_t in case[x]:
        _, *start = run(x_t[None], y0=start[0], z0=start[1])
        states.append(torch.cat(start))
    y, z = torch.stack(states, 1)
    check("y by steps", y, case["y"])
    check("z by steps", z, case["z"])
    loss = (case["cot_y"] * y).sum() + (case["cot_z"] * z).sum()
    if "cot_out" in case:
        weight = case.get("readout_weight", case.get("classifier_weight"))
        bias = case.get("readout_bias", case.get("classifier_bias"))
        out = y[-1] @ weight.T + bias
        check("out", out, case["out"])
        loss = loss + (case["cot_out"] * out).sum()
    check_gradients(case, loss, leaves)
    if "loss_y_only" in case:
        check_gradients(case, (case["cot_y"] * output).sum(), leaves, "loss_y_only", "grad_yonly")


def check_gradients(case, loss, leaves, name="loss", prefix="grad"):
    check(name, loss, case[name])
    gradients = torch.autograd.grad(loss, [case[leaf] for leaf in leaves], retain_graph=True)
    for leaf, gradient in zip(leaves, gradients, strict=True):
        check(f"{prefix}_{leaf}", gradient, case[f"{prefix}_{leaf}"])


@pytest.mark.parametrize(
    "name, scheme",
    [("cornn_explicit_small", "explicit"), ("cornn_implicit_from_paper", "implicit")],
)
def test_cornn(name, scheme):
    case, meta = load(name)
    weights = [ops.CoRNNWeights(case["V"], case["Wy"], case["Wz"], case["b"])]
    own = {"dt": meta["dt"], "frequency": meta["gamma"], "damping": meta["epsilon"]}
    run = partial(ops.cornn, weights=weights, scheme=scheme, **own)
    compare(case, run, ["x", "y0", "z0", "V", "Wz", "Wy", "b"])


def test_lem():
    case, meta = load("lem_small")
    V, W, b = (
        torch.cat([case[m + k] for k in ("1", "2", "z", "y") if m + k != "Wy"]) for m in "VWb"
    )
    run = partial(ops.lem, weights=[ops.LEMWeights(V, W, case["Wy"], b)], dt=meta["dt"])
    leaves = [m + k for m in "WVb" for k in ("1", "2", "z", "y")]
    compare(case, run, ["x", "y0", "z0", *leaves])


def test_unicornn_recurrence():
    case, meta = load("unicornn_layer_small")
    identity = torch.eye(case["w"].numel(), dtype=torch.float64)  # the case gives u = V x + b
    weights = [ops.UnICORNNWeights(identity, case["w"], None, case["c"])]
    own = {"dt": [meta["dt"]], "frequency": meta["alpha"]}
    run = partial(ops.unicornn, weights=weights, **own)
    compare(case, run, ["u", "w", "c", "y0", "z0"], x="u")
