import pytest
import torch

from anharmonic.data.dataset import Batch, SequenceDataset, step_mask


def ragged(per_step=False):
    x = torch.arange(1.0, 13.0).reshape(6, 2)
    y = torch.arange(10.0, 16.0)[:, None] if per_step else torch.tensor([0, 1, 2])
    return SequenceDataset(x, y, offsets=torch.tensor([0, 1, 4, 6]), per_step=per_step)


def test_dense_batches_hold_every_sequence_once_in_order():
    data = SequenceDataset(torch.arange(10.0).reshape(5, 2, 1), torch.arange(5))
    batches = data.batches(2)
    assert [batch.x.shape[0] for batch in batches] == [2, 2, 1] and len(batches) == 3
    for _ in range(2):  # as often as they are wanted
        assert torch.equal(torch.cat([batch.x for batch in batches]), data.x)
    assert data.lengths is None and all(batch.lengths is None for batch in batches)
    order = torch.tensor([3, 1, 0, 4, 2])
    assert torch.equal(torch.cat([batch.y for batch in data.batches(3, order)]), order)


def test_ragged_batches_are_zero_padded_to_the_longest_of_the_batch():
    first, second = ragged().batches(2)
    assert first.lengths.tolist() == [1, 3]
    assert first.x.tolist() == [[[1, 2], [0, 0], [0, 0]], [[3, 4], [5, 6], [7, 8]]]
    assert second.x.tolist() == [[[9, 10], [11, 12]]] and second.y.tolist() == [2]


def test_ragged_targets_per_step_are_padded_too():
    batch = ragged(per_step=True).take(torch.tensor([2, 0]))
    assert batch.y.tolist() == [[[14], [15]], [[10], [0]]] and batch.y.dtype == torch.float32
    x, y = torch.zeros(6, 2), torch.arange(1, 7)
    data = SequenceDataset(x, y, offsets=torch.tensor([0, 1, 4, 6]), per_step=True)
    classes = data.take(torch.tensor([2, 1])).y
    assert classes.tolist() == [[5, 6, 0], [2, 3, 4]] and classes.dtype == torch.int64


def test_bytes_are_transformed_to_numbers():
    x, y = torch.tensor([[[255]]], dtype=torch.uint8), torch.tensor([3], dtype=torch.uint8)
    batch = SequenceDataset(x, y, transform=lambda x: x / 255).take(torch.tensor([0]))
    assert (batch.x.dtype, batch.x.item(), batch.y.dtype) == (torch.float32, 1.0, torch.int64)


def test_step_mask():
    assert step_mask(torch.tensor([0, 2]), 2).tolist() == [[False, False], [True, True]]


def test_errors():
    with pytest.raises(IndexError, match=r"batch index must be in \[0, 2\); got 2; use len"):
        ragged().batches(2)[2]
    with pytest.raises(ValueError, match=r"x must be \[N, T, F\].*got shape \[2, 3\].*unsqueeze"):
        SequenceDataset(torch.zeros(2, 3), torch.zeros(2))
    with pytest.raises(ValueError, match=r"y must be of 2 rows; got shape \[3\]"):
        SequenceDataset(torch.zeros(2, 3, 1), torch.zeros(3))
    known = {"offsets": torch.tensor([0, 2]), "transform": abs}
    with pytest.raises(ValueError, match="transform must be None for ragged data"):
        SequenceDataset(torch.zeros(2, 1), torch.zeros(1), **known)
    with pytest.raises(ValueError, match="batch_size must be an int >= 1; got batch_size=0"):
        ragged().batches(0)


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
