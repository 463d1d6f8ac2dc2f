"""How precisely matrices are multiplied: said by the user, never changed by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from anharmonic._checks import choice
from anharmonic.ops.backend import ContextSetting

PRECISIONS = ("float32", "tf32", "bfloat16")
_PRECISION = ContextSetting("precision", "float32")


@contextmanager
def use_precision(precision: str) -> Iterator[None]:
    """Rounds the operands of a recurrence's matrix products within a ``with`` block.

    It counts in this thread or task, for input products, recurrent products and their gradients
    alike; a backward pass takes what its forward pass took. Sums are float32, and so are states,
    nonlinearities and bias gradients.

    GPU kernels know all three precisions. On a CPU, ``"bfloat16"`` needs a processor with
    AVX512-BF16: coRNN, UnICORNN, LEM and the oscillator then train up to twice as fast. On other
    processors products stay in float32, and a warning says so once. The reference backend, other
    layers and other dtypes compute in the dtype of the tensors.

    Args:
        precision: ``"float32"`` (the default: nothing is rounded), ``"tf32"`` (10 bits behind the
            binary point) or ``"bfloat16"`` (7 bits).

    Raises:
        ValueError: If there is no such precision.

    Example:
        >>> import anharmonic as ah, torch
        >>> with ah.use_precision("bfloat16"):
        ...     output, state = ah.CoRNN(3, 4)(torch.zeros(5, 2, 3))
    """
    with _PRECISION.set_to(choice("precision", precision, PRECISIONS)):
        yield


def current_precision() -> str:
    """The precision that ``use_precision`` asks for.

    Example:
        >>> with use_precision("tf32"):
        ...     current_precision()
        'tf32'
        >>> current_precision()
        'float32'
    """
    return _PRECISION.get()


@contextmanager
def library_products(precision: str, device: torch.device) -> Iterator[None]:
    """Within it PyTorch's float32 products on a GPU are as precise as asked for, autocast or not.

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
    """A float32 matrix as it enters a product.

    Example:
        >>> operand(torch.ones(1, 1), "bfloat16").dtype
        torch.bfloat16
    """
    return value.to(torch.bfloat16) if precision == "bfloat16" else value


def product(a: Tensor, b: Tensor) -> Tensor:
    """A b in float32; both operands are float32 or both bfloat16.

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
    """Adds a b to a float32 matrix.

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
