"""How fast the layers are on this CPU, beside ``torch.nn.LSTM`` and others."""

import functools
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from anharmonic import ops
from anharmonic.nn import model_class
from harness import speed
from harness.results import Cases, Options, Result, caption, duration, markdown_table, plural
from harness.speed import LSTM, Case, medians, training_step

PACKAGES = ("torchrecurrent",)
OURS, GRU, REFERENCE, PEER = "anharmonic", "nn.GRU", "reference", "torchrecurrent"
ENTRANTS = (LSTM, OURS, GRU, REFERENCE, PEER)
"""Who takes turns: what a user would pick instead, ours, and loops in PyTorch: ours and others."""
SLOW = (REFERENCE, PEER)
"""Loops in Python; they are left out where a turn takes more than `SLOW_SECONDS`."""
SLOW_SECONDS, STREAM_STEPS, REPEATS, ROUNDS = 4.0, 200, 7, 3
MODES = {
    "training": "Training step (forward and backward)",
    "inference": "Inference (forward under no_grad)",
    "streaming": "Streaming (one step of one sequence)",
}
CASES = {
    "unicornn-b32": Case("UnICORNN", 1, 32, 128, 1000),
    "unicornn-3-layers": Case("UnICORNN", 3, 32, 128, 1000),
    "unicornn-long": Case("UnICORNN", 2, 8, 32, 17984),
    "cornn-b32": Case("CoRNN", 1, 32, 128, 1000),
    "cornn-b128": Case("CoRNN", 1, 128, 128, 1000),
    "cornn-long": Case("CoRNN", 1, 8, 32, 17984),
    "lem-b32": Case("LEM", 1, 32, 128, 1000),
    "lem-b128": Case("LEM", 1, 128, 128, 1000),
    "lem-long": Case("LEM", 1, 8, 32, 17984),
    "unicornn-streaming": Case("UnICORNN", 1, 1, 128, 1),
    "cornn-streaming": Case("CoRNN", 1, 1, 128, 1),
    "lem-streaming": Case("LEM", 1, 1, 128, 1),
}


def title(case: Case) -> str:
    stack = f" {case.layers} layers" if case.layers > 1 else ""
    length = "one step" if case.steps == 1 else f"T {case.steps:,}"
    return f"{case.model}{stack}, B {case.batch}, H {case.hidden}, {length}"


def modes(case: Case) -> tuple[str, ...]:
    return ("streaming",) if case.steps == 1 else ("training", "inference")


def cases(options: Options) -> Cases:
    apart, quick = speed.isolated, options.quick
    return {
        f"{name}, {mode}, {plural(threads, 'thread')}": (apart, times, name, mode, threads, quick)
        for name, case in CASES.items()
        for mode in modes(case)
        for threads in (1, 2)
    }


def small(case: Case) -> Case:
    """The same in small, to try the benchmark itself; its times say nothing."""
    sizes = {"batch": min(case.batch, 2), "hidden": 8, "steps": min(case.steps, 20)}
    return replace(case, **sizes)


def times(name: str, mode: str, threads: int, quick: bool = False) -> Result:
    """Return seconds by entrant, and why others have none.

    An entrant's time is the best of the rounds' medians; only the LSTM and ours take part in more
    than the first round. What ran before changes how long the system takes to hand out memory, and
    so the time of an LSTM: call this in a fresh process.
    """
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    case = small(CASES[name]) if quick else CASES[name]
    repeats, rounds = (1, 1) if quick else (REPEATS, ROUNDS)
    length = STREAM_STEPS if mode == "streaming" else case.steps
    turns, left_out = {}, {}
    for entrant in ENTRANTS:
        if entrant == PEER and importlib.util.find_spec(PEER) is None:
            left_out[entrant] = "not installed"
        elif entrant in SLOW and (guess := _guess(entrant, case, mode, length)) > SLOW_SECONDS:
            left_out[entrant] = f"about {guess:.0f} s"
        else:
            turns[entrant] = work(entrant, case, mode, length)
    best = medians(turns, repeats, slow=SLOW)
    for _ in range(1, rounds):
        again = medians({name: turns[name] for name in (LSTM, OURS)}, repeats)
        best |= {name: min(best[name], seconds) for name, seconds in again.items()}
    each = length if mode == "streaming" else 1
    seconds = {name: value / each for name, value in best.items()}
    facts = {"name": name, "mode": mode, "threads": threads}
    return {**facts, "seconds": seconds, "left_out": left_out}


