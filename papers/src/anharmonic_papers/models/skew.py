"""Skew-symmetric matrices from their free entries."""

from __future__ import annotations

import torch
from torch import Tensor


def free_entries(size: int) -> int:
    """How many numbers a skew-symmetric matrix has.

    Example:
        >>> free_entries(64)
        2016
    """
    return size * (size - 1) // 2


def skew_matrix(entries: Tensor, size: int) -> Tensor:
    """The skew-symmetric matrix L - L^T of a strictly lower triangle L, given row by row.

    Args:
        entries: The entries of L.
        size: Rows of the matrix.

    Shape:
        entries [size * (size - 1) / 2]; returns [size, size].

    Example:
        >>> skew_matrix(torch.tensor([1.0, 2.0, 3.0]), 3)
        tensor([[ 0., -1., -2.],
                [ 1.,  0., -3.],
                [ 2.,  3.,  0.]])
    """
    rows, columns = torch.tril_indices(size, size, -1, device=entries.device)
    lower = entries.new_zeros(size, size).index_put((rows, columns), entries)
    return lower - lower.t()
