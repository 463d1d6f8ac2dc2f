"""How fast a training step and a streamed step of a few sequences are, beside ``nn.LSTM``."""

from __future__ import annotations

import functools
import itertools
from argparse import Namespace
from collections.abc import Callable

import torch

from cpu import OURS, STREAM_STEPS, Case, work
from harness import isolated
from harness.results import Result, caption, markdown_table, plural
from harness.speed import LSTM, medians

PACKAGES = ("torch",)
PAGES = {"small-batches": ("benchmarks/README.md",)}
MODELS = ("LEM", "CoRNN", "UnICORNN")
BATCHES = (1, 2, 3, 4, 8)


def cases(options: Namespace) -> dict[str, Callable[[], Result]]:
    found: dict[str, Callable[[], Result]] = {}
    for hidden, steps, threads in itertools.product((32, 128), (100, 1000, 1), (1, 2)):
        if steps == 1 and threads == 2:
            continue
        length = "one step" if steps == 1 else f"T {steps:,}"
        for batch in (1,) if steps == 1 else BATCHES:
            sizes = {"batch": batch, "hidden": hidden, "steps": steps, "threads": threads}
            name = f"H {hidden}, {length}, {plural(threads, 'thread')}, B {batch}"
            found[name] = functools.partial(_measure, sizes, options.quick)
    return found


def _measure(sizes: dict[str, int], is_quick: bool) -> Result:
    small = {"hidden": 8, "steps": min(sizes["steps"], 20)} if is_quick else {}
    seconds = isolated.run(times, **{**sizes, **small}, seconds=0.0 if is_quick else 1.0)
    return {**sizes, "seconds": seconds}


def times(batch: int, hidden: int, steps: int, threads: int, seconds: float) -> dict[str, float]:
    """Return the median seconds of every entrant, which take turns for so many seconds."""
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    mode, length = ("streaming", STREAM_STEPS) if steps == 1 else ("training", steps)
    turns = {}
    for model in (LSTM, *MODELS):
        case = Case("", MODELS[0] if model == LSTM else model, 1, batch, hidden, steps)
        turns[model] = work(LSTM if model == LSTM else OURS, case, mode, length)
    found = medians(turns, 5, warm_up=2, least_seconds=seconds)
    each = length if steps == 1 else 1
    return {name: value / each for name, value in found.items()}


def tables(results: list[Result]) -> dict[str, str]:
    """The LSTM's time by ours, one row per size, one column per batch size."""
    rows = [[f"time of {LSTM} / ours", *(f"B {batch}" for batch in BATCHES)]]
    sizes = dict.fromkeys(one["case"].rpartition(", ")[0] for one in results)
    by_case = {one["case"]: one["seconds"] for one in results}
    for model, size in itertools.product(MODELS, sizes):
        measured = [by_case.get(f"{size}, B {batch}") for batch in BATCHES]
        ratios = [f"{one[LSTM] / one[model]:.2f}" if one else "" for one in measured]
        rows.append([f"{model}, {size}", *ratios])
    return {"small-batches": f"{markdown_table(rows)}\n\n{caption(results)}"}
