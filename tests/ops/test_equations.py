"""The equations: cases made with other programs, velocity Verlet, and the grid of UnICORNN."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from anharmonic import ops
from anharmonic.ops import OscillatorEquation, State, UnICORNNWeights, unicornn
from anharmonic.ops.unicornn import rounded

CASES = Path(__file__).parents[1] / "reference"
# The cases agree with an independent replay to 1e-12; 1e-10 of the largest entry leaves room for
# another order of summation over at most 200 steps.
RELATIVE = 1e-10


# ---- cases made with other programs: states and every gradient to 1e-10 ----
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


# ---- what the C library lacks: schemes, activations, velocity Verlet ----
def test_only_the_reference_runs_other_schemes_and_activations():
    x, zero, W = torch.ones(2, 3, 3), torch.zeros(1, 3, 5), torch.ones(5, 3)
    weights = [ops.OscillatorWeights(W, torch.ones(5), None)]
    for words in ({"scheme": "velocity-verlet"}, {"activation": "sin"}):
        ops.oscillator(x, weights, zero, zero, dt=0.1, **words)
        if "native" in ops.available_backends("oscillator"):
            with pytest.raises(ValueError, match=next(iter(words.values()))):
                ops.oscillator(x, weights, zero, zero, dt=0.1, backend="native", **words)


@pytest.mark.parametrize("activation", ["tanh", "sin", "identity"])
def test_velocity_verlet_goes_back_the_way_it_came(activation):
    torch.manual_seed(0)
    u, y, z = torch.randn(3, 2, 4, dtype=torch.float64)
    W = torch.randn(4, 4, dtype=torch.float64)
    verlet = OscillatorEquation(0.3, "velocity-verlet", activation)
    there = verlet.step(u, State(y, z), W, 0.3)
    back = verlet.step(u, State(there.y, -there.z), W, 0.3)
    torch.testing.assert_close(back.y, y, atol=1e-12, rtol=0)
    torch.testing.assert_close(back.z, -z, atol=1e-12, rtol=0)
    assert (there.y - y).abs().max() > 0.1
    # A layer above sees the middle of the step.
    seen = verlet.passed_up(there.y[None], State(y, z))[0]
    half = y + 0.15 * (z + 0.15 * verlet._force(u, y, W))
    torch.testing.assert_close(seen, half)
    assert verlet.shapes(4, 4)["weight_hh"] == (4, 4)


# ---- the grid of reversible memory ----
def test_rounding():
    spacing = 2.0**-40
    values = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 0.49], dtype=torch.float64) * spacing
    assert (rounded(values) / spacing).tolist() == [0, 2, 2, 0, -2, 0]
    large = torch.tensor([4095.0 + spacing, -4095.5 - 2 * spacing], dtype=torch.float64)
    assert torch.equal(rounded(large), large)
    x = torch.tensor([0.3], requires_grad=True)
    rounded(x).sum().backward()
    assert x.grad.dtype == torch.float32 and x.grad.item() == 1.0


@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_leaving_the_grid_is_reported(backend):
    zero = torch.zeros(1, 1, 1)
    weight = UnICORNNWeights(zero[0], zero[0, 0], None, zero[0, 0])

    def run_away(start):
        return unicornn(
            torch.zeros(70, 1, 1), [weight], zero, zero + start, dt=[2.0], frequency=0.0,
            memory="reversible", backend=backend,
        )  # fmt: skip

    words = r"left the grid; use a smaller dt.* memory='chunked'"
    for start in (100.0, -100.0, float("inf"), float("nan")):
        with pytest.raises(OverflowError, match=words):
            run_away(start)
    with pytest.raises(OverflowError, match="1024"):
        run_away(5000.0)  # a start outside
    assert run_away(10.0)[1].item() == 700.0


def test_without_gradients_nothing_differs(make_stack):
    stack, words = make_stack("unicornn"), {"memory": "reversible", "backend": "reference"}
    with torch.no_grad():
        got = stack.call(**words)
    assert all(map(torch.equal, got, stack.call(**words)))
