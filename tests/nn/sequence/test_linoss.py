"""LinOSS against its closed forms: eigenvalues, a scan, the oscillation it discretises."""

import copy
import math

import pytest
import torch

import anharmonic as ah
from anharmonic.testing import check_sequence_layer

pytestmark = pytest.mark.usefixtures("loops")
FORMS = [
    {"scheme": "implicit"},
    {"scheme": "implicit-explicit"},
    {"scheme": "implicit-explicit", "damping": True},
]


def make(**options):
    torch.manual_seed(0)
    return ah.LinOSS(3, 6, **{"dtype": torch.float64, **options})


def matrices(layer):
    """The step of every oscillator as M [H, 2, 2] for (z, y), and its share of the drive."""
    step, A, inverse, *_ = layer.prepare(layer.layer_weights())
    rows = torch.stack([inverse, -step * A * inverse, step * inverse, 1 - step**2 * A * inverse])
    return rows.t().view(-1, 2, 2), torch.stack([step * inverse, step**2 * inverse], dim=1)


def sequences(steps=40, batch=2):
    return torch.randn(steps, batch, 3, generator=torch.Generator().manual_seed(1)).double()


@pytest.mark.parametrize("options", FORMS)
@pytest.mark.parametrize("value", [None, -3.0, 0.0, 1.0, 1e4])
def test_eigenvalues(options, value):
    """Those of the closed form, of at most 1 whatever the weights are."""
    layer = make(**options)
    if value is not None:
        layer.raw_stiffness_l0.data.fill_(value)
    _, _, inverse, log_r, theta = layer.prepare(layer.layer_weights())
    found = torch.linalg.eigvals(matrices(layer)[0]).detach()
    # Where A is at its bound the two eigenvalues meet, and half of the digits are lost.
    assert found.abs().max() <= 1 + 1e-7
    if value is None:
        right = torch.polar(log_r.exp(), theta)[:, None].expand(-1, 2)
        torch.testing.assert_close(found.abs(), right.abs())
        torch.testing.assert_close(found.angle().abs(), right.angle())
        torch.testing.assert_close(inverse.sqrt(), right[:, 0].abs())
    assert options != {"scheme": "implicit-explicit"} or (inverse == 1).all()


