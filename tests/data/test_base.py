import pytest
import torch

from anharmonic.data.base import SequenceDataset, Splits, Task, seeded_rng


class Counting(Task):
    name = "counting"
    target = "class"
    readout = "last"
    metric = "accuracy"

    def __init__(self):
        self.built = 0

    def _build(self):
        self.built += 1
        return Splits(*(SequenceDataset(torch.zeros(7, 2, 1), torch.arange(7)) for _ in range(3)))


def order(task, seed, epoch):
    return torch.cat([b.y for b in task.loaders(seed, 3).train(epoch)]).tolist()


def test_training_order_is_a_function_of_seed_and_epoch():
    task = Counting()
    assert order(task, 0, 0) == order(task, 0, 0) == order(Counting(), 0, 0)
    orders = {tuple(order(task, seed, epoch)) for seed in range(3) for epoch in range(3)}
    assert len(orders) == 9
    assert all(sorted(one) == list(range(7)) for one in orders)  # a last smaller batch included
    assert [batch.y.tolist() for batch in task.loaders(5, 4).test] == [[0, 1, 2, 3], [4, 5, 6]]
    assert task.built == 1


def test_stream_depends_on_purpose_and_every_number():
    draws = {
        float(seeded_rng(purpose, *numbers).random())
        for purpose in ("a", "b")
        for numbers in ((), (0, 1), (1, 0), (1, 1))
    }
    assert len(draws) == 8


def test_bad_numbers_are_refused():
    task = Counting()
    with pytest.raises(ValueError, match="batch_size must be an int >= 1; got batch_size=0"):
        task.loaders(0, 0)
    with pytest.raises(ValueError, match=r"seed must be an int in \[0, 2\*\*32\); got seed=-1"):
        task.loaders(-1, 1)
    with pytest.raises(ValueError, match="epoch must be an int"):
        task.loaders(0, 1).train(-1)
    with pytest.raises(ValueError, match=r"a number of a stream must be an int in \[0, 2\*\*32\)"):
        seeded_rng("order", 2**32)


def test_a_task_without_training_data_must_make_its_own_batches():
    class Empty(Counting):
        def _build(self):
            return super()._build()._replace(train=None)

    with pytest.raises(NotImplementedError, match="Empty must make its own"):
        Empty().loaders(0, 1).train(0)
