"""Resonators and their rivals on a folder of UCR data sets.

    OMP_NUM_THREADS=1 python benchmarks/bench.py ucr --data FOLDER --missing

FOLDER holds one ``NAME.npz`` for each set (x_train, y_train, x_test, y_test; shorter series end in
NaN) or the archive's folders ``NAME/NAME_TRAIN.tsv``. Gaps within a series are interpolated. Ours
read series of their own lengths; rivals, which need one length, read zeros after the end.

The rivals need aeon, which needs an older pandas than this package: measure in an environment of
its own, with ``pip install aeon torch safetensors``, and this package installed there with
``--no-deps``. Without aeon only ours are measured.
"""

import functools
import itertools
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
import torch

from anharmonic.estimators import ResonatorClassifier
from harness.results import Cases, Options, Result, caption, grouped, markdown_table

PACKAGES = ("aeon",)
PICTURE = "ucr-ranks.png"
OLD_POOLS = ("share", "run", "position", "largest", "end")
METHODS = ("resonators", "resonators 0.1", "MiniRocket", "MultiRocketHydra", "QUANT")
SHORTEST, SEEDS, FURTHEST = 9, 3, 5
"""The rivals take no shorter series; seeds of a measurement; sets that are named."""
Series = list[np.ndarray]
Parts = dict[str, tuple[Series, np.ndarray]]


def cases(options: Options) -> Cases:
    on_one_thread("ucr needs --data FOLDER, and", options.data is not None)
    return {
        f"{name}, {method}, seed {seed}": (measure, options.data, name, method, seed)
        for name, method in itertools.product(names_in(options.data), classifiers())
        for seed in range(1 if options.quick else SEEDS)
    }


def on_one_thread(needs: str, is_complete: bool = True) -> None:
    """Compute on one thread; exit with what a question needs if something is missing."""
    if not is_complete or os.environ.get("OMP_NUM_THREADS") != "1":
        sys.exit(f"{needs} OMP_NUM_THREADS=1, which NumPy reads at its start.")
    warnings.filterwarnings("ignore")  # of the rivals and of scikit-learn
    torch.set_num_threads(1)


def measure(folder: Path, name: str, method: str, seed: int) -> Result:
    """The test accuracy, and CPU seconds of fit and predict."""
    warm_up(method)
    found = tested(method, load(folder, name), seed)
    return {"set": name, "method": method, "seed": seed, **found}


@functools.cache
def warm_up(method: str, channels: int = 1) -> None:
    """Let a method compile what its first call compiles."""
    series = list(np.random.default_rng(0).normal(size=(20, channels, 50)).astype(np.float32))
    tested(method, dict.fromkeys(("train", "test"), (series, np.arange(20) % 2)), 0)


def tested(method: str, parts: Parts, seed: int) -> Result:
    is_ours = method.startswith("resonators")
    x = {part: series for part, (series, _) in parts.items()} if is_ours else padded(parts)
    model = classifiers()[method](seed)
    began = time.process_time()
    model.fit(x["train"], parts["train"][1])
    is_right = model.predict(x["test"]) == parts["test"][1]
    seconds = time.process_time() - began
    return {"accuracy": float(np.mean(is_right)), "seconds": round(seconds, 3)}


def names_in(folder: Path) -> list[str]:
    stored = {path.stem for path in folder.glob("*.npz")}
    return sorted(stored | {path.parent.name for path in folder.glob("*/*_TRAIN.tsv")})


def load(folder: Path, name: str) -> Parts:
    parts: Parts = {}
    stored = folder / f"{name}.npz"
    for part in ("train", "test"):
        if stored.exists():
            with np.load(stored) as data:
                rows, classes = data[f"x_{part}"], data[f"y_{part}"]
        else:
            table = np.loadtxt(folder / name / f"{name}_{part.upper()}.tsv", delimiter="\t")
            rows, classes = table[:, 1:], table[:, 0].astype(int)
        parts[part] = ([without_gaps(row) for row in rows.astype(np.float32)], classes)
    return parts


def without_gaps(row: np.ndarray) -> np.ndarray:
    """The series of a row: without NaN at its end, and with interpolated values for other NaN."""
    known = np.flatnonzero(~np.isnan(row))
    if not len(known):
        return np.zeros(1, np.float32)
    at = np.arange(known[-1] + 1)
    return np.interp(at, known, row[known]).astype(np.float32)


def padded(parts: Parts) -> dict[str, np.ndarray]:
    """Arrays [N, C, T] of series [T] or [C, T], with zeros after the end of shorter ones."""
    longest = max(SHORTEST, *(one.shape[-1] for series, _ in parts.values() for one in series))

    def with_end(one: np.ndarray) -> np.ndarray:
        return np.pad(np.atleast_2d(one), ((0, 0), (0, longest - one.shape[-1])))

    return {part: np.stack([*map(with_end, series)]) for part, (series, _) in parts.items()}