@pytest.mark.parametrize("options", FORMS)
def test_a_scan_gives_what_the_loop_gives(options):
    layer, x = make(**options), sequences(15)
    M, share = matrices(layer)
    w = layer.layer_weights()
    drive = torch.nn.functional.linear(x, w.weight_ih, w.bias)[..., None] * share  # [T, B, H, 2]
    powers = torch.stack([torch.linalg.matrix_power(M, n) for n in range(len(x))])
    sums = [
        torch.einsum("nhij,nbhj->bhi", powers[:t].flip(0), drive[:t]) for t in range(1, len(x) + 1)
    ]
    output, last = layer(x)
    torch.testing.assert_close(output, torch.stack(sums)[..., 1], rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(last.z[0], sums[-1][..., 0], rtol=1e-11, atol=1e-12)


def test_small_steps_are_an_oscillation():
    layer = ah.LinOSS(1, 1, scheme="implicit-explicit", dtype=torch.float64)
    step, steps, one = 1e-3 / (1 + 1e-3), 3000, torch.ones(1, 1, 1).double()
    layer.raw_step_l0.data.fill_(math.log(1e-3))  # its sigmoid is the step
    layer.raw_stiffness_l0.data.fill_(4.0)
    output, _ = layer(torch.zeros(steps, 1, 1).double(), (one, 0 * one))
    time = step * torch.arange(1, steps + 1)
    assert (output[:, 0, 0] - torch.cos(2 * time)).abs().max() < 3e-3


def test_paired_neurons_share_their_oscillator():
    layer = make(paired=True)
    for part in layer.prepare(layer.layer_weights()):
        assert torch.equal(part[:3], part[3:])


def test_damped_oscillators_start_on_the_ring():
    torch.manual_seed(0)
    layer = ah.LinOSS(1, 4000, scheme="implicit-explicit", damping=True, dtype=torch.float64)
    values = torch.linalg.eigvals(matrices(layer)[0]).detach()
    radius = values.abs()
    assert 0.9 - 1e-9 < radius.min() and radius.max() < 1 + 1e-9
    assert float((radius**2).mean()) == pytest.approx((0.81 + 1) / 2, abs=0.005)
    assert float(values.angle().abs().mean()) == pytest.approx(math.pi / 2, abs=0.05)


@pytest.mark.parametrize("options", FORMS)
def test_in_a_gap_oscillators_swing_freely(options):
    layer, x = make(**options, bias=False), sequences(3)
    counts = torch.tensor([2, 1, 4])
    output, last = layer(x, elapsed=counts[:, None].expand(3, 2).double())
    filled, ends = torch.zeros(7, 2, 3).double(), counts.cumsum(0) - 1
    filled[ends] = x
    whole, end = layer(filled)
    torch.testing.assert_close(output, whole[ends], rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(tuple(last), tuple(end), rtol=1e-10, atol=1e-11)
    nothing, half = torch.zeros(2, 2, 3).double(), torch.full((2, 2), 0.5).double()
    halves, _ = layer(nothing, last, elapsed=half)
    torch.testing.assert_close(halves[-1], layer(nothing, last)[0][0], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("options", FORMS)
def test_slow_oscillators_swing_through_long_gaps(options):
    layer, x = make(**options, bias=False), sequences(2)
    layer.raw_step_l0.data.fill_(-6.0)  # a period of about 20,000 steps
    layer.raw_stiffness_l0.data.fill_(0.01)
    gaps = torch.tensor([1.0, 300.0])[:, None].expand(2, 2).double()
    filled = torch.zeros(301, 2, 3).double()
    filled[0], filled[-1] = x
    output, whole = layer(x, elapsed=gaps)[0][-1], layer(filled)[0][-1]
    torch.testing.assert_close(output, whole, rtol=1e-5, atol=1e-9)
    right = torch.autograd.grad(output.sum(), list(layer.parameters()))
    single = copy.deepcopy(layer).float()
    output = single(x.float(), elapsed=gaps.float())[0][-1]
    found = torch.autograd.grad(output.sum(), list(single.parameters()))
    for one, other in zip(found, right, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("options", FORMS)
@pytest.mark.parametrize("value", [-100.0, 100.0])
def test_steps_that_vanish_or_are_whole(options, value):
    layer = ah.LinOSS(3, 6, **options)  # in float32
    layer.raw_step_l0.data.fill_(value)
    output, _ = layer(torch.ones(20, 2, 3))
    output.sum().backward()
    assert all(part.isfinite().all() for part in (output, *(p.grad for p in layer.parameters())))


def test_block_is_its_equation():
    torch.manual_seed(0)
    block = ah.LinOSSBlock(4, 3, dtype=torch.float64)
    x = torch.randn(9, 2, 4).double()
    v = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, correction=0) + 1e-5).sqrt()
    y, _ = block.oscillators(v)
    r = torch.nn.functional.gelu(y @ block.readout.weight.t() + block.direct * v)
    a, b = (r @ block.gate.weight.t() + block.gate.bias).chunk(2, dim=-1)
    torch.testing.assert_close(block(x)[0], x + a * torch.sigmoid(b))


def test_norm_over_a_batch_counts_valid_steps_only():
    torch.manual_seed(0)
    block = ah.LinOSSBlock(4, 3, norm="batch", batch_first=True, dtype=torch.float64)
    clean, lengths = torch.randn(2, 9, 4).double(), torch.tensor([9, 5])
    dirty = clean.clone()
    dirty[1, 5:] = 1e6
    (output, state), (other, same) = (block(x, lengths=lengths) for x in (clean, dirty))
    assert torch.equal(output[1, :5], other[1, :5]) and torch.equal(output[0], other[0])
    assert torch.equal(state.y, same.y)


@pytest.mark.parametrize("options", FORMS)
def test_a_constant_input_grows_by_the_inverse_of_the_least_stiffness(options):
    layer, published = make(bias=False, **options), make(bias=False, min_stiffness=0.0, **options)
    x = torch.full((4000, 1, 3), 1 / 3, dtype=torch.float64)
    largest = []
    for one in (layer, published):
        with torch.no_grad():
            one.raw_stiffness_l0.fill_(-1)
            one.weight_ih_l0.fill_(1)
            if options.get("damping"):
                one.raw_damping_l0.fill_(0)
            largest.append(one(x)[0].abs().max())
    # The implicit scheme comes to rest at 1 / A; without damping the response swings to twice that.
    assert 90 < largest[0] < 210
    assert options.get("damping") or largest[1] > 1e6
    network = ah.LinOSSNetwork(2, 4, min_stiffness=0.5)
    assert {block.oscillators.min_stiffness for block in network.blocks} == {0.5}


def test_dropout_is_one_mask_per_sequence():
    torch.manual_seed(0)
    block = ah.LinOSSBlock(20, 4, dropout=0.5)
    x = torch.randn(30, 2, 20)
    left_out = (block(x)[0] == x).all(0)  # behind the gate
    assert 0 < left_out[0].sum() < 20 and not torch.equal(left_out[0], left_out[1])


@pytest.mark.slow  # In the fast suite LinOSSNetwork passes it: see tests/contracts.
@pytest.mark.parametrize("options", [*FORMS, {"num_layers": 2, "bidirectional": True}])
def test_the_layer_passes_the_suite_of_layers(options):
    def made(*args, **given):
        layer = ah.LinOSS(*args, **options | given)
        # Uneven times multiply roundings by about 1 / sin² θ. With half the stiffness θ stays
        # away from π.
        for name, parameter in layer.named_parameters():
            if name.startswith("raw_stiffness"):
                parameter.data *= 0.5
        return layer

    check_sequence_layer(made)


def test_every_direction_walks_through_blocks_of_its_own():
    both = ah.LinOSSNetwork(3, 4, 2, bidirectional=True)
    back = ah.LinOSSNetwork(3, 4, 2)
    back.encoder.load_state_dict(both.encoder.state_dict())
    for k, block in enumerate(back.blocks):
        block.load_state_dict(both.blocks[2 * k + 1].state_dict())
    x = torch.randn(20, 2, 3)
    torch.testing.assert_close(both(x)[0][..., 4:], back(x.flip(0))[0].flip(0))


def test_explain_tells_of_the_blocks():
    network = ah.LinOSSNetwork(3, 4, dtype=torch.float64)
    assert "LinOSS was not called yet" in network.explain()
    with ah.use_backend("auto"):
        network(sequences())
    assert "at every step" in network.explain()
