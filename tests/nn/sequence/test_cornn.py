"""coRNN: stability warnings, trainable scalars, initial weights."""

import math

import pytest
import torch

import anharmonic as ah

F64 = torch.float64


def test_trainable_scalars_start_as_given_and_learn():
    layer = ah.CoRNN(
        2,
        3,
        num_layers=2,
        dt=0.2,
        frequency=1.5,
        damping=0.8,
        trainable_dt=True,
        trainable_frequency=True,
        trainable_damping=True,
        dtype=F64,
    )
    fixed = ah.CoRNN(2, 3, num_layers=2, dt=0.2, frequency=1.5, damping=0.8, dtype=F64)
    assert set(layer.state_dict()) - set(fixed.state_dict()) == {
        "raw_dt",
        "raw_frequency",
        "raw_damping",
    }
    fixed.load_state_dict({k: v for k, v in layer.state_dict().items() if "raw" not in k})
    x = torch.randn(9, 2, 2, dtype=F64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(layer(x)[0], fixed(x)[0], rtol=1e-13, atol=1e-14)
    layer(x)[0].square().sum().backward()
    assert all(getattr(layer, f"raw_{n}").grad.abs() > 0 for n in ("dt", "frequency", "damping"))


def test_scales_of_the_initial_weights():
    torch.manual_seed(0)
    bound = 1 / math.sqrt(3 + 2 * 50)
    layer = ah.CoRNN(3, 50, input_scale=30.0, recurrent_scale=0.1)
    found = {name: float(p.detach().abs().max()) / bound for name, p in layer.named_parameters()}
    assert 28 < found["weight_ih_l0"] <= 30 and 20 < found["bias_l0"] <= 30
    assert 0.09 < found["weight_hy_l0"] <= 0.1 and 0.09 < found["weight_hz_l0"] <= 0.1
    torch.manual_seed(1)
    plain = ah.CoRNN(3, 50)
    torch.manual_seed(1)
    same = ah.CoRNN(3, 50, input_scale=1.0, recurrent_scale=1.0)
    assert all(
        torch.equal(a, b) for a, b in zip(plain.parameters(), same.parameters(), strict=True)
    )
    with pytest.raises(ValueError, match=r"input_scale.*-1"):
        ah.CoRNN(3, 50, input_scale=-1.0)
