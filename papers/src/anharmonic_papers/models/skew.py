"""Skew-symmetric matrices from their free entries."""

from __future__ import annotations

import torch
from torch import Tensor


def free_entries(size: int) -> int:
    """How many numbers a skew-symmetric matrix has."""
    return size * (size - 1) // 2


def skew_matrix(entries: Tensor, size: int) -> Tensor:
    """The skew-symmetric matrix L - L^T of a strictly lower triangle L, given row by row."""
    rows, columns = torch.tril_indices(size, size, -1, device=entries.device)
    lower = entries.new_zeros(size, size).index_put((rows, columns), entries)
    return lower - lower.t()
