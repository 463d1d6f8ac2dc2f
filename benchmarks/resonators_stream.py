"""What a sample of a stream costs: resonators, and MiniRocket on a sliding window.

    OMP_NUM_THREADS=1 python benchmarks/resonators_stream.py

Runs in an environment with aeon and this package, on one thread. A stream of 1,000 resonators takes
a sample with ``update`` and answers with ``predict_proba`` whenever it is asked. MiniRocket needs
its whole window for an answer: what an answer costs is the transform and the linear model of one
window. Numbers of noise will do, as neither looks at them. Prints a table.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import anharmonic as ah
from anharmonic.estimators import ResonatorClassifier

CASES = ((1, 250), (6, 250), (6, 1000))
"""Channels and steps of a window."""
STREAMS = 32


def microseconds(work: Callable[[], Any], calls: int) -> float:
    """The median of so many calls, after one: what other processes take counts in few of them."""
    work()
    times = []
    for _ in range(calls):
        began = time.perf_counter()
        work()
        times.append(1e6 * (time.perf_counter() - began))
    return statistics.median(times)


def measure(channels: int, steps: int) -> dict[str, float]:
    """Microseconds of each part, for a window of so many steps."""
    from aeon.classification.convolution_based import MiniRocketClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, channels, steps)).astype(np.float32)
    y = np.arange(40) % 4
    model = ResonatorClassifier(random_state=0).fit(X, y)
    one, many = model.stream(), model.stream(STREAMS)
    sample, samples = X[:1, :, 0], X[:STREAMS, :, 0]
    for _ in range(steps):
        one.update(sample)
        many.update(samples)
    rival = MiniRocketClassifier(random_state=0, n_jobs=1).fit(X, y)
    torch.set_num_threads(1)  # the rival sets it, too
    return {
        "update": microseconds(lambda: one.update(sample), 2000),
        "update of many": microseconds(lambda: many.update(samples), 200) / STREAMS,
        "answer": microseconds(one.predict_proba, 100),
        "MiniRocket": microseconds(lambda: rival.predict(X[:1]), 50),
    }


def table(found: dict[str, dict[str, float]]) -> str:
    """A window a line."""
    lines = [
        f"| window | a sample | a sample, {STREAMS} streams | an answer | MiniRocket: an answer |",
        "| --- |" + " ---: |" * 4,
    ]
    lines += [
        f"| {name} | {' | '.join(f'{value:,.0f}' for value in one.values())} |"
        for name, one in found.items()
    ]
    return "\n".join(lines)


def main() -> None:
    """Measures and prints."""
    if os.environ.get("OMP_NUM_THREADS") != "1":
        sys.exit("set OMP_NUM_THREADS=1: NumPy reads it when it starts")
    warnings.filterwarnings("ignore", module="sklearn")  # fewer series than features
    torch.set_num_threads(1)
    found = {f"{c} channels, {t} steps": measure(c, t) for c, t in CASES}
    about = (
        f"Microseconds, medians, one thread; {platform.machine()}, {os.cpu_count()} cores, load "
        f"average {os.getloadavg()[0]:.1f}; anharmonic {ah.__version__}, 1,000 resonators."
    )
    print(f"{table(found)}\n\n{about}")


if __name__ == "__main__":
    main()
