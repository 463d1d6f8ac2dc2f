"""What the Triton kernels share: tanh, the logistic function, and how a launch is cut.

It imports Triton; only the models beside it import it.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from anharmonic._checks import require

SMALLEST_BLOCK, LARGEST_BLOCK = 32, 128
_BLOCKS_WANTED = 264
"""Two blocks for every multiprocessor of an H100."""


@triton.jit
def tanh_of(x: tl.tensor) -> tl.tensor:
    """The rational function of csrc/elementary.h; NaN stays NaN."""
    c = tl.where(x > 9.02, 9.02, tl.where(x < -9.02, -9.02, x))
    s = c * c
    p = tl.fma(s, 1.33190652e-8, 2.05835827e-5)
    p = tl.fma(p, s, 3.49404603e-3)
    p = tl.fma(p, s, 0.133797295)
    p = tl.fma(p, s, 1.0)
    q = tl.fma(s, 7.76204689e-7, 3.28310773e-4)
    q = tl.fma(q, s, 2.58711228e-2)
    q = tl.fma(q, s, 0.467130448)
    q = tl.fma(q, s, 1.0)
    t = c * p / q
    return tl.where(t > 1.0, 1.0, tl.where(t < -1.0, -1.0, t))


@triton.jit
def sigmoid_of(x: tl.tensor) -> tl.tensor:
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + tl.exp(-x))


def block_of(total: int) -> int:
    """Elements of a block: few where there are few in all, so that they fill the device.

    Args:
        total: Elements that walk independently, batch times neurons.
    """
    for block in (LARGEST_BLOCK, LARGEST_BLOCK // 2):
        if total >= block * _BLOCKS_WANTED:
            return block
    return SMALLEST_BLOCK


def launch(
    kernel: tl.tensor, programs: int, *arguments: tl.tensor, warps: int, **constants: Any
) -> None:
    """Starts a kernel on the device of its first tensor.

    Args:
        kernel: A function made by ``triton.jit``.
        programs: How many of them.
        arguments: Tensors (None for absent ones) and numbers.
        warps: Warps of a program.
        constants: Its compile-time constants.
    """
    first: Tensor = arguments[0]
    # No sum is fused that is not written so: a step is undone by the bits it was made of.
    options = {"num_warps": warps, "enable_fp_fusion": False}
    if first.is_cuda:
        with torch.cuda.device(first.device):
            kernel[(programs,)](*arguments, **constants, **options)
    else:
        kernel[(programs,)](*arguments, **constants, **options)


ROWS = 16
"""Sequences that a program with matrices on chip walks: the least that a matrix unit takes."""
_WIDEST = {"float32": 64, "tf32": 64, "bfloat16": 128}


def fits_on_chip(hidden: int, precision: str) -> bool:
    """Whether the recurrent matrices stay on chip through time."""
    return hidden <= _WIDEST[precision]


def on_chip(hidden: int, precision: str, sections: int) -> dict[str, Any]:
    """The constants of a launch with matrices on chip.

    Warps and stages are such that registers hold the matrices and shared memory, of which an H100
    gives a program 227 KB, holds what is fetched ahead; the tests compile for one and look.

    Args:
        hidden: H.
        precision: Of products.
        sections: Drives per neuron.
    """
    # It would multiply the bits of bfloat16 as if they were integers.
    require(
        precision != "bfloat16" or not triton.knobs.runtime.interpret,
        "precision", precision, "'float32' under Triton's interpreter, which has no bfloat16",
        "run it on a GPU, or leave use_precision out",
    )  # fmt: skip
    width = max(ROWS, triton.next_power_of_2(hidden))
    wide = width > 64
    return {
        "PRECISION": "tf32" if precision == "tf32" else "ieee",
        "STAGES": 2 if wide and sections > 1 else 3,
        "TILE": ROWS,
        "WIDTH": width,
        "warps": 16 if wide else 8 if width > 32 else 4,
    }
