"""Time between samples and masks: what they multiply, and how each direction meets them."""

import pytest
import torch

from anharmonic import ops

every = pytest.mark.parametrize("kernel", ["cornn", "unicornn", "lem"])
both = pytest.mark.parametrize("bidirectional", [False, True])


def close(got, expected):
    # The product dt * elapsed is rounded in another place than 2 dt: a few roundings in float64.
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-13)


@every
@both
def test_two_everywhere_doubles_dt(make_stack, kernel, bidirectional):
    stack = make_stack(kernel, bidirectional=bidirectional)
    twos = torch.full_like(stack.given["elapsed"], 2.0)
    dt = stack.own["dt"]
    doubled = [2 * step for step in dt] if isinstance(dt, list) else 2 * dt
    close(stack.call(elapsed=twos), stack.call(elapsed=None, dt=doubled))


@every
@both
def test_gap_of_zero_stands_still(make_stack, kernel, bidirectional):
    stack = make_stack(kernel, bidirectional=bidirectional)
    words = {"gate_floor": None} if kernel == "lem" else {}
    zeros = torch.zeros_like(stack.given["elapsed"])
    _, y, z = stack.call(elapsed=zeros, **words)
    close((y, z), tuple(stack.start))


@pytest.mark.parametrize("multiscale", [True, False])
def test_lem_by_hand(multiscale):
    """Gates are clipped after elapsed has multiplied them; without multiscale they are dt e."""
    generator = torch.Generator().manual_seed(0)
    H, blocks = 3, 4 if multiscale else 2

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    V, W, W_y = draw(blocks * H, 2), draw((blocks - 1) * H, H), draw(H, H)
    x, y, z = draw(1, 4, 2), draw(1, 4, H), draw(1, 4, H)
    elapsed = torch.tensor([[0.1, 1.0, 3.0, 0.0]], dtype=torch.float64)
    own = {"dt": 0.7, "multiscale": multiscale, "gate_floor": 0.2 if multiscale else None}
    weights = [ops.LEMWeights(V, W, W_y, None)]
    _, y_n, z_n = ops.lem(x, weights, y, z, elapsed=elapsed, **own)
    pre, before = x[0] @ V.T, y[0] @ W.T
    a = b = 0.7 * elapsed[0][:, None]
    if multiscale:
        gates = torch.sigmoid(before[:, : 2 * H] + pre[:, : 2 * H])
        a, b = (a * gates).clamp(0.2, 1.0).chunk(2, 1)
    z_hand = (1 - a) * z[0] + a * torch.tanh(before[:, -H:] + pre[:, -2 * H : -H])
    y_hand = (1 - b) * y[0] + b * torch.tanh(z_hand @ W_y.T + pre[:, -H:])
    close((y_n[0], z_n[0]), (y_hand, z_hand))


def test_reverse_direction_meets_gaps_by_hand():
    """With UnICORNN of h = dt / 2 and no force, y moves by h z for every unit of time passed."""
    gaps = torch.tensor([[1.0, 5.0], [2.0, 7.0], [3.0, 9.0], [4.0, 9.0]], dtype=torch.float64)
    zero = torch.zeros(1, dtype=torch.float64)
    weight = ops.UnICORNNWeights(zero[None], zero, None, zero)
    ones, x = torch.ones(2, 2, 1, dtype=torch.float64), torch.zeros(4, 2, 1, dtype=torch.float64)

    def run(lengths):
        return ops.unicornn(
            x, [weight, weight], 0 * ones, ones, dt=[2.0], frequency=0.0, bidirectional=True,
            lengths=lengths, elapsed=gaps,
        )[0]  # fmt: skip

    output = run(torch.tensor([4, 2]))
    forward, reverse = output[:, :, 0], output[:, :, 1]
    assert forward[:, 0].tolist() == [1, 3, 6, 10]
    assert reverse[:, 0].tolist() == [1 + 4 + 3 + 2, 1 + 4 + 3, 1 + 4, 1]
    assert forward[:, 1].tolist() == [5, 12, 0, 0]
    assert reverse[:, 1].tolist() == [5 + 7, 5, 0, 0]
    empty = run(torch.tensor([4, 0]))
    assert torch.equal(empty[:, 0], output[:, 0]) and not empty[:, 1].any()
    assert torch.equal(run(None)[:, 0], output[:, 0])


def test_masks_scale_every_layer_but_the_top_one(make_stack):
    stack = make_stack("lem", {}, bidirectional=True, steps=5, layers=2, given=())
    nothing = torch.zeros(5, 3, 8, dtype=torch.float64)
    masked, *_ = stack.call(masks=[nothing[0]])
    start = (state[2:] for state in stack.start)
    above, *_ = ops.lem(nothing, stack.weights[2:], *start, bidirectional=True, **stack.own)
    assert torch.equal(masked, above) and masked.abs().min() > 0
