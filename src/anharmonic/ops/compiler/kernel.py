"""A compiled step and its calls, forward and backward."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, fx

from anharmonic._checks import message
from anharmonic.ops.backend import resolve
from anharmonic.ops.compiler import build
from anharmonic.ops.compiler.emit import Source
from anharmonic.ops.compiler.plan import Plan
from anharmonic.ops.compiler.sections import Sections
from anharmonic.ops.compiler.trace import Example, Unsupported, check_batches, trace
from anharmonic.ops.native import (
    dense,
    dense_rows,
    like_in_time,
    pointer,
    rows_summed_together,
    workspace,
)

NOTHING, ALL, STARTS = range(3)
"""What is saved between forward and backward."""
_TILE_ELEMENTS = 16384
_LONGEST_TILE = 64


class _Call(ctypes.Structure):
    """``recurrence_call`` of csrc/recurrence.h."""

    references: list[Any]

    _fields_: ClassVar[Any] = [
        *[(name, ctypes.c_int64) for name in "steps batch rows tile keep every".split()],
        *[(name, ctypes.c_int64) for name in "threads backward".split()],
        *[(name, ctypes.c_void_p) for name in "parallel take give".split()],
        *[(name, ctypes.c_void_p) for name in "widths numbers fixed matrices vectors".split()],
        *[(name, ctypes.c_void_p) for name in "inputs input_strides starts output".split()],
        *[(name, ctypes.c_int64) for name in "output_time output_batch".split()],
        *[(name, ctypes.c_void_p) for name in "ends saved grad_output".split()],
        *[(name, ctypes.c_int64) for name in "grad_output_time grad_output_batch".split()],
        *[(name, ctypes.c_void_p) for name in "grad_ends grad_inputs".split()],
        *[(name, ctypes.c_void_p) for name in "grad_input_strides grad_starts".split()],
        *[(name, ctypes.c_void_p) for name in "sum_parts outer_parts roots outer_roots".split()],
    ]


class Cut(NamedTuple):
    """How a call is divided.

    Attributes:
        rows: Number of sequences that run together; their sums are added in sequence.
        tile: Number of steps processed together.
        keep: What is saved (NOTHING, ALL or STARTS).
        every: Steps between starts that are saved.
    """

    rows: int
    tile: int
    keep: int
    every: int


class Kernel:
    """A compiled step for certain widths and one dtype.

    Args:
        example: The step and what it is traced with.
        batch: The number of sequences; the step must do the same for any other. None if this was
            seen before.
        level: Optimisation level of the C compiler.

    Attributes:
        needs: Which weights, and then which inputs, get gradients.
        trace: The graph of the step.
        plan: What is computed where.
        source: The C file.
        fixed_nodes: What PyTorch computes before the loop: matrices, vectors and scalars.

    Raises:
        Unsupported: If the step cannot be traced.
    """

    def __init__(self, example: Example, batch: int | None, level: str) -> None:
        begin = time.perf_counter()
        self.needs, self._dtype = example.needs, example.dtype
        self.trace = trace(example)
        try:
            self._sections = Sections(self.trace, example.dtype)
            self.plan = Plan(self._sections)
            self.source = Source(self.plan)
        except (LookupError, ValueError, TypeError, AttributeError, AssertionError) as error:
            # A form of the graph that nobody has thought of: the loop can run it.
            raise Unsupported(f"its graph has an unknown form ({error!r})") from error
        if batch is not None:  # after the others, as these name an operation
            check_batches(self.trace, example, batch)
        self._traced = time.perf_counter() - begin
        real = "float" if example.dtype is torch.float32 else "double"
        self._loading = build.start_loading(self.source.text, real, level)
        self._pointers = build.pointers_of_library()
        tables = self.source.tables
        self.fixed_nodes: list[fx.Node] = list(
            dict.fromkeys(key[0] for key in (*tables.matrices, *tables.vectors))
        )
        self._tables = self._make_tables()

    @property
    def seconds(self) -> tuple[float, float]:
        """How long tracing and compiling took."""
        return self._traced, self._loading.result()[1]

    def _make_tables(self) -> dict[str, Any]:
        """What every call says alike."""
        tables, index = self.source.tables, {node: k for k, node in enumerate(self.fixed_nodes)}
        matrices: list[int] = []
        for node, (k0, k1), (n0, n1) in tables.matrices:
            matrices += [index[node], node.meta["val"].shape[1], k0, k1, n0, n1]
        vectors: list[int] = []
        for node, low, high in tables.vectors:
            vectors += [index[node], low, high]
        outers: list[int] = []
        for outer in self.source.outers:
            columns = self.plan.roots[outer.root].node.meta["val"].shape[1]
            outers += [outer.root, outer.left, outer.right, columns, int(outer.wide_is_left)]
        sums = [number for root, low, _ in self.source.sums for number in (root, low)]
        numbers = [float(text) for text in tables.numbers]
        return {
            "widths": _longs(list(tables.widths)),
            "numbers": (ctypes.c_double * len(numbers))(*numbers),
            "matrices": _longs(matrices),
            "vectors": _longs(vectors),
            "outer_parts": _longs(outers),
            "sum_parts": _longs(sums),
        }

    # ---- how a call is cut -----------------------------------------------------------------------
    def cut(self, steps: int, batch: int, memory: str | None, return_sequence: bool) -> Cut:
        """Plan a call; ``memory`` is None where there is no backward pass."""
        tables, plan = self.source.tables, self.plan
        real = 4 if self._dtype is torch.float32 else 8
        gradients = sum(outer.wide.width * outer.thin.width for outer in self.source.outers)
        rows = rows_summed_together(batch, gradients * real)
        row = -(-max(tables.widths) // 16) * 16
        tile = min(max(_TILE_ELEMENTS // (rows * row), 8), _LONGEST_TILE, steps)
        if memory is None:
            return Cut(rows, tile, NOTHING, tile)
        saved = sum(-(-value.width // 16) * 16 for value in plan.saved)
        start = sum(-(-value.width // 16) * 16 for group in plan.state for value in group)
        stored = batch * real * (steps * saved + -(-steps // tile) * start)
        if resolve(memory, return_sequence, stored) == "stored":
            return Cut(rows, tile, ALL, tile)
        # T / K starts and K steps of saved values take least room at this K.
        best = math.sqrt(steps * start / saved) if saved else math.sqrt(steps * tile)
        return Cut(rows, tile, STARTS, tile * max(1, round(best / tile)))

    # ---- calls -----------------------------------------------------------------------------------
    def _call(
        self, inputs: Sequence[Tensor], state: Sequence[Tensor], weights: Sequence[Tensor], cut: Cut
    ) -> tuple[_Call, dict[fx.Node, Any]]:
        """What forward and backward share: a call, and nodes whose values are known."""
        steps, batch = inputs[0].shape[:2]
        known: dict[fx.Node, Any] = dict(zip(self.trace.weights, weights, strict=True))
        with torch.autocast("cpu", enabled=False):
            fixed = self._sections.evaluate(self.fixed_nodes, known)
        fixed = [dense(tensor.to(self._dtype)) for tensor in fixed]
        strides = _longs([n for x in inputs for n in (x.stride(0), x.stride(1))])
        arrays = {
            **self._tables,
            "fixed": _pointers(fixed),
            "inputs": _pointers(inputs),
            "input_strides": strides,
            "starts": _pointers(state),
        }
        call = _Call(
            steps=steps, batch=batch, rows=cut.rows, tile=cut.tile, keep=cut.keep, every=cut.every,
            threads=torch.get_num_threads(), **self._pointers,
        )  # fmt: skip
        for name, array in arrays.items():
            setattr(call, name, ctypes.addressof(array))
        call.references = [arrays, fixed, inputs, state]
        return call, known

    def _run(self, call: _Call) -> None:
        if self._loading.result()[0].recurrence_run(ctypes.byref(call)):
            raise MemoryError(
                message("the walk needs memory for its tiles", "none left", "use a smaller batch")
            )

    @torch.no_grad()
    def forward(
        self, inputs: Sequence[Tensor], state: Sequence[Tensor], weights: Sequence[Tensor],
        cut: Cut, return_sequence: bool,
    ) -> tuple[Tensor | None, list[Tensor], Tensor]:  # fmt: skip
        """Run over sequences [T, B, F] each, from a state of variables [B, H].

        Return the output [T, B, H] or None, the state after the last step, and what is saved.
        """
        inputs, state = list(map(dense_rows, inputs)), list(map(dense, state))
        call, _ = self._call(inputs, state, weights, cut)
        ends = [torch.empty_like(variable) for variable in state]
        size = self._loading.result()[0].recurrence_saved_bytes(ctypes.byref(call)) * call.batch
        saved = workspace(size) if size else inputs[0].new_empty(0, dtype=torch.uint8)
        end_pointers = _pointers(ends)
        call.ends, call.saved = ctypes.addressof(end_pointers), saved.data_ptr()
        output = None
        if return_sequence:
            output = like_in_time(inputs[0], state[0].shape[1])
            call.output = output.data_ptr()
            call.output_time, call.output_batch = output.stride(0), output.stride(1)
        self._run(call)
        return output, ends, saved

    @torch.no_grad()
    def backward(
        self, grad_output: Tensor | None, grad_ends: Sequence[Tensor | None], saved: Tensor,
        inputs: Sequence[Tensor], state: Sequence[Tensor], weights: Sequence[Tensor], cut: Cut,
    ) -> tuple[list[Tensor | None], list[Tensor], list[Tensor | None]]:  # fmt: skip
        """Return the gradients of inputs, state and weights; None for those without one."""
        inputs, state = list(map(dense_rows, inputs)), list(map(dense, state))
        call, known = self._call(inputs, state, weights, cut)
        call.backward, call.saved = 1, saved.data_ptr()
        if grad_output is not None:
            grad_output = dense_rows(grad_output)
            call.grad_output = grad_output.data_ptr()
            call.grad_output_time = grad_output.stride(0)
            call.grad_output_batch = grad_output.stride(1)
        arriving = [None if grad is None else dense(grad) for grad in grad_ends]
        trace = self.trace
        grad_inputs = [
            None if node is None else like_in_time(x, x.shape[2])
            for x, node in zip(inputs, trace.grad_inputs, strict=True)
        ]
        grad_starts = [torch.empty_like(variable) for variable in state]
        sums, outers = [], []
        for root in self.plan.roots:
            shape = root.node.meta["val"].shape
            columns = sum(value.width for value in root.left)
            sums.append(torch.zeros(columns if root.right is None else 0, dtype=torch.float64))
            outers.append(inputs[0].new_zeros(shape if root.right is not None else (0,)))
        strides = [
            n for g in grad_inputs for n in ((0, 0) if g is None else (g.stride(0), g.stride(1)))
        ]
        arrays = {
            "grad_ends": _pointers(arriving),
            "grad_inputs": _pointers(grad_inputs),
            "grad_input_strides": _longs(strides),
            "grad_starts": _pointers(grad_starts),
            "roots": _pointers(sums),
            "outer_roots": _pointers(outers),
        }
        for name, array in arrays.items():
            setattr(call, name, ctypes.addressof(array))
        self._run(call)
        for root, total, outer in zip(self.plan.roots, sums, outers, strict=True):
            value = root.node.meta["val"]
            if root.right is None:
                if value.numel() != total.numel():
                    total = self._sections.reduced(root.node, total)  # still in float64
                outer = total.reshape(value.shape).to(value.dtype)
            known[root.node] = outer
        with torch.autocast("cpu", enabled=False):
            grad_weights = self._sections.evaluate(trace.grad_weights, known)
        return grad_inputs, grad_starts, grad_weights


def _longs(numbers: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(numbers))(*numbers)


def _pointers(tensors: Sequence[Tensor | None]) -> Any:
    """A C array of where tensors lie, NULL where there is none."""
    return (ctypes.c_void_p * len(tensors))(*map(pointer, tensors))
