"""ResonatorBank: the sine transform it computes, its pools, uneven sampling, fixed banks."""

import math

import pytest
import torch

import anharmonic as ah

F64 = torch.float64


def test_undamped_it_is_the_windowed_sine_transform():
    # y'' = w^2 (u - y) from rest: y(t) = w * integral of u(t - s) sin(w s); u is held over steps.
    w, T = 0.21, 80
    bank = ah.ResonatorBank(1, 1, bias=False, q=(1e9, 1e9), dtype=F64)
    with torch.no_grad():
        bank.weight_ih_l0.fill_(1.0)
        bank.log_frequency_l0.fill_(math.log(w))
        x = torch.randn(T, 1, 1, dtype=F64, generator=torch.Generator().manual_seed(0))
        y = bank(x)[0][-1].item()
    s = torch.arange(T, dtype=F64)  # the sample held from s to s + 1 before the end
    weights = torch.cos(w * s) - torch.cos(w * (s + 1))
    # q = 1e9 is as good as no damping over 80 samples: 80 w / 2e9 = 1e-8 of y.
    assert y == pytest.approx((x.flatten().flip(0) * weights).sum().item(), abs=1e-7)


@pytest.mark.parametrize("bias", [True, False])
def test_pools_are_those_of_the_responses(bias):
    torch.manual_seed(1)
    bank = ah.ResonatorBank(2, 5, bias=bias, dt=0.7, batch_first=True, dtype=F64)
    x, lengths = torch.randn(3, 20, 2, dtype=F64), torch.tensor([20, 1, 13])
    biases = 0.1 * torch.randn(2, 2, 5, dtype=F64)
    found = bank.pool(x, biases, lengths)
    for n, length in enumerate(lengths.tolist()):
        state, r = None, []
        for t in range(length):
            _, state = bank.step(x[n, t], state)
            r.append(torch.stack([state.y[0], state.z[0]]))
        r = torch.stack(r)
        over = r[:, :, None] - biases
        share, excess = (over > 0).to(F64).mean(0), over.clamp(min=0).mean(0)
        want = (share, excess, r.amax(0), r.square().mean(0).sqrt())
        want = torch.cat([part.flatten() for part in want])
        torch.testing.assert_close(found[n], want, rtol=1e-12, atol=1e-13)
    with torch.no_grad():  # in the library, where there is one
        torch.testing.assert_close(bank.pool(x, biases, lengths), found, rtol=1e-12, atol=1e-13)


def test_a_fixed_bank_has_nothing_to_train_but_passes_gradients_on():
    bank = ah.ResonatorBank(1, 4, trainable=False)
    assert not any(p.requires_grad for p in bank.parameters())
    x = torch.randn(5, 2, 1, requires_grad=True)
    bank(x)[0].sum().backward()
    assert x.grad.abs().sum() > 0
