"""How fast a training step and a streamed step of a few sequences are, beside ``nn.LSTM``."""

import itertools

import torch

from cpu import OURS, STREAM_STEPS, work
from harness import speed
from harness.results import Cases, Options, Result, caption, markdown_table, plural
from harness.speed import LSTM, Case, medians

MODELS = ("LEM", "CoRNN", "UnICORNN")
BATCHES = (1, 2, 3, 4, 8)


def cases(options: Options) -> Cases:
    found: Cases = {}
    for hidden, steps, threads in itertools.product((32, 128), (100, 1000, 1), (1, 2)):
        if steps == 1 and threads == 2:
            continue
        length = "one step" if steps == 1 else f"T {steps:,}"
        for batch in (1,) if steps == 1 else BATCHES:
            name = f"H {hidden}, {length}, {plural(threads, 'thread')}, B {batch}"
            found[name] = (speed.isolated, times, batch, hidden, steps, threads, options.quick)
    return found


def times(batch: int, hidden: int, steps: int, threads: int, quick: bool) -> Result:
    """Return the median seconds of every entrant; they take turns for a second at least."""
    sizes = {"batch": batch, "hidden": hidden, "steps": steps, "threads": threads}
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    if quick:
        hidden, steps = 8, min(steps, 20)
    mode, length = ("streaming", STREAM_STEPS) if steps == 1 else ("training", steps)
    turns = {}
    for model in (LSTM, *MODELS):
        case = Case(MODELS[0] if model == LSTM else model, 1, batch, hidden, steps)
        turns[model] = work(LSTM if model == LSTM else OURS, case, mode, length)
    found = medians(turns, 5, warm_up=2, least_seconds=0.0 if quick else 1.0)
    each = length if steps == 1 else 1
    return {**sizes, "seconds": {name: value / each for name, value in found.items()}}


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
