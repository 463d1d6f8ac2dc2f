"""Tasks that break one promise each: the check of that promise fails, and says so."""

import numpy as np
import pytest
import torch

from anharmonic.data import SequenceDataset, Splits, Task
from anharmonic.testing import check_task, task_checks


class Good(Task):
    """Sequences that count on, which keeps every promise."""

    name = "good"
    target = "class"
    readout = "last"
    metric = "accuracy"
    input_size = 1
    output_size = 3
    shift = 1000.0

    def __init__(self):
        self.sizes = {"train": 40, "valid": 20, "test": 20}

    def _part(self, number, count):
        x = torch.arange(count * 4.0).view(count, 4, 1) + self.shift * number
        return SequenceDataset(x, torch.arange(count) % 3)

    def _build(self):
        return Splits(*(self._part(k, count) for k, count in enumerate(self.sizes.values())))


class Misstated(Good):
    def _build(self):
        return super()._build()._replace(test=self._part(2, 19))


class Misshapen(Good):
    input_size = 2


class Overlapping(Good):
    shift = 0.0


class Unordered(Good):
    def _train_batches(self, seed, epoch, batch_size):
        return self.splits().train.batches(batch_size)


class SeededEvaluation(Good):
    def loaders(self, seed, batch_size):
        order = torch.arange(20).roll(seed)
        valid = self.splits().valid.batches(batch_size, order)
        return super().loaders(seed, batch_size)._replace(valid=valid)


class GloballyRandom(Good):
    def _build(self):
        np.random.random()  # noqa: NPY002
        return super()._build()


BROKEN = {
    "sizes_are_those_stated": Misstated,
    "batches_have_the_shapes_stated": Misshapen,
    "parts_share_no_sample": Overlapping,
    "order_is_that_of_seed_and_epoch": Unordered,
    "evaluation_is_fixed": SeededEvaluation,
    "global_random_state_stays": GloballyRandom,
}


def test_a_task_that_keeps_its_promises_passes():
    check_task(Good)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found(name):
    checks = dict(task_checks(BROKEN[name]))
    assert set(checks) == set(BROKEN)
    with pytest.raises(AssertionError, match=r"(?s)Expected .*; got "):
        checks[name]()
