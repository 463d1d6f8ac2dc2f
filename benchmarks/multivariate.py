"""Resonators and their rivals on series of several channels.

    OMP_NUM_THREADS=1 python benchmarks/bench.py multivariate

BasicMotions and JapaneseVowels come with aeon, with their official splits. The recordings of
watch_imu, from ``sequence/`` in ANHARMONIC_DATA, are split by subject. aeon needs the environment
that the question ``ucr`` describes. Ours read series of their own lengths; rivals read zeros after
the end.
"""

import statistics

import learning
import ucr
from harness.results import Cases, Options, Result, caption, markdown_table

PACKAGES = ucr.PACKAGES
SETS = ("BasicMotions", "JapaneseVowels", "watch_imu")
METHODS = tuple(method for method in ucr.METHODS if method != "resonators 0.1")


def cases(options: Options) -> Cases:
    ucr.on_one_thread("multivariate needs")
    seeds = range(1 if options.quick else ucr.SEEDS)
    return {
        f"{name}, {method}": (measure, name, method, seeds)
        for name in SETS
        for method in METHODS
        if method in ucr.classifiers()
    }


def measure(name: str, method: str, seeds: range) -> Result:
    """Test accuracies of all seeds, mean CPU seconds, and the sizes of a set."""
    data = learning.load(name)
    parts = learning.parts_of(data)
    ucr.warm_up(method, data["train"].x.shape[1])
    found = [ucr.tested(method, parts, seed) for seed in seeds]
    return {
        "accuracy": [one["accuracy"] for one in found],
        "seconds": round(statistics.fmean(one["seconds"] for one in found), 3),
        "facts": learning.sizes(data),
    }


def tables(results: list[Result]) -> dict[str, str]:
    by_case = {one["case"]: one for one in results}
    methods = [m for m in METHODS if any(case.endswith(f", {m}") for case in by_case)]
    rows = [["set", "train / test series, steps, channels, classes", *methods]]
    for name in SETS:
        found = [by_case.get(f"{name}, {method}") for method in methods]
        if not any(found):
            continue
        facts = next(one["facts"] for one in found if one)
        rows.append([name, learning.facts(*facts), *map(_cell, found)])
    about = (
        "Test accuracy in percent, mean and range of seeds; then CPU seconds of fit and predict. "
        f"{caption(results)}"
    )
    return {"multivariate": f"{markdown_table(rows, left=2)}\n\n{about}"}


def _cell(one: Result | None) -> str:
    if one is None:
        return "–"
    percents = [100 * value for value in one["accuracy"]]
    spread = f" ({min(percents):.1f}-{max(percents):.1f})" if len(percents) > 1 else ""
    return f"{statistics.fmean(percents):.1f}{spread}, {one['seconds']:.1f} s"
