"""Sequences through a stack, whatever the equation: time, masks, shapes, and what is kept."""

import pytest
import torch

from anharmonic import nn, ops
from anharmonic.ops import backend as memory
from anharmonic.ops.reference import TILE

every = pytest.mark.parametrize("kernel", ["cornn", "unicornn", "lem"])
both = pytest.mark.parametrize("bidirectional", [False, True])


# ---- time between samples, and masks ----
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


def test_the_last_output_is_where_each_direction_ends(make_stack):
    stack = make_stack("lem", {}, bidirectional=True, steps=5, layers=2, given=())
    every, y, _ = stack.call()
    last, *_ = stack.call(output="last")
    assert torch.equal(last, torch.cat([every[-1, :, :4], every[0, :, 4:]], dim=1))
    assert torch.equal(last, torch.cat([y[2], y[3]], dim=1))


# ---- what does not fit is one error, whatever the backend: compiled code trusts its sizes ----
WEIGHTS = [ops.LEMWeights(torch.ones(12, f), torch.ones(9, 3), torch.eye(3), None) for f in (2, 3)]
ZERO = torch.zeros(2, 4, 3)
RIGHT = {"x": torch.randn(5, 4, 2), "weights": WEIGHTS, "y0": ZERO, "z0": ZERO}
BAD = {
    "no steps": ({"x": torch.zeros(0, 4, 2)}, r"x must be .*T, B, F"),
    "no batch": ({"x": torch.zeros(5, 0, 2)}, r"y0 must have shape \[2, 0, 3\]"),
    "flat": ({"x": torch.zeros(5, 4)}, r"x must be .*T, B, F"),
    "one state": ({"y0": torch.zeros(1, 4, 3)}, r"y0 must have shape \[2, 4, 3\]"),
    "broadcast state": ({"z0": torch.zeros(2, 1, 3)}, r"z0 must have shape \[2, 4, 3\]"),
    "one weight": ({"weights": WEIGHTS[:1]}, r"y0 must have shape \[1, 4, 3\]"),
    "wide": ({"weights": WEIGHTS[::-1]}, r"weights\[0\].weight_ih must be .*shape \[12, 2\]"),
    "missing": (
        {"weights": [WEIGHTS[0], WEIGHTS[1]._replace(weight_zh=None)]},
        r"weights\[1\].weight_zh must be .*shape \[3, 3\]",
    ),
    "elapsed": ({"elapsed": torch.ones(5, 1)}, r"elapsed must have shape \[5, 4\]"),
    "masks": ({"masks": []}, "masks must be .*1; got 0"),
    "mask": ({"masks": [torch.ones(3)]}, r"masks\[0\] must have shape \[4, 3\]"),
    "trained mask": (
        {"masks": [torch.ones(4, 3, requires_grad=True)]},
        r"masks\[0\] must be .*detach",
    ),
    "short": ({"lengths": torch.tensor([5])}, r"lengths must be .*\[4\]"),
    "int32": ({"lengths": torch.ones(4, dtype=torch.int32)}, "lengths must be .*int64"),
    "long": ({"lengths": torch.tensor([5, 6, 1, 1])}, r"lengths must be in \[0, 5\]"),
    "negative": ({"lengths": torch.tensor([5, 4, -1, 1])}, r"lengths must be in \[0, 5\]"),
}


@pytest.mark.covering
@pytest.mark.parametrize("backend", ops.available_backends("lem"))
@pytest.mark.parametrize("name", BAD)
def test_refused(name, backend):
    changes, words = BAD[name]
    with pytest.raises(ValueError, match=words):
        ops.lem(**RIGHT | changes, dt=0.5, backend=backend)


@pytest.mark.parametrize("backend", [b for b in ops.available_backends("lem") if b != "triton"])
def test_an_input_without_features(backend):  # on the CPU
    weight = WEIGHTS[0]._replace(weight_ih=torch.zeros(12, 0))
    zero, call = torch.zeros(1, 4, 3), {"dt": 0.5, "backend": backend}
    output, *_ = ops.lem(torch.zeros(5, 4, 0), [weight], zero, zero, **call)
    weight = weight._replace(weight_ih=torch.zeros(12, 1))
    right, *_ = ops.lem(torch.zeros(5, 4, 1), [weight], zero, zero, **call)
    torch.testing.assert_close(output, right)


def test_strided_lengths_are_read_as_they_are():
    lengths = torch.tensor([5, 0, 1, 0, 3, 0, 0, 0])[::2]
    strided, compact = (ops.lem(**RIGHT, dt=0.5, lengths=n) for n in (lengths, lengths.clone()))
    assert all(map(torch.equal, strided, compact))


def test_what_other_kernels_need():
    w = ops.UnICORNNWeights(torch.ones(3, 2), torch.ones(3), None, torch.zeros(3))
    zero = torch.zeros(1, 4, 3)
    with pytest.raises(ValueError, match=r"dt must be .*1"):
        ops.unicornn(torch.ones(5, 4, 2), [w], zero, zero, dt=[0.1, 0.2], frequency=1.0)
    skewed = ops.SkewWeights(torch.ones(5, 2), torch.zeros(6, 3), None)
    with pytest.raises(ValueError, match=r"weights\[0\].weight_ih must be .*shape \[6, 2\]"):
        ops.skew(torch.ones(5, 4, 2), [skewed], zero, dt=0.1)
    skip = w._replace(weight_skip=torch.ones(3, 2))
    with pytest.raises(ValueError, match=r"weight_skip must be None"):
        ops.unicornn(torch.ones(5, 4, 2), [skip], zero, zero, dt=[0.1], frequency=1.0)


