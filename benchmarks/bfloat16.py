"""Training steps with products in bfloat16 on this CPU, beside float32 and ``nn.LSTM``."""

import functools
from collections.abc import Callable

import torch

from anharmonic import use_precision
from anharmonic.nn import model_class
from anharmonic.ops import library
from harness import speed
from harness.results import Cases, Options, Result, caption, duration, markdown_table, plural
from harness.speed import LSTM, Case, medians, training_step

REPEATS, ROUNDS = 9, 3
CASES = {
    "cornn": Case("CoRNN", 1, 32, 128, 1000, inputs=96),
    "lem": Case("LEM", 1, 32, 128, 1000, inputs=96),
    "unicornn": Case("UnICORNN", 3, 32, 128, 1000, inputs=96),
}
AMX, AVX512 = "bfloat16, AMX", "bfloat16, AVX512-BF16"


def cases(options: Options) -> Cases:
    return {name: (speed.isolated, times, name, options.quick) for name in CASES}


def times(name: str, quick: bool = False) -> Result:
    """Return seconds of a training step by precision, the best of the rounds' medians."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    case = CASES[name]
    steps, batch = (20, 2) if quick else (case.steps, case.batch)
    sizes = (case.inputs, case.hidden, case.layers)
    x = torch.randn(steps, batch, case.inputs)
    lstm = training_step(torch.nn.LSTM(*sizes), x)
    ours = training_step(model_class(case.model)(*sizes), x)
    turns: dict[str, Callable[[], None]] = {
        LSTM: lstm,
        f"{LSTM}, autocast": torch.autocast("cpu", torch.bfloat16)(lstm),
        "float32": ours,
    }
    if library.has_bfloat16():
        turns[AVX512] = functools.partial(_rounded, ours, False)
    if library.has_amx():
        turns[AMX] = functools.partial(_rounded, ours, True)
    rounds = [medians(turns, 1 if quick else REPEATS) for _ in range(1 if quick else ROUNDS)]
    seconds = {entrant: min(one[entrant] for one in rounds) for entrant in turns}
    return {"name": name, "seconds": seconds}


def _rounded(step: Callable[[], None], amx: bool) -> None:
    library.use_amx(amx)
    with use_precision("bfloat16"):
        step()
    library.use_amx(True)


def tables(results: list[Result]) -> dict[str, str]:
    columns = list(dict.fromkeys(entrant for one in results for entrant in one["seconds"]))
    rows = [["layer; batch, units, steps", *columns]]
    for one in results:
        case = CASES[one["name"]]
        stack = f", {plural(case.layers, 'layer')}" if case.layers > 1 else ""
        title = f"{case.model}{stack}; {case.batch}, {case.hidden}, {case.steps:,}"
        seconds = one["seconds"]
        shown = (duration(seconds[name]) if name in seconds else "–" for name in columns)
        rows.append([title, *shown])
    about = caption(
        results, f"1 thread, best of {ROUNDS} rounds, each the median of {REPEATS} turns"
    )
    return {"bfloat16": f"{markdown_table(rows)}\n\n{about}"}
