"""What to pool of resonators for regression and forecasts, beside ridge and MiniRocket.

    OMP_NUM_THREADS=1 python benchmarks/resonators_regression.py --data FOLDER [--seeds 3] [--write]

``FOLDER`` holds sequence/beijing_air.npz (see papers/docs). Runs where aeon is installed, which has
two of the sets; without it these and MiniRocket are left out. ``--write`` puts the table and its
numbers into docs/resonators.md and resonators.json.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import statistics
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import anharmonic as ah
from anharmonic.estimators import ResonatorRegressor
from resonators import write

TRAIN, TEST = 200, 300
"""Sequences of the sets that are cut or made here."""
VALUES = "as for classification, but forecasts learn values"
"""The last line: other forecasts learn the change from the last value."""
CLASSES = ("share", "run", "position", "largest", "end")
"""What is pooled for classification."""
LINES: dict[str, tuple[str, ...]] = {
    "as for classification": CLASSES,
    **{f"without {name}": tuple(n for n in CLASSES if n != name) for name in CLASSES},
    "with excess": (*CLASSES, "excess"),
    "with rms": (*CLASSES, "rms"),
    "share alone": ("share",),
    "end alone": ("end",),
    "excess, largest, rms, end": ("excess", "largest", "rms", "end"),
    VALUES: CLASSES,
}
HAS_AEON = importlib.util.find_spec("aeon") is not None


class Problem(NamedTuple):
    """Sequences [N, C, T], their numbers [N], and what these are changes of: 0 or last values."""

    x: np.ndarray
    y: np.ndarray
    base: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    base_test: np.ndarray


def windows(series: np.ndarray, target: int, length: int, ahead: int, seed: int) -> Problem:
    """Windows of [C, T] and the value of a channel ``ahead`` steps behind their end.

    The first 70 % are learnt from. Windows with a gap are left out.
    """
    rng, last = np.random.default_rng(seed), series.shape[1] - length - ahead
    border = int(0.7 * last)
    found = []
    for first, end, number in ((0, border - length - ahead, TRAIN), (border, last, TEST)):
        cut = []
        for start in rng.permutation(np.arange(first, end)):
            x, y = series[:, start : start + length], series[target, start + length + ahead - 1]
            if np.isfinite(x).all() and np.isfinite(y):
                cut.append((x, y))
            if len(cut) == number:
                break
        x = np.stack([x for x, _ in cut])
        found += [x, np.array([y for _, y in cut]), x[:, target, -1] * (ahead > 0)]
    return Problem(*found)


def mackey_glass(steps: int) -> np.ndarray:
    """The delay equation x' = 0.2 x(t - 17) / (1 + x(t - 17)^10) - 0.1 x, [1, steps]."""
    per, delay = 10, 170
    x = np.full(delay + per * (steps + 300), 1.2)
    for t in range(delay, len(x) - 1):
        x[t + 1] = x[t] + (0.2 * x[t - delay] / (1 + x[t - delay] ** 10) - 0.1 * x[t]) / per
    return x[-per * steps :: per][None]


def made(kind: str, seed: int) -> Problem:
    """Noisy sequences of 120 steps, and what they were made with: a period, a delay or a count."""
    rng, time = np.random.default_rng(seed), np.arange(120)
    x, y = [], []
    for _ in range(TRAIN + TEST):
        if kind == "period":
            value = np.exp(rng.uniform(np.log(6), np.log(40)))
            one = np.sin(2 * np.pi * time / value + rng.uniform(0, 2 * np.pi))[None]
            value = np.log(value)
        elif kind == "delay":
            value = rng.integers(0, 15)
            walk = np.convolve(rng.normal(size=140), np.ones(4) / 2, "valid")
            one = np.stack([walk[15 : 15 + 120], walk[15 - value : 15 - value + 120]])
        else:  # bumps of unequal size and width
            value = rng.integers(0, 9)
            at, wide, high = (rng.uniform(*r, (value, 1)) for r in ((0, 120), (1, 3), (1.5, 3)))
            one = (high * np.exp(-(((time - at) / wide) ** 2) / 2)).sum(axis=0)[None]
        x.append(one + 0.5 * rng.normal(size=one.shape))
        y.append(float(value))
    x, y = np.stack(x), np.array(y)
    return Problem(x[:TRAIN], y[:TRAIN], 0 * y[:TRAIN], x[TRAIN:], y[TRAIN:], 0 * y[TRAIN:])


