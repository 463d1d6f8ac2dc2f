import pytest
import torch

from anharmonic.ops import State, UnICORNNEquation, UnICORNNWeights, unicornn
from anharmonic.ops.reference import TILE, Stack, Steps
from anharmonic.ops.unicornn import rounded

DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def plain_grid(stack, output):
    """The grid under plain autograd, cut where ``reversible`` cuts: every tile its own weights."""
    lengths, masks, elapsed = (stack.given[k] for k in ("lengths", "masks", "elapsed"))
    x, (y0, z0) = stack.x, stack.start
    valid = (torch.arange(len(x))[:, None] < lengths)[:, :, None]
    steps = Steps(x, elapsed, valid)
    state, outputs = State(rounded(y0), rounded(z0)), []
    own = stack.own
    equation = UnICORNNEquation(tuple(own["dt"]), own["frequency"], own["skipped_layers"])
    equations = [equation.of_layer(k) for k in range(len(stack.weights))]
    layers = Stack(equations, masks, output == "all", on_grid=True)
    for start in range(0, len(x), TILE):
        weights = [
            UnICORNNWeights(*(None if t is None else t.view_as(t) for t in weight))
            for weight in stack.weights
        ]
        out, state = layers.walk(weights, steps.part(start, TILE), state)
        outputs.append(out)
    whole = torch.cat(outputs) if output == "all" else None
    return whole, *(variable.to(y0.dtype) for variable in state)


@DTYPES
@pytest.mark.parametrize("output", ["all", "none"])
def test_gradients_are_those_of_storing_the_grid(make_stack, dtype, output):
    stack = make_stack("unicornn", dtype=dtype)
    expected = plain_grid(stack, output)
    gradients = torch.autograd.grad(stack.loss(expected), stack.leaves)
    results, got = stack.run(memory="reversible", output=output, backend="reference")
    for a, b in zip(results, expected, strict=True):
        assert (a is None and b is None) or torch.equal(a, b)
    for leaf, a, b in zip(stack.leaves, got, gradients, strict=True):
        assert torch.equal(a, b), f"gradient of a leaf of shape {list(leaf.shape)}"


def test_rounding():
    spacing = 2.0**-40
    values = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 0.49], dtype=torch.float64) * spacing
    assert (rounded(values) / spacing).tolist() == [0, 2, 2, 0, -2, 0]
    large = torch.tensor([4095.0 + spacing, -4095.5 - 2 * spacing], dtype=torch.float64)
    assert torch.equal(rounded(large), large)
    x = torch.tensor([0.3], requires_grad=True)
    rounded(x).sum().backward()
    assert x.grad.dtype == torch.float32 and x.grad.item() == 1.0


def run_away(scale, **words):
    zero = torch.zeros(1, 1, 1)
    weight = UnICORNNWeights(torch.zeros(1, 1), torch.zeros(1), None, torch.zeros(1))
    return unicornn(
        torch.zeros(70, 1, 1), [weight], zero, zero + scale, dt=[2.0], frequency=0.0,
        memory="reversible", **words,
    )  # fmt: skip


@pytest.mark.parametrize("scale", [100.0, -100.0, float("inf"), float("nan")])
def test_leaving_the_grid_is_reported(scale):
    with pytest.raises(OverflowError, match=r"left the grid; use a smaller dt.* memory='chunked'"):
        run_away(scale)


def test_a_start_outside_is_reported_and_one_inside_is_not():
    with pytest.raises(OverflowError, match="1024"):
        run_away(5000.0)
    _, y, _ = run_away(10.0)
    assert y.item() == 700.0


def test_without_gradients_nothing_differs(make_stack):
    stack = make_stack("unicornn")
    expected = stack.call(memory="reversible", backend="reference")
    with torch.no_grad():
        got = stack.call(memory="reversible", backend="reference")
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))
