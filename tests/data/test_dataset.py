"""Batches of sequences, and the order in which a task gives them."""

import pytest
import torch

from anharmonic.data.base import Splits, Task, seeded_rng
from anharmonic.data.dataset import Batch, SequenceDataset, step_mask

ENDS = torch.tensor([0, 1, 4, 6])


def ragged(y=None, **how):
    x = torch.arange(1.0, 13.0).reshape(6, 2)
    return SequenceDataset(x, torch.arange(3) if y is None else y, offsets=ENDS, **how)


def test_dense_batches_hold_every_sequence_once_in_order():
    data = SequenceDataset(torch.arange(10.0).reshape(5, 2, 1), torch.arange(5))
    batches = data.batches(2)
    assert [batch.x.shape[0] for batch in batches] == [2, 2, 1] and len(batches) == 3
    assert torch.equal(torch.cat([batch.x for batch in batches]), data.x)
    assert data.lengths is None and all(batch.lengths is None for batch in batches)
    order = torch.tensor([3, 1, 0, 4, 2])
    assert torch.equal(torch.cat([batch.y for batch in data.batches(3, order)]), order)


def test_ragged_batches_are_zero_padded_to_the_longest_of_the_batch():
    first, second = ragged().batches(2)
    assert first.lengths.tolist() == [1, 3]
    assert first.x.tolist() == [[[1, 2], [0, 0], [0, 0]], [[3, 4], [5, 6], [7, 8]]]
    assert second.x.tolist() == [[[9, 10], [11, 12]]] and second.y.tolist() == [2]
    values, classes = torch.arange(10.0, 16.0)[:, None], torch.arange(1, 7)
    y = ragged(values, per_step=True).take(torch.tensor([2, 0])).y
    assert y.tolist() == [[[14], [15]], [[10], [0]]] and y.dtype == torch.float32
    y = ragged(classes, per_step=True).take(torch.tensor([2, 1])).y
    assert y.tolist() == [[5, 6, 0], [2, 3, 4]] and y.dtype == torch.int64


def test_bytes_become_numbers_and_lengths_a_mask():
    x, y = torch.tensor([[[255]]], dtype=torch.uint8), torch.tensor([3], dtype=torch.uint8)
    batch = SequenceDataset(x, y, transform=lambda x: x / 255).take(torch.tensor([0]))
    assert (batch.x.dtype, batch.x.item(), batch.y.dtype) == (torch.float32, 1.0, torch.int64)
    assert step_mask(torch.tensor([0, 2]), 2).tolist() == [[False, False], [True, True]]


class Counting(Task):
    target, readout, metric = "class", "last", "accuracy"
    name = "counting"

    def __init__(self, has_training=True):
        self.has_training = has_training

    def _build(self):
        part = SequenceDataset(torch.zeros(7, 2, 1), torch.arange(7))
        return Splits(part if self.has_training else None, part, part)


def test_a_stream_depends_on_purpose_and_every_number():
    streams = [(name, *at) for name in "ab" for at in ((), (0, 1), (1, 0), (1, 1))]
    assert len({float(seeded_rng(*stream).random()) for stream in streams}) == 8


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: SequenceDataset(torch.zeros(2, 3), torch.zeros(2)),
         r"x must be \[N, T, F\].*got shape \[2, 3\].*unsqueeze"),
        (lambda: SequenceDataset(torch.zeros(2, 3, 1), torch.zeros(3)),
         r"y must be of 2 rows; got shape \[3\]"),
        (lambda: ragged(transform=abs), "transform must be None for ragged data"),
        (lambda: ragged().batches(0), "batch_size must be an int >= 1; got batch_size=0"),
        (lambda: Counting().loaders(0, 0), "batch_size must be an int >= 1; got batch_size=0"),
        (lambda: Counting().loaders(-1, 1), r"seed must be an int in \[0, 2\*\*32\); got seed=-1"),
        (lambda: Counting().loaders(0, 1).train(-1), "epoch must be an int"),
        (lambda: seeded_rng("order", 2**32), r"a number of a stream must be an int in \[0, 2\*\*3"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_batches_that_are_not_there_are_refused():
    with pytest.raises(IndexError, match=r"batch index must be in \[0, 2\); got 2; use len"):
        ragged().batches(2)[2]
    with pytest.raises(NotImplementedError, match="Counting must make its own"):
        Counting(has_training=False).loaders(0, 1).train(0)


def test_parts_of_a_batch_and_its_device_keep_everything():
    batch = Batch(*(torch.rand(4, 3) for _ in range(9)))
    part = batch.cut(1, 3)
    for whole, cut in zip(batch, part, strict=True):
        assert torch.equal(whole[1:3], cut)
    meta = batch.to(torch.device("meta"))
    kinds = [None if tensor is None else tensor.device.type for tensor in meta]
    assert kinds == ["meta", "meta", "cpu", "meta", "meta", "meta", "meta", "cpu", "meta"]


@pytest.mark.parametrize("steps", [None, 3])
def test_predictions_are_in_the_units_of_the_targets(steps):
    shape = (2, 2) if steps is None else (2, steps, 2)
    shift, scale = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[10.0, 1.0], [0.5, 2.0]])
    batch = Batch(torch.zeros(2, 3, 1), torch.zeros(shape), None, shift=shift, scale=scale)
    found = batch.select(torch.full(shape, 2.0)).reshape(2, -1, 2)
    for row, expected in enumerate(([21.0, 4.0], [4.0, 8.0])):
        assert found[row].tolist() == [expected] * (steps or 1)
    plain = Batch(torch.zeros(2, 3, 1), torch.zeros(shape), None)
    assert torch.equal(plain.select(torch.full(shape, 2.0)), torch.full(shape, 2.0))