# ---- what is kept for the backward pass ----
@every
def test_chunked_needs_no_gradient_of_everything(make_stack, kernel):
    stack, gradients = make_stack(kernel), []
    leaf = stack.weights[-1][0]
    for policy in ("stored", "chunked"):
        loss = stack.loss(stack.call(memory=policy, backend="reference"))
        gradients += torch.autograd.grad(loss, leaf)
        for other in stack.leaves:
            other.requires_grad_(other is leaf)
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-13)


@every
def test_graph_is_forgotten_where_states_are_computed_again(make_stack, kernel, monkeypatch):
    monkeypatch.setattr(memory, "STORED_WITHOUT_OUTPUT", 100)

    def nodes(policy, output):
        results = stack.call(output=output, memory=policy, backend="reference")
        seen, todo = set(), [r.grad_fn for r in results if r is not None]
        while todo:
            node = todo.pop()
            if node is not None and node not in seen:
                seen.add(node)
                todo.extend(n for n, _ in node.next_functions)
        return len(seen)

    for steps in (2 * TILE, 4 * TILE):
        stack = make_stack(kernel, steps=steps)
        assert nodes("chunked", "none") < 60 and nodes("auto", "none") < 60
        assert nodes("stored", "none") > steps and nodes("auto", "all") > steps


def test_auto_stores_within_transforms(monkeypatch):
    monkeypatch.setattr(memory, "STORED_WITHOUT_OUTPUT", 1)
    weight = ops.LEMWeights(torch.ones(12, 1), torch.zeros(9, 3), torch.eye(3), None)
    zero = torch.zeros(1, 2, 3)

    def end(x, policy):
        return ops.lem(x, [weight], zero, zero, dt=0.5, output="none", memory=policy)[1].sum()

    x = torch.ones(5, 2, 1, requires_grad=True)
    (expected,) = torch.autograd.grad(end(x, "auto"), x)
    torch.testing.assert_close(torch.func.grad(lambda x: end(x, "auto"))(x.detach()), expected)
    with pytest.raises(ValueError, match="memory='chunked' needs plain autograd; got a transform"):
        torch.func.grad(lambda x: end(x, "chunked"))(x.detach())


@pytest.mark.parametrize("policy", ["chunked", "reversible"])
def test_second_derivatives_are_refused(make_stack, policy):
    """A loss linear in the output has a constant gradient: nothing else would tell."""
    stack = make_stack("unicornn", steps=10)
    loss = stack.loss(stack.call(memory=policy, backend="reference"))
    with pytest.raises(RuntimeError, match=r"second derivatives need every state.*'stored'"):
        torch.autograd.grad(loss, stack.x, create_graph=True)
    loss = stack.loss(stack.call(memory="stored", backend="reference"))
    (gradient,) = torch.autograd.grad(loss, stack.x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), stack.x)
    assert second.abs().max() > 0


def test_backward_within_autocast(make_stack):
    stack = make_stack("lem", dtype=torch.float32)
    words = {"memory": "chunked", "backend": "reference"}
    _, expected = stack.run(**words)
    loss = stack.loss(stack.call(**words))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = torch.autograd.grad(loss, stack.leaves)
    assert all(map(torch.equal, found, expected))


class OwnStepSize(nn.SequenceLayer):
    """Learns its step size, which is not among the weights of its step; may draw random numbers."""

    has_step_size = True
    dropped = 0.0

    def __init__(self, input_size, hidden_size, **options):
        super().__init__(input_size, hidden_size, compiled=False, **options)
        self.dt = torch.nn.Parameter(torch.tensor(0.3))
        self.make_parameters()

    def parameter_shapes(self, input_size):
        return {"weight_ih": (self.hidden_size, input_size)}

    def step_function(self, u, state, w, dt):
        u = torch.dropout(u, self.dropped, True) if self.dropped else u
        return nn.HiddenState(state.h + dt * torch.tanh(u - state.h))


def test_no_gradient_of_a_hidden_parameter_is_lost_and_no_number_drawn_again(monkeypatch):
    monkeypatch.setattr(memory, "STORED_WITHOUT_OUTPUT", 1)
    x, found = torch.ones(5, 2, 2), []
    for policy in ("stored", "auto"):
        torch.manual_seed(0)
        layer = OwnStepSize(2, 3, memory=policy)
        for layer.dropped in (0.0, 0.5):
            layer.dt.requires_grad_(not layer.dropped)  # each alone is a reason
            output, _ = layer(x, output="last")
            leaves = [p for p in layer.parameters() if p.requires_grad]
            found.append(torch.autograd.grad(output.sum(), leaves))
    assert [len(gradients) for gradients in found] == [2, 1, 2, 1]
    for auto, stored in zip(found[2:], found[:2], strict=True):
        assert all(map(torch.equal, auto, stored))
    layer.memory = "chunked"
    with pytest.raises(ValueError, match="random numbers"):
        layer(x)
    layer.dropped = 0.0
    layer(x)
    layer.dt.requires_grad_()
    with pytest.raises(ValueError, match="needs a gradient"):
        layer(x)
