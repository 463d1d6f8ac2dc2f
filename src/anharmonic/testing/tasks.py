"""Contract of tasks: stated shapes, disjoint parts, and an order set by seed and epoch."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anharmonic.data import GraphBatch, Task
from anharmonic.testing.suite import Check, Suite, expect, run_checks

BATCH = 16
_check = Suite()


def task_checks(make: Callable[[], Task]) -> Iterator[tuple[str, Check]]:
    """Return the name and callable of each check that every task must pass.

    Args:
        make: Creates the task.

    Example:
        >>> from anharmonic.data import make_task
        >>> [name for name, check in task_checks(lambda: make_task("adding", {"length": 9}))][:2]
        ['sizes_are_those_stated', 'batches_have_the_shapes_stated']
    """
    return _check.of(make)


def check_task(make: Callable[[], Task]) -> None:
    """Run every check of ``task_checks``.

    Args:
        make: Creates the task.

    Raises:
        AssertionError: If a check failed; the message lists expected and received values.

    Example:
        >>> from anharmonic.data import make_task
        >>> check_task(lambda: make_task("adding", {"length": 9, "steps_per_epoch": 3}))
    """
    run_checks(task_checks(make))


def _samples(batch: Any) -> list[bytes]:
    """Return identifiers of the samples of a batch: node numbers, or the bytes of the inputs.

    A graph of a batch is identified by its features and its edges.
    """
    if isinstance(batch, GraphBatch) and batch.rows is not None and batch.membership is None:
        return [row.tobytes() for row in batch.rows.numpy()]
    if isinstance(batch, GraphBatch):
        membership = batch.membership
        if membership is None:
            membership = torch.zeros(len(batch.x), dtype=torch.long)
        members = [membership == graph for graph in range(batch.num_graphs)]
        return [
            batch.x[rows].numpy().tobytes() + _edges_within(batch.graph.edge_index, rows)
            for rows in members
        ]
    lengths = getattr(batch, "lengths", None)
    rows = batch.x.numpy()
    if lengths is None:
        return [row.tobytes() for row in rows]
    return [row[:steps].tobytes() for row, steps in zip(rows, lengths.tolist(), strict=True)]


def _edges_within(edges: Tensor, rows: Tensor) -> bytes:
    """Return the edges between the nodes of one graph, counted from its first node, as bytes."""
    number = rows.cumsum(0) - 1
    found: bytes = number[edges[:, rows[edges[0]]]].numpy().tobytes()
    return found


def _epoch(task: Task, seed: int, epoch: int) -> list[bytes]:
    """Return identifiers of the samples of a training epoch, in order."""
    batches = task.loaders(seed, BATCH).train(epoch)
    return [sample for batch in batches for sample in _samples(batch)]


@_check()
def sizes_are_those_stated(make: Callable[[], Task]) -> None:
    """``sizes`` are the numbers of samples of the three parts."""
    task = make()
    splits = task.splits()
    found = {name: len(part) for name, part in splits._asdict().items() if part is not None}
    stated = {name: task.sizes[name] for name in found}
    expect(found == stated, f"parts of {stated}", found)


@_check()
def batches_have_the_shapes_stated(make: Callable[[], Task]) -> None:
    """Inputs are finite float32 of ``input_size`` features, or int64 numbers of words below it.

    Targets match the ``target`` of the task.
    """
    task = make()
    loaders = task.loaders(0, BATCH)
    for batches in (loaders.train(0), loaders.valid, loaders.test):
        if not len(batches):
            continue
        batch = batches[0]
        x, y = batch.x, batch.y
        if task.tokens:
            fits = x.dtype == torch.int64 and 0 <= int(x.min()) and int(x.max()) < task.input_size
            expect(fits, f"int64 [B, T] below {task.input_size}", f"{x.dtype} {list(x.shape)}")
        else:
            fits = x.dtype == torch.float32 and x.shape[-1] == task.input_size
            expect(fits, f"float32 [..., {task.input_size}]", f"{x.dtype} {list(x.shape)}")
        expect(bool(x.isfinite().all()), "finite inputs", "NaN or infinity")
        if task.target == "class":
            inside = y.dtype == torch.int64 and 0 <= y.min() and y.max() < task.output_size
            expect(bool(inside), f"int64 classes below {task.output_size}", y)
        else:
            fits = y.dtype == torch.float32 and y.shape[-1] == task.output_size
            expect(fits, f"float32 [..., {task.output_size}]", f"{y.dtype} {list(y.shape)}")


@_check()
def parts_share_no_sample(make: Callable[[], Task]) -> None:
    """No sample of one part is in another."""
    task = make()
    loaders = task.loaders(0, BATCH)
    parts = {"training": set(_epoch(task, 0, 0))}
    for name, batches in (("validation", loaders.valid), ("test", loaders.test)):
        found = {sample for batch in batches for sample in _samples(batch)}
        for other, samples in parts.items():
            shared = len(found & samples)
            expect(shared == 0, f"nothing of the {other} part in the {name} part", shared)
        parts[name] = found


@_check()
def order_is_that_of_seed_and_epoch(make: Callable[[], Task]) -> None:
    """Training samples come once an epoch, in an order that seed and epoch alone decide.

    If a state is carried from batch to batch, the order is the same in every epoch.
    """
    task = make()
    first = _epoch(task, 0, 0)
    expect(_epoch(make(), 0, 0) == first, "the same order in another task", "another")
    if task.carries_state:
        expect(_epoch(task, 1, 1) == first, "the same order in every epoch", "another")
        return
    if len(task.loaders(0, BATCH).train(0)) == 1:  # one graph, or few samples: no order to see
        return
    for seed, epoch in ((0, 1), (1, 0)):
        expect(_epoch(task, seed, epoch) != first, f"another order, {seed=}, {epoch=}", "the same")
    train = task.splits().train
    if train is not None:
        expect(len(first) == len(train), f"{len(train)} samples an epoch", len(first))
        expect(sorted(_epoch(task, 0, 1)) == sorted(first), "the same samples", "others")


@_check()
def evaluation_is_fixed(make: Callable[[], Task]) -> None:
    """Validation and test batches do not depend on the seed."""
    first, second = make().loaders(0, BATCH), make().loaders(1, BATCH)
    for name in ("valid", "test"):
        one, other = (
            [sample for batch in getattr(loaders, name) for sample in _samples(batch)]
            for loaders in (first, second)
        )
        expect(one == other, f"the same {name} batches for every seed", "others")


@_check()
def global_random_state_stays(make: Callable[[], Task]) -> None:
    """A task draws from generators of its own."""
    before = _global_states()
    _epoch(make(), 1, 2)
    same = _global_states() == before
    expect(same, "torch's and NumPy's global random states as they were", "others")


def _global_states() -> bytes:
    return pickle.dumps((torch.get_rng_state().tolist(), np.random.get_state()))  # noqa: NPY002
