import torch

from anharmonic.data.base import Batch
from anharmonic.train.loop import with_noise


def test_noise_has_the_stated_sizes():
    torch.manual_seed(0)
    x = torch.full((200, 50, 3), 2.0)
    batch = Batch(x, torch.zeros(200, 1), None)
    added = with_noise(batch, 0.5, 0.0).x - x
    assert abs(float(added.std()) - 0.5) < 0.01 and abs(float(added.mean())) < 0.02
    factor = with_noise(batch, 0.0, 0.1).x / x
    assert float(factor.std(dim=1).max()) < 1e-6
    assert abs(float(factor[:, 0].std()) - 0.1) < 0.01
    assert float(factor[:, 0].std(dim=1).mean()) > 0.05  # every channel has its own
    assert torch.equal(batch.x, torch.full((200, 50, 3), 2.0))


def test_without_noise_nothing_is_drawn():
    batch = Batch(torch.ones(2, 3, 1), torch.zeros(2, 1), None)
    state = torch.get_rng_state()
    assert with_noise(batch, 0.0, 0.0) is batch
    assert torch.equal(state, torch.get_rng_state())
