from functools import partial

import pytest
import torch

from anharmonic.ops import memory, unicornn
from anharmonic.ops.recurrence import TILE, State, Steps, walk_stack
from anharmonic.ops.unicornn import UnICORNNWeights, grid
from anharmonic.ops.unicornn.step import UnICORNNTerms

DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def plain_grid(stack, output):
    """The grid under plain autograd, cut where ``reversible`` cuts: every tile its own weights."""
    lengths, masks, elapsed = (stack.given[k] for k in ("lengths", "masks", "elapsed"))
    x, (y0, z0) = stack.x, stack.start
    valid = (torch.arange(len(x))[:, None] < lengths)[:, :, None]
    steps = Steps(x, elapsed, valid)
    state, outputs = State(grid.rounded(y0), grid.rounded(z0)), []
    walk = partial(grid.walk, frequency=stack.own["frequency"])
    for start in range(0, len(x), TILE):
        weights = [
            UnICORNNTerms(
                *(None if t is None else t.view_as(t) for t in weight),
                stack.own["dt"][k],
                stack.own["skipped_layers"],
            )
            for k, weight in enumerate(stack.weights)
        ]
        tile = steps.part(start, TILE)
        out, state = walk_stack(walk, weights, masks, tile, state, output == "all")
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


@DTYPES
@pytest.mark.parametrize("dt, alpha", [(0.0343, 0.0), (0.45, 12.5)])
@pytest.mark.parametrize("T", [1_500, pytest.param(17_984, marks=pytest.mark.slow)])
def test_undone_start_is_the_start(dtype, dt, alpha, T):
    """Where plain inversion drifts away from the start, every bit comes back."""
    generator = torch.Generator().manual_seed(0)
    H = 5

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    weights = [
        UnICORNNTerms(draw(H, 1 if k == 0 else H), draw(H).abs(), None, draw(H), None, dt, None)
        for k in range(2)
    ]
    steps = Steps(draw(T, 2, 1), None, None)
    walk, undo = (partial(way, frequency=alpha) for way in (grid.walk, grid.undo))
    start = State(grid.rounded(draw(2, 2, H)), grid.rounded(draw(2, 2, H)))
    with torch.no_grad():
        _, state = walk_stack(walk, weights, None, steps, start, False)
        assert not torch.equal(state.y, start.y)
        for first in reversed(range(0, T, TILE)):
            _, state = walk_stack(undo, weights, None, steps.part(first, TILE), state, False)
    assert torch.equal(state.y, start.y) and torch.equal(state.z, start.z)


def test_outputs_are_near_those_of_floating_point(make_stack):
    stack = make_stack("unicornn")
    exact, expected = stack.run(memory="stored", backend="reference")
    got, gradients = stack.run(memory="reversible", backend="reference")
    # 150 steps, each off by half a spacing in y and z, which a stack of three passes on.
    torch.testing.assert_close(got, exact, rtol=0, atol=150 * 2.0**-40)
    torch.testing.assert_close(gradients, expected, rtol=1e-8, atol=1e-8)


def test_rounding():
    spacing = 2.0**-40
    values = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 0.49], dtype=torch.float64) * spacing
    assert (grid.rounded(values) / spacing).tolist() == [0, 2, 2, 0, -2, 0]
    large = torch.tensor([4095.0 + spacing, -4095.5 - 2 * spacing], dtype=torch.float64)
    assert torch.equal(grid.rounded(large), large)
    x = torch.tensor([0.3], requires_grad=True)
    grid.rounded(x).sum().backward()
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


def test_auto_is_never_reversible(make_stack, monkeypatch):
    monkeypatch.setattr(memory, "STORED_WITHOUT_OUTPUT", 1)
    stack = make_stack("unicornn")
    _, y, _ = stack.call(output="none")
    _, stored, _ = stack.call(output="none", memory="stored")
    assert torch.equal(y, stored)