def from_aeon(name: str) -> Problem:
    """A set that comes with aeon, by its split."""
    from aeon.datasets import load_regression

    parts = [load_regression(name, split=part) for part in ("train", "test")]
    (x, y), (x_test, y_test) = ((np.asarray(x), np.asarray(y, float)) for x, y in parts)
    return Problem(x, y, 0 * y, x_test, y_test, 0 * y_test)


def problems(folder: Path) -> dict[str, Problem]:
    """All of them; those of a number of the sequence first, then forecasts."""
    data = np.load(folder / "sequence" / "beijing_air.npz")
    dry = data["columns"] != "RAIN"  # so seldom that a linear model cannot know its size
    names, air = data["columns"][dry].tolist(), data["values"][0].T.astype(float)[dry]
    pm, heat = names.index("PM2.5"), names.index("TEMP")
    others = [i for i in range(len(names)) if names[i] not in ("PM2.5", "PM10")]
    day = windows(air, pm, 24, 0, 0)  # of the last hour, from the other variables
    found = {name: from_aeon(name) for name in ("Covid3Month", "CardanoSentiment") if HAS_AEON}
    found["air from others"] = day._replace(x=day.x[:, others], x_test=day.x_test[:, others])
    found |= {kind: made(kind, 0) for kind in ("period", "delay", "count")}
    found["air in 6 h"] = windows(air, pm, 72, 6, 0)
    found["heat in 24 h"] = windows(air, heat, 168, 24, 0)
    found["Mackey-Glass"] = windows(mackey_glass(6000), 0, 200, 84, 0)
    return found


def rivals() -> dict[str, Callable[[int], Any]]:
    """Makes each from a seed."""
    made = {
        "ridge of all values": lambda seed: make_pipeline(
            StandardScaler(), RidgeCV(np.logspace(-4, 4, 20))
        )
    }
    if HAS_AEON:
        from aeon.regression.convolution_based import MiniRocketRegressor

        made["MiniRocket"] = lambda seed: MiniRocketRegressor(random_state=seed, n_jobs=1)
    return made


def score(model: Any, one: Problem, flat: bool = False) -> float:
    """100 times the determination coefficient on the test part."""
    x, x_test = (v.reshape(len(v), -1) if flat else v for v in (one.x, one.x_test))
    answer = model.fit(x, one.y - one.base).predict(x_test) + one.base_test
    return round(100 * float(r2_score(one.y_test, answer)), 2)


def trivial(one: Problem) -> float:
    """The mean, or for a forecast no change."""
    return 0.0 if one.base.any() else float(one.y.mean())


def table(found: dict[str, dict[str, list[float]]]) -> str:
    """A line a choice, a problem a column."""
    names = list(next(iter(found.values())))
    lines = [f"| | {' | '.join(names)} | median |", "| --- |" + " ---: |" * (len(names) + 1)]
    for line, by_problem in found.items():
        means = [statistics.fmean(by_problem[name]) for name in names]
        cells = [f"{value:.1f}" for value in [*means, statistics.median(means)]]
        lines.append(f"| {line} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measures, prints and perhaps writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="+", help="lines of resonators; the others keep theirs")
    parser.add_argument("--keep", type=Path, help="file of numbers so far, to go on from")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")  # fewer series than features
    known = problems(asked.data)
    kept = json.loads(asked.keep.read_text()) if asked.keep and asked.keep.exists() else {}
    found: dict[str, dict[str, list[float]]] = {
        "mean, or last value": {
            name: [score(DummyRegressor(strategy="constant", constant=trivial(one)), one)]
            for name, one in known.items()
        }
    }
    lines = {
        **{name: (make, range(asked.seeds)) for name, make in rivals().items()},
        **{
            name: (
                lambda seed, pools=pools: ResonatorRegressor(pools=pools, random_state=seed),
                range(asked.seeds),
            )
            for name, pools in LINES.items()
            if not asked.only or name in asked.only
        },
    }
    for line, (make, seeds) in lines.items():
        flat = line.startswith("ridge")
        if line == VALUES:
            known = {
                k: v._replace(base=0 * v.base, base_test=0 * v.base_test) for k, v in known.items()
            }
        found[line] = kept.get(line) or {
            name: [score(make(seed), one, flat) for seed in (range(1) if flat else seeds)]
            for name, one in known.items()
        }
        print(line, found[line], flush=True)
        if asked.keep:
            asked.keep.write_text(json.dumps(kept | found))
    text = (
        f"{table(found)}\n\nDetermination coefficient on the test part, times 100; mean of "
        f"{asked.seeds} seeds. Forecasts are the last three; they learn the change from the last "
        f"value; {platform.machine()}, anharmonic {ah.__version__}."
    )
    print(text)
    if asked.write:
        write("regression", text, found)


if __name__ == "__main__":
    main()