@functools.cache
def classifiers() -> dict[str, Callable[[int], Any]]:
    """A function from a seed to a classifier for each method that can run here."""
    ours = functools.partial(ResonatorClassifier, n_jobs=1)
    found: dict[str, Callable[[int], Any]] = {
        "resonators": lambda seed: ours(random_state=seed),
        "resonators 0.1": lambda seed: ours(pools=OLD_POOLS, random_state=seed),
    }
    try:
        from aeon.classification import convolution_based as convolutions
        from aeon.classification.interval_based import QUANTClassifier
    except ImportError as error:
        print(f"Without the rivals, because of aeon: {error}.", file=sys.stderr)
        return found
    mini, hydra = convolutions.MiniRocketClassifier, convolutions.MultiRocketHydraClassifier
    return found | {
        "MiniRocket": lambda seed: mini(random_state=seed, n_jobs=1),
        "MultiRocketHydra": lambda seed: hydra(random_state=seed, n_jobs=1),
        "QUANT": lambda seed: QUANTClassifier(random_state=seed),
    }


def matrix(results: list[Result]) -> tuple[list[str], list[str], np.ndarray, np.ndarray]:
    """Methods, ours first; sets on which each was measured; accuracies and seconds of both."""
    found = grouped(results, "method", "set")
    methods = [method for method in METHODS if any(method == known for known, _ in found)]
    names = sorted({name for _, name in found})
    names = [name for name in names if all((method, name) in found for method in methods)]
    accuracy, seconds = (
        np.array([[np.mean([one[key] for one in found[m, n]]) for m in methods] for n in names])
        for key in ("accuracy", "seconds")
    )
    return methods, names, accuracy, seconds


def mean_ranks(accuracy: np.ndarray) -> np.ndarray:
    """The mean rank of each method, 1 for the best; equals share theirs."""
    return np.asarray(scipy.stats.rankdata(-accuracy.round(6), axis=1).mean(axis=0))


def different(accuracy: np.ndarray, level: float = 0.05) -> np.ndarray:
    """Which pairs differ by Wilcoxon's signed-rank test, corrected after Holm."""
    number = accuracy.shape[1]
    pairs = list(itertools.combinations(range(number), 2))
    p = []
    for i, j in pairs:
        gap = (accuracy[:, i] - accuracy[:, j]).round(6)
        p.append(scipy.stats.wilcoxon(gap).pvalue if gap.any() else 1.0)
    found = np.zeros((number, number), bool)
    for place, at in enumerate(np.argsort(p)):
        if p[at] > level / (len(p) - place):
            break
        i, j = pairs[at]
        found[i, j] = found[j, i] = True
    return found


def draw(results: list[Result]) -> Any:
    """Mean ranks, the best on top, and bars that join what is not different."""
    import matplotlib.pyplot as plt

    methods, _, accuracy, _ = matrix(results)
    order, rows = np.argsort(mean_ranks(accuracy)), np.arange(len(methods))
    ranks, apart = mean_ranks(accuracy)[order], different(accuracy)[np.ix_(order, order)]
    figure, axes = plt.subplots(figsize=(6, 1 + 0.3 * len(rows)))
    axes.plot(ranks, rows, "ko")
    place, last = len(rows) + 0.2, 0
    for first in rows:
        end = max(e for e in rows[first:] if not apart[first : e + 1, first : e + 1].any())
        if end > max(first, last):
            axes.vlines(place, first - 0.1, end + 0.1, color="black", lw=4)
            place, last = place + 0.2, end
    axes.set_yticks(rows, [methods[i] for i in order])
    axes.invert_yaxis()
    axes.set_xlim(1, place)
    axes.set_xticks(range(1, len(rows) + 1))
    axes.set_xlabel("mean rank")
    axes.grid(axis="x")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def tables(results: list[Result]) -> dict[str, str]:
    methods, names, accuracy, seconds = matrix(results)
    ranks, percents = mean_ranks(accuracy), 100 * accuracy
    heads = ["method", "mean accuracy", "mean rank", "resonators win, draw, lose", "CPU seconds"]
    rows, seeds = [heads], []
    for i, method in enumerate(methods):
        gap = (accuracy[:, 0] - accuracy[:, i]).round(6)
        against = f"{(gap > 0).sum()}, {(gap == 0).sum()}, {(gap < 0).sum()}" if i else ""
        mean, taken = f"{percents[:, i].mean():.2f} %", f"{seconds[:, i].sum():,.0f}"
        rows.append([method, mean, f"{ranks[i]:.2f}", against, taken])
        seeds.append(f"{method} {len({r['seed'] for r in results if r['method'] == method})}")
    parts = [
        markdown_table(rows),
        f"{len(names)} sets, official splits; number of seeds: {', '.join(seeds)}. CPU seconds are "
        "those of fit and predict for all sets together, on one thread, mean of seeds. "
        f"{caption(results)}",
    ]
    if len(methods) > 1:
        gap = percents[:, 0] - percents[:, 1:].max(axis=1)
        order = np.argsort(gap)
        losses = [f"{names[i]} {gap[i]:+.0f}" for i in order[:FURTHEST] if gap[i] < 0]
        wins = [f"{names[i]} {gap[i]:+.0f}" for i in order[::-1][:FURTHEST] if gap[i] > 0]
        parts.append(
            "Accuracy of resonators minus that of the best other method, in points. Largest "
            f"losses: {', '.join(losses) or 'none'}. Largest wins: {', '.join(wins) or 'none'}."
        )
    return {"ucr": "\n\n".join([*parts, f"![Mean ranks](../docs/pictures/{PICTURE})"])}
