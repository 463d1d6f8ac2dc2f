"""Tasks of one long text in columns and windows, and the adding problem."""

import functools
import math

import numpy as np
import pytest
import torch

from anharmonic.data import StreamTask, TokenStream
from anharmonic.data.answers import trivial_score
from anharmonic.data.synthetic import AddingProblem, draw_adding
from anharmonic.testing import task_checks


class Letters(StreamTask):
    """Three texts drawn at random."""

    name = "letters"
    metric = "bits_per_character"
    input_size = output_size = 5
    source, licence = "here", "none needed"
    noun = "character"
    reading = {"embedding_size": 3}  # noqa: RUF012

    def __init__(self, window=7):
        self.window = window
        self.sizes = {"train": 400, "valid": 200, "test": 201}

    def _texts(self):
        gen = torch.Generator().manual_seed(0)
        return tuple(torch.randint(5, (n,), generator=gen) for n in self.sizes.values())


@pytest.mark.parametrize("check", list(dict(task_checks(lambda: None))))
def test_contract(check):
    # Windows of seven letters of five may come twice.
    dict(task_checks(functools.partial(Letters, 40)))[check]()


@pytest.mark.parametrize(("size", "window"), [(1, 7), (6, 1), (33, 100)])
def test_windows_joined_are_the_text(size, window):
    text, steps = torch.arange(400), 399 // size
    batches = TokenStream(text, window).batches(size)
    x, y = (torch.cat([getattr(batch, key) for batch in batches], dim=1) for key in "xy")
    assert len(batches) == math.ceil(steps / window)
    assert torch.equal(x.flatten(), text[: size * steps]) and torch.equal(y, x + 1)
    assert all(batch.x.shape[1] == window for batch in list(batches)[:-1])
    (batch,) = TokenStream(torch.arange(3), 5).batches(64)  # shorter than the batch
    assert batch.x.tolist() == [[0], [1]]
    assert TokenStream(torch.arange(3), 5).take(torch.tensor([1])).y.tolist() == [[2]]


def test_evaluation_is_in_columns_of_its_own():
    loaders = Letters().loaders(0, 3)
    assert loaders.train(0)[0].x.shape == (3, 7) and loaders.test[0].x.shape == (10, 7)
    assert Letters().summary() == (
        "letters: 801 characters (400 train, 200 valid, 201 test), windows of 7, "
        "a vocabulary of 5, one of 5 classes per step"
    )


def test_the_trivial_answer_knows_how_frequent_letters_are():
    task = Letters()
    score = trivial_score(task, task.loaders(0, 4))
    assert math.log2(5) * 0.99 < score < math.log2(5) * 1.03


def test_errors():
    with pytest.raises(ValueError, match=r"tokens must be \[N\] of two words or more; got shape"):
        TokenStream(torch.zeros(1, 5), 5)
    with pytest.raises(ValueError, match="order must be None for a text"):
        TokenStream(torch.arange(5), 2).batches(2, torch.arange(5))
    with pytest.raises(ValueError, match="window must be an int >= 1"):
        TokenStream(torch.arange(5), 0)


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
