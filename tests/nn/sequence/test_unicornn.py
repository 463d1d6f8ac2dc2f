"""UnICORNN: closed form, residual stacking, time scales, reversible memory."""

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
    """w = V = 0: y'' = -(tanh b + alpha y) from rest is y = -(tanh b / alpha)(1 - cos(wt))."""
    alpha, bias, end = 4.0, 0.7, 5.0
    errors = []
    for steps in (500, 1000, 2000):
        # h = dt * sigmoid(0) = dt / 2 is the time step.
        layer = ah.UnICORNN(1, 1, dt=2 * end / steps, frequency=alpha, dtype=F64)
        with torch.no_grad():
            for name, parameter in layer.named_parameters():
                parameter.fill_(bias if name == "bias_l0" else 0.0)
            output, _ = layer(torch.zeros(steps, 1, 1, dtype=F64))
        t = torch.arange(1, steps + 1, dtype=F64) * end / steps
        exact = -math.tanh(bias) / alpha * (1 - torch.cos(math.sqrt(alpha) * t))
        errors.append((output[:, 0, 0] - exact).abs().max().item())
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert errors[-1] < 2e-3
    assert all(0.9 < order < 1.1 for order in orders), orders


def test_residual_stacking_follows_the_equations():
    """Layer l > S adds the skip matrix times the output of level l - S - 1 (3.79)."""
    torch.manual_seed(0)
    skip, dt = 2, [0.3, 0.1, 0.4, 0.2]
    stack = ah.UnICORNN(2, 3, num_layers=4, dt=dt, skipped_layers=skip, dtype=F64)
    weights = stack.state_dict()
    names = {k for k in weights if "skip" in k}
    assert names == {"weight_skip_l2", "weight_skip_l3"}
    assert weights["weight_skip_l2"].shape == (3, 2)  # from the input
    assert weights["weight_skip_l3"].shape == (3, 3)
    x = noise(8, 2, 2)
    levels = [x]
    for k in range(4):
        drive = levels[k] @ weights[f"weight_ih_l{k}"].T + weights[f"bias_l{k}"]
        if k >= skip:
            drive = drive + levels[k - skip] @ weights[f"weight_skip_l{k}"].T
        h = dt[k] * torch.sigmoid(weights[f"timescale_l{k}"])
        y = z = torch.zeros(2, 3, dtype=F64)
        outputs = []
        for u in drive:
            z = z - h * (torch.tanh(weights[f"weight_hh_l{k}"] * y + u) + y)
            y = y + h * z
            outputs.append(y)
        levels.append(torch.stack(outputs))
    torch.testing.assert_close(stack(x)[0], levels[-1], rtol=1e-13, atol=1e-14)


def test_frozen_time_scales_are_buffers():
    layer = ah.UnICORNN(2, 3, trainable_timescales=False)
    assert "timescale_l0" in dict(layer.named_buffers())
    assert "timescale_l0" in layer.state_dict()
    assert "timescale_l0" not in dict(layer.named_parameters())


def test_initial_ranges():
    torch.manual_seed(0)
    layer = ah.UnICORNN(25, 400)
    bound = math.sqrt(2 / 65) * math.sqrt(3 / 25)
    assert 0.95 * bound < layer.weight_ih_l0.abs().max() <= bound
    assert layer.weight_hh_l0.min() >= 0 and 0.95 < layer.weight_hh_l0.max() <= 1
    assert not layer.bias_l0.any()
    assert 0.09 < layer.timescale_l0.abs().max() <= 0.1


@pytest.mark.parametrize("kind", [ah.UnICORNN, ah.UnICORNNCell])
def test_unstable_settings_warn(kind):
    with pytest.warns(ah.StabilityWarning) as caught:
        kind(2, 3, dt=0.5, frequency=100.0)
    (warning,) = caught
    text = str(warning.message)
    for word in ("h * sqrt(frequency) < 2", "dt=0.5", "frequency=100", "smaller dt"):
        assert word in text
    assert warning.filename == __file__


def test_tuned_settings_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ah.UnICORNN(1, 4, num_layers=3, dt=0.482, frequency=12.53)
        ah.UnICORNN(1, 4, num_layers=2, dt=[2.81e-5, 3.43e-2], frequency=0.0)


@pytest.mark.parametrize("options", [{}, {"skipped_layers": 2}, {"dropout": 0.5}], ids=str)
def test_reversible_layers(options, tmp_path):
    """On the grid: near what is stored, on packed input, with dropout, saved and loaded."""
    x = noise(150, 3, 2).requires_grad_()
    results = []
    for memory in ("stored", "reversible"):
        torch.manual_seed(0)
        layer = ah.UnICORNN(2, 5, 3, dt=0.2, dtype=F64, memory=memory, **options)
        output, state = layer(
            torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([150, 80, 3]))
        )
        loss = output.data.sin().sum() + sum(s.cos().sum() for s in state)
        gradients = torch.autograd.grad(loss, [x, *layer.parameters()])
        results.append((output.data, tuple(state), gradients))
    # 150 steps on a grid of spacing 2^-40, with weights below 1.
    torch.testing.assert_close(results[1], results[0], rtol=1e-9, atol=1e-9)
    layer.eval().save_pretrained(tmp_path / "layer")
    again = ah.from_pretrained(tmp_path / "layer").eval()
    assert again.memory == "reversible" and "memory='reversible'" in repr(again)
    assert torch.equal(again(x, output="last")[0], layer(x, output="last")[0])
    y, carried = layer(x[:70], output="none")[1]
    torch.testing.assert_close(
        layer(x[70:], (y, carried), output="last")[0], layer(x, output="last")[0],
        rtol=0, atol=1e-12,
    )  # fmt: skip


def test_scale_of_the_first_layer_and_spread_of_the_time_scales():
    torch.manual_seed(1)
    plain = ah.UnICORNN(3, 40, num_layers=2)
    torch.manual_seed(1)
    wide = ah.UnICORNN(3, 40, num_layers=2, input_scale=8.0, timescale_range=2.0)
    assert torch.equal(wide.weight_ih_l0, 8 * plain.weight_ih_l0)
    assert torch.equal(wide.weight_ih_l1, plain.weight_ih_l1)
    spread = torch.cat([wide.timescale_l0, wide.timescale_l1]).detach()
    assert 1.9 < spread.abs().max() <= 2.0
    with pytest.raises(ValueError, match=r"timescale_range.*-1"):
        ah.UnICORNN(3, 40, timescale_range=-1.0)
