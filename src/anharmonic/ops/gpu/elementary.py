"""Functions that the kernels of all models share, and the launcher of kernels.

This module imports Triton, so only the modules of models and ``walk.model_of`` may import it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from anharmonic._checks import require

SMALLEST_BLOCK, LARGEST_BLOCK = 32, 128
ROWS = 16
"""Sequences per program with matrices on chip: the minimum that a matrix unit accepts."""
PRODUCTS = {"float32": "tf32x3", "tf32": "tf32", "bfloat16": "ieee"}
"""How Triton multiplies on chip. Three products in TF32 are as accurate as one in float32.
Operands in bfloat16 are multiplied as they are."""


@triton.jit
def tanh_of(x: tl.tensor) -> tl.tensor:
    """Compute tanh by the rational function of csrc/elementary.h; NaN stays NaN."""
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
    """Compute 1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def add_at(pointer: tl.tensor, at: tl.tensor, value: tl.tensor, inside: tl.tensor) -> None:
    """Add a value to the memory that a pointer refers to."""
    tl.store(pointer + at, tl.load(pointer + at, mask=inside, other=0.0) + value, mask=inside)


@triton.jit
def matrix_at(
    pointer: tl.tensor, hidden: tl.tensor, TRANSPOSED: tl.constexpr, WIDTH: tl.constexpr
) -> tl.tensor:
    """Load a matrix [H, H], padded with zeros to WIDTH."""
    row, column = tl.arange(0, WIDTH)[:, None], tl.arange(0, WIDTH)[None, :]
    at = row * hidden + column
    if TRANSPOSED:
        at = column * hidden + row
    return tl.load(pointer + at, mask=(row < hidden) & (column < hidden), other=0.0)


def launch(kernel: Any, programs: int, *arguments: Any, warps: int, **constants: Any) -> None:
    """Start a number of programs on the device of the first argument, a tensor."""
    first: Tensor = arguments[0]
    # Only tl.fma fuses operations, so that a device computes the same as the interpreter.
    options = {"num_warps": warps, "enable_fp_fusion": False}
    with torch.cuda.device(first.device) if first.is_cuda else nullcontext():
        kernel[(programs,)](*arguments, **constants, **options)


class Model:
    """The kernels of a model on a GPU; the defaults suit models whose matrices stay on chip.

    Both kernels run one layer over a tile of n steps. The forward kernel replaces the drive by the
    activations in place, and the backward kernel reads the activations.

    Args:
        constants: Constants of both kernels.

    Attributes:
        kernels: The forward and the backward kernel; ``Walk.run`` lists their arguments.
        drives: The number of drives per neuron, equal to the number of activations.
        sums: The number of sums over time that the backward kernel makes per neuron and sequence.
    """

    kernels: tuple[Any, Any]
    drives = 1
    sums = 0

    def __init__(self, **constants: bool) -> None:
        self.constants = constants

    def launch(self, back: bool, precision: str, arguments: Sequence[Any], **flags: bool) -> None:
        """Start a kernel; the last two arguments are the batch and the neurons."""
        *_, batch, hidden = arguments
        options = {**self.options(batch, hidden, precision), **self.constants, **flags}
        launch(self.kernels[back], options.pop("programs"), *arguments, **options)

    def options(self, batch: int, hidden: int, precision: str) -> dict[str, Any]:
        """Return the number of ``programs``, their ``warps`` and their constants.

        Registers hold the matrices. Shared memory holds prefetched steps; on an H100 a program has
        227 KB of it. ``tests/ops/gpu/test_triton_build.py`` checks that they fit.
        """
        # The interpreter would multiply the bits of bfloat16 numbers as if they were integers.
        require(
            precision != "bfloat16" or not triton.knobs.runtime.interpret,
            "precision", precision, "'float32' under Triton's interpreter, which has no bfloat16",
            "run it on a GPU, or leave use_precision out",
        )  # fmt: skip
        width = max(ROWS, triton.next_power_of_2(hidden))
        wide = width > 64
        return {
            "programs": triton.cdiv(batch, ROWS),
            "warps": 16 if wide else 8 if width > 32 else 4,
            "PRECISION": PRODUCTS[precision],
            "STAGES": 2 if wide and self.drives > 1 else 3,
            "TILE": ROWS,
            "WIDTH": width,
        }

    def operands(self, g: Tensor, y: Tensor, z: Tensor) -> Sequence[tuple[Tensor, Tensor]]:
        """Return the operands of the gradient of every recurrent matrix, if the model has any.

        The first operand is rows of g [drives * H, n * B], the gradient of the drive. The second is
        n of the states [n + 1, B, H]; slot 0 holds the state before the tile.
        """
        return ()

    def add_sums(self, grads: Sequence[Tensor], grad_scalars: Tensor, sums: Tensor) -> None:
        """Add a layer's sums [K, B, H] to the gradients of elementwise weights and scalars."""
