"""ResonatorClassifier beside MiniRocket and MultiRocketHydra: accuracy, and CPU seconds in turns.

    OMP_NUM_THREADS=1 python benchmarks/resonators_rivals.py SETS [--only NAME] [--write]

``SETS`` is the folder that ``learning_sets.py`` wrote. Runs in an environment with aeon and this
package, which is installed there without its constraints, and on one thread. After each has run
once on a set they take turns, seed by seed; fit and predict are timed. ``--write`` puts the numbers
into resonators.json and the table into docs/resonators.md; sets that are not asked for keep theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import anharmonic as ah
from anharmonic.estimators import ResonatorClassifier
from resonators import JSON, load, write

MEANS = {"fsdd": 4}
"""Of so many successive samples the mean is taken, for all: MiniRocket pads to the longest."""
SHORTEST = 9
"""MiniRocket takes no shorter series."""
COLUMNS = ("resonators", "MiniRocket", "MultiRocketHydra")
Part = tuple[list[np.ndarray], np.ndarray]


def makers() -> dict[str, Callable[[int], Any]]:
    """Makes each classifier from a seed."""
    from aeon.classification.convolution_based import (
        MiniRocketClassifier,
        MultiRocketHydraClassifier,
    )

    return {
        "resonators": lambda seed: ResonatorClassifier(random_state=seed, n_jobs=1),
        "MiniRocket": lambda seed: MiniRocketClassifier(random_state=seed, n_jobs=1),
        "MultiRocketHydra": lambda seed: MultiRocketHydraClassifier(random_state=seed, n_jobs=1),
    }


def thinned(series: np.ndarray, number: int) -> np.ndarray:
    """Means of so many successive samples of [T, C]."""
    whole = len(series) // number * number
    return series[:whole].reshape(-1, number, series.shape[1]).mean(1)


def padded(parts: dict[str, list[np.ndarray]]) -> dict[str, np.ndarray]:
    """Arrays [n, C, T] with zeros after the end of shorter series, as MiniRocket needs them."""
    longest = max(SHORTEST, *(len(one) for part in parts.values() for one in part))
    found = {}
    for name, part in parts.items():
        found[name] = np.zeros((len(part), part[0].shape[1], longest), np.float32)
        for row, one in zip(found[name], part, strict=True):
            row[:, : len(one)] = one.T
    return found


def measure(sets: dict[str, Part], seeds: int, names: list[str]) -> dict[str, Any]:
    """Test accuracies in percent and seconds of fit and predict, of each classifier."""
    ours = {part: [one.T for one in series] for part, (series, _) in sets.items()}
    theirs = padded({part: series for part, (series, _) in sets.items()})
    found: dict[str, Any] = {name: {"accuracy": [], "cpu": []} for name in names}
    made = makers()
    few = np.arange(len(theirs["train"])) % max(1, len(theirs["train"]) // 100) == 0
    for name in names:  # what the first call compiles and loads
        x = ours if name == "resonators" else theirs
        model = made[name](0)
        model.fit([one for one, is_in in zip(x["train"], few, strict=True) if is_in]
                  if name == "resonators" else x["train"][few], sets["train"][1][few])  # fmt: skip
        model.predict(x["test"][:2])
    for seed in range(seeds):
        for name in names:
            x, model = ours if name == "resonators" else theirs, made[name](seed)
            began = time.process_time()
            model.fit(x["train"], sets["train"][1])
            right = model.predict(x["test"]) == sets["test"][1]
            found[name]["cpu"].append(round(time.process_time() - began, 3))
            found[name]["accuracy"].append(round(100 * float(np.mean(right)), 2))
    return found


def table(results: dict[str, Any]) -> str:
    """A set a line: accuracies, then seconds."""
    head = [*COLUMNS, *(f"{name} s" for name in COLUMNS)]
    lines = [f"| set | {' | '.join(head)} |", "| --- |" + " ---: |" * len(head)]
    for name, one in results.items():
        cells = [spread(one[c]["accuracy"]) if c in one else "–" for c in COLUMNS]
        cells += [
            f"{statistics.median(one[c]['cpu']):.2f}" if "cpu" in one.get(c, {}) else "–"
            for c in COLUMNS
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def spread(values: list[float]) -> str:
    """Mean and standard deviation."""
    deviation = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}{deviation}"


def caption(results: dict[str, Any]) -> str:
    """Where, with what and under which load the numbers were measured."""
    loads = [one["load"] for one in results.values()]
    few = {name: len(one["resonators"]["accuracy"]) for name, one in results.items()}
    most = max(few.values())
    fewer = [f"{name} {number}" for name, number in few.items() if number < most]
    seeds = f"{most} seeds" + (f" ({', '.join(fewer)})" if fewer else "")
    machine = next(iter(results.values()))["machine"]
    thin = [f"{name}: means of {number} samples" for name, number in MEANS.items()]
    return (
        f"Test accuracy in percent, mean ± standard deviation of {seeds}; median CPU seconds of "
        f"fit and predict on one thread, in turns after a warm-up. {machine}; load average "
        f"meanwhile {min(loads):.1f} to {max(loads):.1f}. {'; '.join(thin)}."
    )


def main() -> None:
    """Measures, prints and perhaps writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="+", help="names of sets")
    parser.add_argument("--without", nargs="+", default=[], help="classifiers to leave out")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":
        parser.error("set OMP_NUM_THREADS=1: NumPy reads it when it starts")
    warnings.filterwarnings("ignore", module="sklearn")  # fewer series than features
    torch.set_num_threads(1)
    import aeon

    paths = sorted(asked.sets.glob("*.npz"), key=lambda path: path.stat().st_size)
    names = [name for name in COLUMNS if name not in asked.without]
    for path in paths:
        if asked.only and path.stem not in asked.only:
            continue
        sets = load(path)
        if path.stem in MEANS:
            number = MEANS[path.stem]
            sets = {k: ([thinned(one, number) for one in x], y) for k, (x, y) in sets.items()}
        found = measure(sets, asked.seeds, names)
        found["load"] = round(os.getloadavg()[1], 1)  # of the last five minutes
        found["machine"] = (
            f"{platform.machine()}, {os.cpu_count()} cores, anharmonic {ah.__version__}, "
            f"aeon {aeon.__version__}, torch {torch.__version__}"
        )
        known = json.loads(JSON.read_text()).get("rivals", {}) if JSON.exists() else {}
        results = known | {path.stem: known.get(path.stem, {}) | found}
        print(path.stem, found, flush=True)
        if asked.write:
            write("rivals", f"{table(results)}\n\n{caption(results)}", results)


if __name__ == "__main__":
    main()
