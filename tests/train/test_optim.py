import pytest
import torch

from anharmonic.train import Run
from anharmonic.train.optim import learning_rate, make_optimizer


def test_learning_rate():
    run = Run("adding", "LEM", lr=0.2, lr_drop_epoch=3)
    assert [learning_rate(run, epoch) for epoch in (0, 2, 3, 9)] == pytest.approx(
        [0.2, 0.2, 0.02, 0.02]
    )
    assert learning_rate(Run("adding", "LEM", lr=0.2), 1000) == 0.2


def test_optimizer_is_adam_with_the_runs_numbers():
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    twin = torch.nn.Linear(3, 2)
    twin.load_state_dict(model.state_dict())
    ours = make_optimizer(Run("adding", "LEM", lr=0.1, weight_decay=0.5), model)
    plain = torch.optim.Adam(twin.parameters(), lr=0.1, weight_decay=0.5)
    for _ in range(3):
        for net, optimizer in ((model, ours), (twin, plain)):
            optimizer.zero_grad()
            net(torch.ones(1, 3)).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(model.weight, twin.weight)
