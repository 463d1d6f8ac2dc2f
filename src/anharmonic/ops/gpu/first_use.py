"""Check a GPU kernel against the reference on a small case when a device first uses it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from anharmonic._checks import message
from anharmonic._tensors import watched
from anharmonic.ops.backend import use_precision

SmallCase = Callable[[Callable[..., Tensor], str], Sequence[Tensor | None]]
"""``case(make_tensor, backend)``: results of an op on tensors made by ``make_tensor(*shape)``."""

_BOUND = 1e-4
"""Largest allowed error relative to the largest entry; float32 rounding gives a few 1e-7."""
_REASONS: dict[tuple[str, str, int | None], str | None] = {}


def why_wrong(kernel: str, case: SmallCase, device: torch.device) -> str | None:
    """Return why a kernel must not run on a device; None if it agrees with the reference there.

    The first call for a device computes the case, forward and backward, and warns if it fails.
    Nothing is computed while a compiler or a CUDA graph records. An untested kernel is trusted.
    """
    key = kernel, device.type, device.index
    if key in _REASONS:
        return _REASONS[key]
    if watched() or (device.type == "cuda" and torch.cuda.is_current_stream_capturing()):
        return None
    reason = _REASONS[key] = _difference(case, device)
    if reason is not None:
        warnings.warn(
            message(
                f"the GPU kernel of {kernel} must agree with the reference on {device}",
                reason,
                "its layers take the reference there, which is slower; please report it",
            ),
            stacklevel=2,
        )
    return reason


def _difference(case: SmallCase, device: torch.device) -> str | None:
    modes = (torch.inference_mode(False), torch.enable_grad(), use_precision("float32"))
    with modes[0], modes[1], modes[2], torch.autocast(device.type, enabled=False):
        expected = _results(case, "reference", torch.device("cpu"), torch.float64)
        try:
            found = _results(case, "triton", device, torch.float32)
        except Exception as error:  # whatever Triton, its compiler or the driver raise
            first_line = (str(error).splitlines() or [""])[0]
            return f"{type(error).__name__}: {first_line}"
    off = [
        (a.cpu().double() - b).abs().max() / b.abs().max()
        for a, b in zip(found, expected, strict=True)
    ]
    furthest = torch.stack(off).max().item()
    return None if furthest < _BOUND else f"a difference of {furthest:.1g} of the largest entry"


def _results(
    case: SmallCase, backend: str, device: torch.device, dtype: torch.dtype
) -> list[Tensor]:
    """Return the outputs of a case and the gradients of all its inputs."""
    leaves: list[Tensor] = []

    def make_tensor(*shape: int) -> Tensor:
        # Random numbers would change the state of the caller's generator.
        numbers = torch.arange(math.prod(shape), dtype=torch.float64, device="cpu") + len(leaves)
        leaves.append(numbers.sin().reshape(shape).to(device, dtype).requires_grad_())
        return leaves[-1]

    outputs = [result for result in case(make_tensor, backend) if result is not None]
    loss = torch.stack([result.square().sum() for result in outputs]).sum()
    return [*(result.detach() for result in outputs), *torch.autograd.grad(loss, leaves)]
