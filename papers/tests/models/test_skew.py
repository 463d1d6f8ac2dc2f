import torch

from anharmonic_papers.models.skew import free_entries, skew_matrix


def test_every_skew_matrix_is_met_once():
    torch.manual_seed(0)
    for size in (1, 2, 5, 8):
        M = torch.randn(size, size, dtype=torch.float64)
        skew = M - M.t()
        rows, columns = torch.tril_indices(size, size, -1)
        assert len(rows) == free_entries(size)
        assert torch.equal(skew_matrix(skew[rows, columns], size), skew)


def test_gradient():
    entries = torch.arange(6.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda e: skew_matrix(e, 4), entries)
