import numpy as np
import pytest
import torch

from anharmonic.data.synthetic import AddingProblem, draw_adding


@pytest.mark.parametrize("length", [2, 3, 10])
def test_two_marks_one_anywhere_in_each_half_and_their_sum(length):
    x, y = draw_adding(np.random.default_rng(0), 500, length)
    marks = x[:, :, 1]
    assert set(marks.unique().tolist()) <= {0.0, 1.0}
    assert (marks[:, : length // 2].sum(1) == 1).all()
    assert (marks[:, length // 2 :].sum(1) == 1).all()
    assert torch.equal((x[:, :, 0] * marks).sum(1, keepdim=True), y)
    assert x.dtype == y.dtype == torch.float32
    # 500 draws over 5 places: mean 100, standard deviation 9; six of them either way.
    assert length < 10 or ((46 < marks.sum(0)) & (marks.sum(0) < 154)).all()


def test_always_one_has_an_error_of_a_sixth():
    task = AddingProblem(length=4, test_size=20000)
    y = torch.cat([batch.y for batch in task.loaders(0, 1000).test])
    # The variance of the sum is 1/6; over 20000 draws its standard error is 0.0014.
    assert float((y - 1).square().mean()) == pytest.approx(1 / 6, abs=6 * 0.0014)


def test_evaluation_depends_on_data_seed():
    one, other = (AddingProblem(length=6, data_seed=seed).loaders(0, 5).valid[0] for seed in (1, 2))
    assert not torch.equal(one.x, other.x)
    task = AddingProblem(length=30, valid_size=7, test_size=8, steps_per_epoch=2)
    assert task.sizes == {"train": 100, "valid": 7, "test": 8}
