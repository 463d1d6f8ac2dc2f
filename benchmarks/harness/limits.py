"""What the machine can do at most, what a training step needs at least, and the distance."""

from __future__ import annotations

import math
import mmap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from anharmonic import diagnostics
from harness.cases import CASES, OURS, Case
from harness.speed_report import about, markdown_table

REAL = 4
"""Bytes of a float32."""


@dataclass(frozen=True)
class Needs:
    """What one training step cannot do without.

    Args:
        product: Floating-point operations of matrix products.
        tanh: Values of tanh; a sigmoid counts as one.
        memory: Bytes that pass between memory and processor.
        fresh: Bytes of memory that the system hands out anew.
    """

    product: int
    tanh: int
    memory: int
    fresh: int


def needs(case: Case) -> Needs:
    """Counts a training step: forward, backward, the whole output, loss on its last step.

    Products: those of the forward pass; in the backward pass the gradient by the states, by the
    weights and, above the first layer, by the layer's input. Every tanh is counted once, as if
    nothing were computed again. Memory: the input is read twice; each layer's output, and LEM's
    second state, is written once and read once; the gradient of the whole output, which autograd
    makes, likewise. Fresh are outputs, states and that gradient.

    Args:
        case: A case of a whole sequence.

    Example:
        >>> needs(Case("one", "UnICORNN", 1, 2, 3, 5, 1, 1))
        Needs(product=120, tanh=30, memory=560, fresh=240)
    """
    H = case.hidden
    gates, recurrent, states = {
        "UnICORNN": (1, 0, 1),  # V u; w y is no product; z follows from y
        "CoRNN": (1, 2, 1),  # V u; W y and 𝒲 z
        "LEM": (4, 4, 2),  # four blocks each; z is a state of its own
    }[case.model]
    steps = case.steps * case.batch
    product = 0
    for layer in range(case.layers):
        width = case.inputs if layer == 0 else H
        input_product = 2 * gates * H * width
        passes = 2 if layer == 0 else 3
        product += steps * (passes * input_product + 3 * 2 * recurrent * H * H)
    kept = steps * H * case.layers * states
    gradient = steps * H
    return Needs(
        product=product,
        tanh=steps * H * case.layers * gates,
        memory=REAL * (2 * (kept + gradient) + 2 * steps * case.inputs),
        fresh=REAL * (kept + gradient),
    )


def measure(threads: Sequence[int] = (1, 2), *, quick: bool = False) -> dict[str, Any]:
    """Measures the limits of this machine: the best of 21 turns.

    Args:
        threads: Numbers of threads.
        quick: Small sizes, to try it; its numbers say nothing.

    Returns:
        JSON values: ``machine``, ``versions``, and ``limits`` by number of threads: ``product``
        and ``small_product`` (GFLOP/s of a large float32 product, and of one of 4 rows by 128 by
        128, which one thread makes), ``memory`` (GB/s of a copy, read and write counted),
        ``tanh`` (billions a second from cache), ``fresh``
        (GB/s of first touch of new memory).

    Example:
        >>> sorted(measure([1], quick=True)["limits"]["1"])
        ['fresh', 'memory', 'product', 'small_product', 'tanh']
    """
    before = torch.get_num_threads()
    found = {}
    try:
        torch.set_num_threads(1)
        single = _single(quick)
        for count in threads:
            torch.set_num_threads(count)
            several = {"tanh": single["tanh"] * count, "fresh": single["fresh"] * count}
            found[str(count)] = {
                "product": _product(256 if quick else 2048),
                "small_product": single["small_product"],
                "memory": _copy(1 << (18 if quick else 26)),
                **several,
            }
    finally:
        torch.set_num_threads(before)
    return {
        "machine": diagnostics.cpu(),
        "versions": diagnostics.versions(["torch"]),
        "limits": found,
    }


def at_least(case: Case, limits: Mapping[str, float]) -> dict[str, float]:
    """Seconds that each need of a training step takes at the machine's limit, and ``all``.

    Arithmetic and memory traffic can overlap, products and tanh share the processor: all =
    max(product + tanh, memory). New memory is not in it: how much of it is new depends on what
    the allocator still holds.

    Args:
        case: A case of a whole sequence.
        limits: One entry of ``limits`` of `measure`.

    Example:
        >>> limits = {"product": 1.0, "tanh": 1.0, "memory": 1.0, "fresh": 1.0}
        >>> found = at_least(Case("one", "UnICORNN", 1, 2, 3, 5, 1, 1), limits)
        >>> round(found["all"] * 1e9)
        560
    """
    wanted = needs(case)
    seconds = {
        name: getattr(wanted, name) / (limits[name] * 1e9)
        for name in ("product", "tanh", "memory", "fresh")
    }
    arithmetic = seconds["product"] + seconds["tanh"]
    return {**seconds, "all": max(arithmetic, seconds["memory"])}


