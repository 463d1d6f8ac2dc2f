"""LEM: closed form, order in dt, bounded states, variants."""

import itertools
import math
import warnings

import pytest
import torch

import anharmonic as ah

F64 = torch.float64


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def test_closed_form_and_first_order():
    """Weights zero, biases B and C: z' = s1 (tanh B - z), z relaxes exponentially; y likewise."""
    b1, b2, bz, by, end = 0.3, -0.4, 0.9, -0.6, 4.0
    rate = {"z": 1 / (1 + math.exp(-b1)), "y": 1 / (1 + math.exp(-b2))}
    goal = {"z": math.tanh(bz), "y": math.tanh(by)}
    errors = []
    for steps in (200, 400, 800):
        layer = ah.LEM(1, 1, dt=end / steps, dtype=F64)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.zero_()
            layer.bias_l0.copy_(torch.tensor([b1, b2, bz, by]))
            output, state = layer(torch.zeros(steps, 1, 1, dtype=F64))
        t = torch.arange(1, steps + 1, dtype=F64) * end / steps
        exact = goal["y"] * (1 - torch.exp(-rate["y"] * t))
        errors.append((output[:, 0, 0] - exact).abs().max().item())
        assert abs(state.z.item() - goal["z"] * (1 - math.exp(-rate["z"] * end))) < 5 / steps
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert errors[-1] < 1e-3
    assert all(0.9 < order < 1.1 for order in orders), orders


@pytest.mark.parametrize("options", [{"dt": 1.0}, {"dt": 0.4}, {"dt": 0.9, "multiscale": False}])
def test_states_stay_within_one(options):
    torch.manual_seed(0)
    layer = ah.LEM(2, 8, dtype=F64, **options)
    state = None
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(std=5.0)
        for x_t in noise(400, 3, 2):
            _, state = layer.step(x_t, state)
            assert state.y.abs().max() <= 1 and state.z.abs().max() <= 1


def test_clipped_gates_keep_large_steps_bounded():
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # clipped gates need no warning: they end at 1
        layer = ah.LEM(2, 8, dt=1.9, gate_floor=0.0, dtype=F64)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(std=5.0)
        output, state = layer(noise(400, 3, 2))
    assert output.abs().max() <= 1 and state.z.abs().max() <= 1


def test_without_multiscale_is_constant_gates():
    """Gates whose sigmoid is 1 (bias 40) give what constant gates give."""
    torch.manual_seed(0)
    plain = ah.LEM(2, 3, dt=0.37, multiscale=False, dtype=F64)
    gated = ah.LEM(2, 3, dt=0.37, dtype=F64)
    with torch.no_grad():
        for parameter in gated.parameters():
            parameter.zero_()
        gated.weight_ih_l0[6:] = plain.weight_ih_l0
        gated.weight_hh_l0[6:] = plain.weight_hh_l0
        gated.weight_zh_l0.copy_(plain.weight_zh_l0)
        gated.bias_l0[:6] = 40.0
        gated.bias_l0[6:] = plain.bias_l0
    x = noise(12, 2, 2)
    torch.testing.assert_close(gated(x)[0], plain(x)[0], rtol=1e-12, atol=1e-14)


def test_gate_floor():
    """Gates pushed to zero stop at the floor."""
    floor, steps = 0.25, 5
    layer = ah.LEM(1, 1, gate_floor=floor, dtype=F64)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.bias_l0.copy_(torch.tensor([-50.0, -50.0, 1.0, 1.0]))
        output, _ = layer(torch.zeros(steps, 1, 1, dtype=F64))
    exact = math.tanh(1.0) * (1 - (1 - floor) ** torch.arange(1, steps + 1, dtype=F64))
    torch.testing.assert_close(output[:, 0, 0], exact, rtol=1e-13, atol=0)


def test_chrono_initialisation():
    torch.manual_seed(0)
    H, longest, dt = 500, 200, 0.5
    layer = ah.LEM(2, H, num_layers=2, dt=dt, chrono_length=longest)
    for k in (0, 1):
        bias = layer.state_dict()[f"bias_l{k}"]
        assert not bias[H:].any()
        units = torch.exp(-bias[:H])
        assert units.min() >= 1 and units.max() <= longest * dt - 1
        assert units.max() > 0.95 * (longest * dt - 1) and units.min() < 2
        # The leak dt * sigmoid(b) has time constants from about 2/dt to chrono_length steps.
        slowest = 1 / (dt * torch.sigmoid(bias[:H])).min()
        assert 0.95 * longest < slowest <= longest * (1 + 1e-4)


def test_initial_range():
    torch.manual_seed(0)
    for parameter in ah.LEM(4, 100).parameters():
        assert 0.09 < parameter.abs().max() <= 0.1


@pytest.mark.parametrize("kind", [ah.LEM, ah.LEMCell])
def test_large_dt_warns_and_runs(kind):
    with pytest.warns(ah.StabilityWarning) as caught:
        model = kind(2, 3, dt=1.9)
    (warning,) = caught
    assert "dt <= 1" in str(warning.message) and "dt=1.9" in str(warning.message)
    assert warning.filename == __file__
    model(torch.zeros(4, 2))


@pytest.mark.parametrize("dt, decays", [(1.9, True), (2.1, False)])
@pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
def test_linear_part_is_stable_below_two(dt, decays):
    """Without weights and gates z_n = (1 - dt) z_{n-1}."""
    layer = ah.LEM(1, 1, dt=dt, multiscale=False, bias=False, dtype=F64)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        start = torch.ones(1, 1, 1, dtype=F64)
        _, state = layer(torch.zeros(50, 1, 1, dtype=F64), (start, start))
    assert state.z.item() == pytest.approx((1 - dt) ** 50, rel=1e-10)
    assert (abs(state.z.item()) < 1) == decays
