"""Networks by the recipe, and resonators, on sets with 2 to 125 training series per class.

    OMP_NUM_THREADS=1 python benchmarks/bench.py recipe --data FOLDER

FOLDER is that of the question ``ucr``. Networks are trained as ``anharmonic train`` does it.
"""

from __future__ import annotations

import functools
import statistics
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import numpy as np

import ucr
from anharmonic.estimators import ResonatorClassifier, SequenceClassifier
from harness.results import Result, caption, markdown_table

PACKAGES = ("torch",)
PAGES = {"recipe": ("benchmarks/accuracy.md",)}
SETS = (
    "PigArtPressure", "DiatomSizeReduction", "ShakeGestureWiimoteZ", "Rock", "GestureMidAirD1",
    "DodgerLoopDay", "CBF", "SonyAIBORobotSurface2", "SwedishLeaf", "Plane", "UMD", "Trace", "Fish",
    "ToeSegmentation1", "Lightning7", "WordSynonyms", "CricketY", "MedicalImages",
    "GunPointAgeSpan", "Computers",
)  # fmt: skip
METHODS = ("resonators", "LEM", "CoRNN", "UnICORNN")


def cases(options: Namespace) -> dict[str, Callable[[], Result]]:
    ucr.on_one_thread("recipe needs --data FOLDER, and", options.data is not None)
    names = set(ucr.names_in(options.data))
    steps = 2 if options.quick else None
    return {
        f"{name}, {method}": functools.partial(_measure, options.data, name, method, steps)
        for name in SETS
        if name in names
        for method in METHODS
    }


def _measure(folder: Path, name: str, method: str, steps: int | None) -> Result:
    parts = ucr.load(folder, name)
    if method == "resonators":
        model = ResonatorClassifier(random_state=0, n_jobs=1)
    else:
        model = SequenceClassifier(method, max_steps=steps, random_state=0, n_jobs=1)
    series, classes = parts["train"]
    return {"per class": len(series) / len(np.unique(classes)), **ucr.measure(model, parts)}


def tables(results: list[Result]) -> dict[str, str]:
    """A set a row, those with the fewest series per class first."""
    by_case = {one["case"]: one for one in results}
    sizes = {one["case"].partition(",")[0]: one["per class"] for one in results}
    rows = [["set", "training series per class", *METHODS]]
    names = sorted(sizes, key=lambda name: sizes[name])
    columns = [[by_case.get(f"{name}, {method}") for name in names] for method in METHODS]
    for name, *found in zip(names, *columns, strict=True):
        rows.append([name, f"{sizes[name]:.0f}", *map(_cell, found)])
    rows.append(["**mean**", "", *map(_mean, columns)])
    about = f"Test accuracy in percent, seed 0; in brackets CPU seconds. {caption(results)}"
    return {"recipe": f"{markdown_table(rows)}\n\n{about}"}


def _cell(one: Result | None) -> str:
    return "–" if one is None else f"{100 * one['accuracy']:.1f} ({one['seconds']:.0f} s)"


def _mean(found: list[Result | None]) -> str:
    """Mean accuracy over all sets, if each was measured."""
    return "–" if None in found else f"{100 * statistics.fmean(r['accuracy'] for r in found):.1f}"