def table(result: Mapping[str, Any], bench: Mapping[str, Any] | None = None) -> str:
    """Limits and cases in Markdown, with the distance of measured times where they are given.

    Args:
        result: What `measure` returns.
        bench: What `speed.measure` returns, from the same machine; None leaves times out.
    """
    limits = [
        ["threads", "large product", "product of 4 rows, one thread", "copy", "tanh", "new memory"]
    ]
    for count, one in result["limits"].items():
        limits.append(
            [
                count,
                f"{one['product']:.0f} GFLOP/s",
                f"{one['small_product']:.0f} GFLOP/s",
                f"{one['memory']:.1f} GB/s",
                f"{one['tanh']:.2f} G/s",
                f"{one['fresh']:.2f} GB/s",
            ]
        )
    heads = ["product", "tanh", "memory", "at least", "if all memory is new", "measured", "times"]
    cases = [["case", "threads", *heads]]
    measured = _measured(bench)
    for case in CASES:
        if "training" not in case.modes:
            continue
        for count, one in result["limits"].items():
            took = measured.get((case.name, int(count)))
            of = at_least(case, one)
            parts = [of[name] for name in ("product", "tanh", "memory", "all", "fresh")]
            parts[-1] += of["all"]
            ends = ["–", "–"] if took is None else [f"{1e3 * took:.1f}", f"{took / of['all']:.1f}"]
            cases.append([case.title, count, *(f"{1e3 * part:.2f}" for part in parts), *ends])
    said = f"Milliseconds a training step; {about(result)}"
    return "\n\n".join([markdown_table(limits), markdown_table(cases), said])


def _measured(bench: Mapping[str, Any] | None) -> dict[tuple[str, int], float]:
    """Our seconds of a training step, of the sizes of `CASES` (a quick run has others)."""
    sizes = {case.name: (case.batch, case.hidden, case.steps) for case in CASES}
    return {
        (one["case"], one["threads"]): one["seconds"][OURS]
        for one in (bench or {"measurements": ()})["measurements"]
        if one["mode"] == "training"
        and sizes.get(one["case"]) == (one["batch"], one["hidden"], one["steps"])
    }


def _seconds(turn: Callable[[], object], turns: int = 21) -> float:
    """The shortest time: other work on the machine only makes it longer."""
    best = math.inf
    for _ in range(turns):
        start = time.perf_counter()
        turn()
        best = min(best, time.perf_counter() - start)
    return best


def _single(quick: bool) -> dict[str, float]:
    """What is measured on one thread."""
    loop = 10 if quick else 500
    a, b, out = torch.randn(4, 128), torch.randn(128, 128), torch.empty(4, 128)

    def small() -> None:
        for _ in range(loop):
            torch.mm(a, b, out=out)

    values = torch.randn(8192)  # 32 KB
    results = torch.empty_like(values)

    def tanh() -> None:
        for _ in range(loop):
            torch.tanh(values, out=results)

    return {
        "small_product": 2 * 4 * 128 * 128 * loop / _seconds(small) / 1e9,
        "tanh": values.numel() * loop / _seconds(tanh) / 1e9,
        "fresh": _first_touch(1 << (20 if quick else 24)),
    }


def _product(size: int) -> float:
    a, b, out = torch.randn(size, size), torch.randn(size, size), torch.empty(size, size)
    return 2 * size**3 / _seconds(lambda: torch.mm(a, b, out=out)) / 1e9


def _copy(count: int) -> float:
    source, target = torch.ones(count), torch.ones(count)
    return 2 * REAL * count / _seconds(lambda: target.copy_(source)) / 1e9


def _first_touch(size: int) -> float:
    """GB/s at which new memory becomes usable: what its first fill takes longer than its second."""
    extra = []
    for _ in range(21):
        with mmap.mmap(-1, size) as pages:
            values = np.frombuffer(pages, dtype=np.float32)
            first = _seconds_once(values)
            extra.append(first - _seconds_once(values))
            del values
    return size / max(min(extra), 1e-9) / 1e9


def _seconds_once(values: Any) -> float:
    start = time.perf_counter()
    values.fill(1.0)
    return time.perf_counter() - start
