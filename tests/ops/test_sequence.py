import torch

from anharmonic.ops.recurrence import gaps_walked_back, reversed_in_time


def test_reversal_is_its_own_inverse():
    x = torch.randn(6, 3, 2, generator=torch.Generator().manual_seed(0))
    for lengths in (None, torch.tensor([6, 1, 4])):
        assert torch.equal(reversed_in_time(reversed_in_time(x, lengths), lengths), x)


def test_padding_stays():
    x = torch.arange(8.0).reshape(4, 2, 1)
    turned = reversed_in_time(x, torch.tensor([3, 1]))
    assert turned[:, 0, 0].tolist() == [4.0, 2.0, 0.0, 6.0]
    assert turned[:, 1, 0].tolist() == [1.0, 3.0, 5.0, 7.0]


def test_gaps_walked_back():
    gaps = torch.tensor([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0], [4.0, 8.0]])
    assert gaps_walked_back(gaps, None)[:, 0].tolist() == [1, 4, 3, 2]
    ragged = gaps_walked_back(gaps, torch.tensor([3, 1]))
    assert ragged[:, 0].tolist() == [1, 3, 2, 4]
    assert ragged[:, 1].tolist() == [5, 6, 7, 8]
