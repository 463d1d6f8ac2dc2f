"""Tasks that break one promise each: the check of that promise fails, and says so."""

import numpy as np
import pytest
import torch

from anharmonic import Adjacency
from anharmonic.data import GraphBatch, SequenceDataset, Splits, Task
from anharmonic.testing import check_task, task_checks
from anharmonic.testing.tasks import _samples


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


def misstated(self):
    return Good._build(self)._replace(test=self._part(2, 19))


def globally_random(self):
    np.random.random()  # noqa: NPY002
    return Good._build(self)


def unordered(self, seed, epoch, batch_size):
    return self.splits().train.batches(batch_size)


def seeded_evaluation(self, seed, batch_size):
    valid = self.splits().valid.batches(batch_size, torch.arange(20).roll(seed))
    return Good.loaders(self, seed, batch_size)._replace(valid=valid)


BROKEN = {
    "sizes_are_those_stated": {"_build": misstated},
    "batches_have_the_shapes_stated": {"input_size": 2},
    "parts_share_no_sample": {"shift": 0.0},
    "order_is_that_of_seed_and_epoch": {"_train_batches": unordered},
    "evaluation_is_fixed": {"loaders": seeded_evaluation},
    "global_random_state_stays": {"_build": globally_random},
}


def test_a_task_that_keeps_its_promises_passes():
    check_task(Good)


def test_graphs_of_equal_nodes_differ_by_their_edges():
    x, membership = torch.ones(4, 1), torch.tensor([0, 0, 1, 1])
    for edges, alike in (([[0, 2, 3], [1, 3, 2]], False), ([[0, 2], [1, 3]], True)):
        graph = Adjacency(torch.tensor(edges), 4)
        batch = GraphBatch(x, graph, torch.zeros(2), None, membership, num_graphs=2)
        first, second = _samples(batch)
        assert (first == second) == alike
    assert len(_samples(GraphBatch(x, graph, torch.zeros(1), None, None))) == 1


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found(name):
    checks = dict(task_checks(type("Broken", (Good,), BROKEN[name])))
    assert set(checks) == set(BROKEN)
    with pytest.raises(AssertionError, match=r"(?s)Expected .*; got "):
        checks[name]()