def make(entrant: str, case: Case) -> nn.Module:
    """Return the layer of an entrant, for one feature."""
    sizes: Any = (1, case.hidden, case.layers)
    if entrant in (LSTM, GRU):
        return (nn.LSTM if entrant == LSTM else nn.GRU)(*sizes)
    if entrant == PEER:
        name = {"CoRNN": "coRNN"}.get(case.model, case.model)
        return getattr(importlib.import_module(PEER), name)(*sizes)
    return model_class(case.model)(*sizes)


def work(entrant: str, case: Case, mode: str, steps: int) -> Callable[[], object]:
    """Return a turn of an entrant; a turn of a stream is ``steps`` steps, one after the other."""
    layer, x = make(entrant, case), torch.randn(steps, case.batch, 1)
    step: Any = getattr(layer, "step", layer)
    samples = (x[:, None] if step is layer else x).unbind(0)

    def stream() -> None:
        state = None
        for x_t in samples:
            _, state = step(x_t, state)

    turn: Callable[[], object]
    if mode == "training":
        turn = training_step(layer, x)
    else:
        turn = torch.no_grad()(stream if mode == "streaming" else functools.partial(layer, x))
    return ops.use_backend(REFERENCE)(turn) if entrant == REFERENCE else turn


def _guess(entrant: str, case: Case, mode: str, length: int) -> float:
    """Seconds of a turn of a loop in Python, from a part of it."""
    part = min(length, 50)
    return medians({entrant: work(entrant, case, mode, part)}, 1)[entrant] * length / part


def ratio(result: Result, entrant: str = OURS) -> float:
    return result["seconds"][LSTM] / result["seconds"][entrant]


def tables(results: list[Result]) -> dict[str, str]:
    about = caption(
        results, f"float32, best of {ROUNDS} rounds, each the median of {REPEATS} turns"
    )
    explained = (
        "B is the number of sequences, H the hidden size and T the number of time steps. "
        f"A ratio is the time of `{LSTM}` divided by that of the layer, so above 1 the layer is "
        f"faster. `{REFERENCE}` is our layer as a loop in plain PyTorch. `{PEER}` is another "
        f"package with such loops. Loops above {SLOW_SECONDS:.0f} s were not measured: their cells "
        "estimate the seconds."
    )
    heads = ["layer and size", "threads", f"{LSTM}, time", f"{OURS}, time", "ratio"]
    heads += [f"{name}, ratio" for name in (GRU, *SLOW)]
    parts = [about, explained]
    for mode, heading in MODES.items():
        rows = [_row(one) for one in results if one["mode"] == mode]
        if rows:
            parts += [f"## {heading}", markdown_table([heads, *rows])]
    return {"bench": f"{_summary(results)}\n\n{about}", "cpu": "\n\n".join(parts)}


def _row(one: Result) -> list[str]:
    seconds, left_out = one["seconds"], one["left_out"]
    row = [title(CASES[one["name"]]), str(one["threads"])]
    row += [duration(seconds[LSTM]), duration(seconds[OURS]), f"{ratio(one):.2f}"]
    return row + [
        f"{ratio(one, name):.2g}" if name in seconds else left_out.get(name, "–")
        for name in (GRU, *SLOW)
    ]


def _summary(results: list[Result]) -> str:
    """The ratio of each training or streaming case, by number of threads."""
    wanted = [one for one in results if one["mode"] != "inference"]
    counts = sorted({one["threads"] for one in wanted})
    ratios = {(one["name"], one["threads"]): f"{ratio(one):.1f}" for one in wanted}
    rows = [[f"time of {LSTM} / ours", *(plural(count, "thread") for count in counts)]]
    for name in dict.fromkeys(name for name, _ in ratios):
        rows.append([title(CASES[name]), *(ratios.get((name, count), "–") for count in counts)])
    return markdown_table(rows)
