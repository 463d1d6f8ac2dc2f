"""Checks of tensors: type, dtype, device, shape and entries. Sums of their rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from anharmonic._checks import described, message, require


def tensor_like(name: str, value: Any, *, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Check that ``value`` is a tensor of the given dtype and device and return it."""
    if not isinstance(value, Tensor):
        advice = "convert it with torch.as_tensor"
        raise TypeError(message(f"{name} must be a torch.Tensor", described(value), advice))
    if value.dtype != dtype:
        raise TypeError(
            message(
                f"{name} must have the layer's dtype {dtype}",
                described(value),
                f"call {name}.to({dtype})"
                + (f" or layer.to({value.dtype})" if value.is_floating_point() else ""),
            )
        )
    if value.device != device:
        expected = f"{name} must be on the layer's device {device}"
        advice = f"call {name}.to({str(device)!r})"
        raise ValueError(message(expected, f"{name} on {value.device}", advice))
    return value


def has_shape(name: str, value: Tensor, shape: tuple[int, ...], advice: str) -> None:
    """Check the shape of a tensor."""
    if value.shape != shape:
        raise ValueError(message(f"{name} must have shape {list(shape)}", described(value), advice))


def has_dtype(name: str, value: Tensor, dtype: torch.dtype) -> None:
    """Check the dtype of a weight against that of the input."""
    if value.dtype is not dtype:
        expected, advice = f"{name} must be {dtype} as x is", "convert the layer with .to(dtype)"
        raise TypeError(message(expected, str(value.dtype), advice))


def check_lengths(lengths: Tensor, x: Tensor) -> None:
    """Check the lengths of a padded batch [B, T, F]."""
    require(
        isinstance(lengths, Tensor) and lengths.dtype == torch.int64, "lengths", lengths,
        "a torch.int64 tensor", "make it with torch.tensor([...])", TypeError,
    )  # fmt: skip
    if x.dim() != 3 or tuple(lengths.shape) != (x.shape[0],):
        raise ValueError(
            message(
                "lengths must have shape [B] for x [B, T, F]",
                f"lengths {list(lengths.shape)} and x {list(x.shape)}",
                "give one length per sequence",
            )
        )
    if lengths.numel() and not (1 <= int(lengths.min()) and int(lengths.max()) <= x.shape[1]):
        raise ValueError(
            message(
                f"lengths must lie in [1, T={x.shape[1]}]",
                f"values from {int(lengths.min())} to {int(lengths.max())}",
                "count the valid steps of each sequence",
            )
        )


def no_nan(name: str, value: Tensor) -> None:
    """Refuse NaN in a CPU tensor; other devices and transforms are not checked.

    (A check would make a GPU wait in every call; there a NaN shows up in the loss. During
    compilation and within ``torch.func`` transforms there are no values to check.)
    """
    if not has_values(value):
        return
    total = value.detach().sum().item()
    if total == total:
        return  # without NaN in the sum there is none in the terms; NaN may be inf - inf
    count = int(value.detach().isnan().sum())
    if count:
        expected = f"{name} must not contain NaN"
        advice = "fill or remove missing values first, e.g. with torch.nan_to_num"
        raise ValueError(message(expected, f"{count} NaN of {value.numel()} entries", advice))


def nonnegative(name: str, value: Tensor) -> float:
    """Refuse negative and non-finite entries, in the cases that ``no_nan`` checks.

    Returns:
        The largest entry; 0 without a check.

    Raises:
        ValueError: If an entry is negative, NaN or infinite.

    Example:
        >>> nonnegative("elapsed", torch.ones(3))
        1.0
    """
    if not has_values(value):
        return 0.0
    if value.numel() == 0:
        return 0.0
    low, high = (float(end) for end in value.detach().aminmax())
    if not 0.0 <= low <= high < math.inf:
        expected = f"{name} must be finite and >= 0 everywhere"
        advice = "give the time since the previous sample in nominal steps"
        raise ValueError(message(expected, f"values from {low:g} to {high:g}", advice))
    return high


class WrongStep(ValueError):
    """A step of a recurrence violates the rules of steps."""


def check_step(new: Sequence[Any], state: Sequence[Tensor]) -> None:
    """Check the state returned by a step of a recurrence."""
    if len(new) != len(state) or not all(
        isinstance(after, Tensor) and after.shape == before.shape
        for after, before in zip(new, state, strict=True)
    ):
        batch = state[0].shape[:1]
        expected, came = (", ".join(_rows(v, batch) for v in values) for values in (state, new))
        raise WrongStep(
            message(
                f"a step must return a state like the old one, {expected}", came or "nothing",
                "return a tensor of the same shape for every variable of the state",
            )
        )  # fmt: skip


def _rows(value: Any, batch: Sequence[int]) -> str:
    """Return a shape, starting with the number of sequences, or a type."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    alike = value.shape[:1] == batch
    return str(["B", *value.shape[1:]] if alike else list(value.shape)).replace("'", "")


class Unchanged:
    """Detects whether a step changes tensors in place.

    Args:
        tensors: The tensors before the step.

    Example:
        >>> h = torch.zeros(2)
        >>> unchanged = Unchanged([h])
        >>> unchanged.check()
    """

    def __init__(self, tensors: Sequence[Any]) -> None:
        self._tensors = [] if watched() else [t for t in tensors if not t.is_inference()]
        self._versions = [tensor._version for tensor in self._tensors]

    def check(self) -> None:
        """Check after the step."""
        if self._versions != [tensor._version for tensor in self._tensors]:
            raise changed_in_place()


def changed_in_place() -> WrongStep:
    """Return the error for a step that changes its input or state."""
    expected = "a step must leave its input and its old state as they are"
    advice = "write h = h + u, not h += u or h.add_(u)"
    return WrongStep(message(expected, "one that changes them in place", advice))


def has_values(value: Tensor) -> bool:
    """Whether reading a tensor's values is possible and cheap."""
    if value.device.type != "cpu" or watched():
        return False
    functorch = torch._C._functorch
    while functorch.is_gradtrackingtensor(value):  # grad within vmap
        value = functorch.get_unwrapped(value)
    return not functorch.is_batchedtensor(value)


def watched() -> bool:
    """Whether a compiler, a tracer or a mode records or replaces operators."""
    return bool(
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._len_torch_dispatch_stack()
    )


def at_least_single(value: Tensor) -> Tensor:
    """Return a tensor in float32 if it is in half precision, whose sums would be coarse.

    Example:
        >>> at_least_single(torch.ones(1).bfloat16()).dtype, at_least_single(torch.ones(1).double())
        (torch.float32, tensor([1.], dtype=torch.float64))
    """
    return value.float() if value.dtype in (torch.float16, torch.bfloat16) else value


def sums_of_rows(rows: Tensor, index: Tensor, count: int) -> Tensor:
    """Return the sum of all rows [N, ...] with the same index [N], as [count, ...].

    Half precision is added, and returned, in float32. In bfloat16 256 + 1 would be 256.

    Example:
        >>> sums_of_rows(torch.ones(300, 1).bfloat16(), torch.zeros(300, dtype=torch.long), 1)
        tensor([[300.]])
    """
    wide = at_least_single(rows)
    return wide.new_zeros(count, *rows.shape[1:]).index_add(0, index, wide)
