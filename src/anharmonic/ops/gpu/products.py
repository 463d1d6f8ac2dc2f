"""Matrix products on a GPU, in the precision that ``use_precision`` sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def library_products(precision: str, device: torch.device) -> Iterator[None]:
    """Set the precision of PyTorch's float32 products on a GPU, regardless of autocast.

    Example:
        >>> with library_products("tf32", torch.device("cpu")):
        ...     torch.backends.cuda.matmul.fp32_precision
        'tf32'
    """
    switch = torch.backends.cuda.matmul
    before = switch.fp32_precision
    switch.fp32_precision = "tf32" if precision == "tf32" else "ieee"
    try:
        with torch.autocast(device.type, enabled=False):
            yield
    finally:
        switch.fp32_precision = before


def operand(value: Tensor, precision: str) -> Tensor:
    """Convert a float32 matrix to the dtype of an operand.

    Example:
        >>> operand(torch.ones(1, 1), "bfloat16").dtype
        torch.bfloat16
    """
    return value.to(torch.bfloat16) if precision == "bfloat16" else value


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return a b in float32; both operands are float32 or both are bfloat16.

    Example:
        >>> product(torch.ones(1, 2).bfloat16(), torch.ones(2, 1).bfloat16())
        tensor([[2.]])
    """
    if a.dtype is torch.float32:
        return torch.mm(a, b)
    if a.is_cuda:
        return torch.mm(a, b, out_dtype=torch.float32)
    return torch.mm(a.float(), b.float())


def add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    """Add a b to a float32 matrix.

    Example:
        >>> total = torch.ones(1, 1)
        >>> add_product(total, torch.ones(1, 2), torch.ones(2, 1))
        >>> total
        tensor([[3.]])
    """
    if a.dtype is torch.float32:
        total.addmm_(a, b)
    else:
        total.add_(product(a, b))
