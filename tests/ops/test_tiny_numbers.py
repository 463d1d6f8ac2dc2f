"""Numbers near the smallest of their type become 0 in compiled code, and only there."""

import pytest
import torch

import anharmonic as ah
from anharmonic.ops import library

pytestmark = pytest.mark.skipif(not library.available(), reason="no compiled library")


def halve(u, h, w):
    return 0.5 * h + u * w["one"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fading_state_ends_at_zero(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x = torch.zeros(145, 64, 4)
        x[0] = 1.0
        output, _ = ah.recurrence(halve, compiled=True)(
            x, torch.zeros(64, 4), {"one": torch.ones(4)}
        )
    finally:
        torch.set_num_threads(before)
    assert torch.equal(output[:127, 0, 0], 0.5 ** torch.arange(127.0))
    assert (output[127:] == 0).all()  # 2^-127 is below the smallest normal number
    assert torch.tensor(2.0**-126) * 0.5 > 0  # the caller's mode is as before


@pytest.mark.parametrize("name", ["CoRNN", "LEM", "UnICORNN"])
def test_gradients_hold_no_such_numbers(name):
    torch.manual_seed(0)
    layer = getattr(ah, name)(3, 8)
    x = torch.randn(3000, 2, 3, requires_grad=True)
    layer(x)[0][-1].sum().backward()
    size = x.grad.abs()
    assert size[-1].max() > 0 and not ((size > 0) & (size < torch.finfo().tiny)).any()
