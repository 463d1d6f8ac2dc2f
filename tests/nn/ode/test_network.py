"""The network for tables: its parts, gradients, storing, refusals."""

import pytest
import torch

import anharmonic as ah

pytest.importorskip("torchdiffeq", reason="solves need the extra 'ode'")


def rows(batch=6, features=5):
    return torch.randn(batch, features, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dynamics", ["skew", "unrestricted", "regular"])
def test_prediction_is_decoder_of_solution_of_encoder(dynamics):
    torch.manual_seed(0)
    model = ah.NeuralODENetwork(5, 2, hidden_size=4, dynamics=dynamics, width=8)
    x = rows()
    out = model(x)
    assert out.shape == (6, 2)
    torch.testing.assert_close(out, model.decoder(model.ode(model.encoder(x))))
    out.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_rows_do_not_mix_beyond_the_tolerance():
    torch.manual_seed(0)
    model = ah.NeuralODENetwork(5, 2, hidden_size=4, rtol=1e-9, atol=1e-9, dtype=torch.float64)
    x = rows().double()
    with torch.no_grad():
        torch.testing.assert_close(model(x[:1]), model(x)[:1], rtol=1e-6, atol=1e-7)
