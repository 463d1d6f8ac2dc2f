import pytest
import torch

from anharmonic.data.base import Batch, Batches
from anharmonic.data.synthetic import AddingProblem
from anharmonic.train.evaluate import evaluate


class Noisy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x, lengths):
        assert not torch.is_grad_enabled()
        return self.dropout(x[:, 0])


def test_whole_set_without_dropout():
    model = Noisy()
    sizes = [3, 1]
    batches = Batches(
        2, lambda i: Batch(torch.full((sizes[i], 1, 1), 2.0 + i), torch.zeros(sizes[i], 1), None)
    )
    state = torch.get_rng_state()
    value = evaluate(model, batches, AddingProblem(), torch.device("cpu"))
    assert value.metric == value.loss == pytest.approx((3 * 4 + 9) / 4)
    assert model.training
    assert torch.equal(state, torch.get_rng_state())


def test_mode_comes_back_after_an_error():
    model = Noisy()

    def broken(index):
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        evaluate(model, Batches(1, broken), AddingProblem(), torch.device("cpu"))
    assert model.training
