"""What this machine can do at most, what a training step needs at least, and the distance."""

from __future__ import annotations

import functools
import mmap
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from cpu import CASES, OURS, Case
from harness import isolated
from harness.results import Result, caption, markdown_table, plural, read

PACKAGES = ("torch",)
PAGES = {"limits": ("benchmarks/README.md",)}
REAL = 4
"""Bytes of a float32."""


def cases(options: Namespace) -> dict[str, Callable[[], Result]]:
    return {
        plural(threads, "thread"): functools.partial(
            isolated.run, "limits:measure", threads=threads, quick=options.quick
        )
        for threads in (1, 2)
    }


def needs(case: Case) -> dict[str, int]:
    """Count a training step: forward, backward, the whole output, loss on its last step.

    Products: those of the forward pass; in the backward pass the gradient by the states, by the
    weights and, above the first layer, by the layer's input. Every tanh (or sigmoid) is counted
    once, as if nothing were computed again. Memory, in bytes: the input is read twice; each layer's
    output, and LEM's second state, is written once and read once; the gradient of the whole output,
    which autograd makes, likewise. Fresh are outputs, states and that gradient.

    Example:
        >>> needs(Case("one", "UnICORNN", 1, 2, 3, 5))
        {'product': 120, 'tanh': 30, 'memory': 560, 'fresh': 240}
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
        width, passes = (case.inputs, 2) if layer == 0 else (H, 3)
        product += steps * (passes * 2 * gates * H * width + 3 * 2 * recurrent * H * H)
    kept, gradient = steps * H * case.layers * states, steps * H
    return {
        "product": product,
        "tanh": steps * H * case.layers * gates,
        "memory": REAL * (2 * (kept + gradient) + 2 * steps * case.inputs),
        "fresh": REAL * (kept + gradient),
    }


def at_least(case: Case, limits: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds that each need takes at the machine's limit, and ``all``.

    Arithmetic and memory traffic can overlap, products and tanh share the processor: all =
    max(product + tanh, memory). New memory is not in it: how much of it is new depends on what the
    allocator still holds.
    """
    seconds = {name: count / (limits[name] * 1e9) for name, count in needs(case).items()}
    return {**seconds, "all": max(seconds["product"] + seconds["tanh"], seconds["memory"])}


def measure(threads: int, quick: bool) -> dict[str, float]:
    """Measure the limits of this machine, each the best of 21 turns.

    They are ``product`` and ``small_product`` in GFLOP/s (of a large float32 product, and on one
    thread of 4 rows by 128 by 128), ``memory`` in GB/s of a copy (read and write), ``tanh`` in
    billions a second from cache, ``fresh`` in GB/s of the first touch of new memory. The last two
    are measured on one thread and multiplied by the threads.
    """
    torch.set_num_threads(1)
    loop = 10 if quick else 500
    a, b, out = torch.randn(4, 128), torch.randn(128, 128), torch.empty(4, 128)
    small = _seconds(lambda: [torch.mm(a, b, out=out) for _ in range(loop)])
    values, results = torch.randn(8192), torch.empty(8192)  # 32 KB
    tanh = _seconds(lambda: [torch.tanh(values, out=results) for _ in range(loop)])
    fresh = _first_touch(1 << (20 if quick else 24))
    torch.set_num_threads(threads)
    size, count = (256, 1 << 18) if quick else (2048, 1 << 26)
    left, right, product = (torch.randn(size, size) for _ in range(3))
    source, target = torch.ones(count), torch.ones(count)
    large = _seconds(lambda: torch.mm(left, right, out=product))
    copy = _seconds(lambda: target.copy_(source))
    return {
        "product": 2 * size**3 / large / 1e9,
        "small_product": 2 * 4 * 128 * 128 * loop / small / 1e9,
        "memory": 2 * REAL * count / copy / 1e9,
        "tanh": threads * 8192 * loop / tanh / 1e9,
        "fresh": threads * fresh / 1e9,
    }


def _seconds(turn: Callable[[], object], turns: int = 21) -> float:
    """The shortest time: other work on the machine only makes it longer."""
    taken = []
    for _ in range(turns):
        start = time.perf_counter()
        turn()
        taken.append(time.perf_counter() - start)
    return min(taken)


def _first_touch(size: int) -> float:
    """Bytes a second at which new memory becomes usable: its first fill less its second."""
    extra = []
    for _ in range(21):
        with mmap.mmap(-1, size) as pages:
            values: Any = np.frombuffer(pages, dtype=np.float32)
            first = _seconds(lambda v=values: v.fill(1.0), turns=1)
            extra.append(first - _seconds(lambda v=values: v.fill(1.0), turns=1))
            del values
    return size / max(min(extra), 1e-9)


def tables(results: list[Result]) -> dict[str, str]:
    """Limits and needs, with the distance of the training steps stored for ``cpu``."""
    heads = ["large product", "product of 4 rows, one thread", "copy", "tanh", "new memory"]
    limits = [["threads", *heads]]
    for one in results:
        limits.append(
            [
                one["case"].split()[0],
                f"{one['product']:.0f} GFLOP/s",
                f"{one['small_product']:.0f} GFLOP/s",
                f"{one['memory']:.1f} GB/s",
                f"{one['tanh']:.2f} G/s",
                f"{one['fresh']:.2f} GB/s",
            ]
        )
    heads = ["product", "tanh", "memory", "at least", "if all memory is new"]
    heads += ["measured", "measured / at least"]
    rows = [["training step, ms", "threads", *heads]]
    measured = {
        (one["name"], str(one["threads"])): one["seconds"][OURS]
        for one in read("cpu")
        if one["mode"] == "training"
    }
    for case in CASES.values():
        if "training" not in case.modes:
            continue
        for one in results:
            threads = one["case"].split()[0]
            took = measured.get((case.name, threads))
            least = at_least(case, one)
            parts = [least[name] for name in ("product", "tanh", "memory", "all")]
            parts.append(least["fresh"] + least["all"])
            distance = (
                ["–", "–"] if took is None else [f"{1e3 * took:.1f}", f"{took / least['all']:.1f}"]
            )
            rows.append([case.title, threads, *(f"{1e3 * part:.2f}" for part in parts), *distance])
    about = f"G/s: 10⁹ values per second. {caption(results)}"
    return {"limits": "\n\n".join([markdown_table(limits), markdown_table(rows), about])}
