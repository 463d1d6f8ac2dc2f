"""What ``anharmonic train MODEL FILE`` reaches with default settings, beside MiniRocket.

FOLDER of ``--data`` holds the sets, one .npz each; what is missing there is written first, with its
official split: sets that come with aeon, scikit-learn's digits pixel by pixel (every fifth image is
a test image), and watch_imu from ``sequence/`` in ANHARMONIC_DATA (subjects 2, 5 and 8 are the test
part). MiniRocket and its sets need aeon, which needs an older pandas:
measure them in an environment of its own, with ``pip install aeon`` and this package installed with
``--no-deps``, then the others here with ``--missing``. Networks for graphs need anharmonic-papers.
"""

import dataclasses
import importlib.util
import itertools
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import ucr
from anharmonic import train
from anharmonic.data import file_digest, save_npz, sequences_from, task_options
from anharmonic.data.npz import read_npz
from anharmonic.data.sequences import Sequences
from anharmonic.train import estimate
from harness.results import Cases, Options, Result, caption, markdown_table, spread

OURS = ("LEM", "CoRNN", "UnICORNN")
RIVAL = "MiniRocket"
RULES = (
    "PickupGestureWiimoteZ", "ItalyPowerDemand", "GunPoint", "BasicMotions", "ArrowHead",
    "JapaneseVowels", "digits", "OSULeaf", "watch_imu",
)  # fmt: skip
"""Sets that the rules of the recipe were found on; three seeds."""
OTHERS = ("Coffee", "Trace", "ACSF1", "PLAID", "PigCVP")
"""Sets that they were not found on; one seed."""
NETWORKS = ("PlainGNN", "GraphCON", "GradientGating")
GRAPHS = ("cora", "texas", "wisconsin")
SEEDS = (0, 1, 2)
TEST_SUBJECTS = (2, 5, 8)
Set = dict[str, Sequences]


def cases(options: Options) -> Cases:
    found: Cases = {}
    has_aeon = importlib.util.find_spec("aeon") is not None
    comes = {"digits": True, "watch_imu": "ANHARMONIC_DATA" in os.environ}
    epochs = 2 if options.quick else None
    if options.data is None:
        print("Without --data FOLDER only graphs are measured.", file=sys.stderr)
    for name in (*RULES, *OTHERS) if options.data is not None else ():
        path, seeds = options.data / f"{name}.npz", SEEDS if name in RULES else SEEDS[:1]
        if not (path.exists() or comes.get(name, has_aeon)):
            print(f"{name} is left out: it comes with aeon or ANHARMONIC_DATA.", file=sys.stderr)
            continue
        for model in (*OURS, RIVAL) if has_aeon else OURS:
            found[f"{name}, {model}"] = (of_set, path, model, seeds, epochs)
    if importlib.util.find_spec("anharmonic_papers") is not None:
        for graph, model in itertools.product(GRAPHS, NETWORKS):
            found[f"{graph}, {model}"] = (of_graph, graph, model, epochs)
    return found


def of_set(path: Path, model: str, seeds: tuple[int, ...], epochs: int | None) -> Result:
    """Return test accuracies in percent, seconds, and that of the most frequent class."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        save_npz(path, load(path.stem))
    data = read_npz(path)
    found: Result = {"facts": facts(*sizes(data))}
    if model == RIVAL:
        parts = parts_of(data)
        ucr.tested(RIVAL, parts, seeds[0])  # compiles
        tested = [ucr.tested(RIVAL, parts, seed) for seed in seeds]
        accuracy = [round(100 * one["accuracy"], 2) for one in tested]
        return found | {"accuracy": accuracy, "seconds": [round(x["seconds"], 1) for x in tested]}
    found |= {"accuracy": [], "seconds": [], "baseline": None}
    options = {"sha256": file_digest(path)}
    for seed in seeds:
        try:
            one = trained("file", model, seed, epochs, options, file=path)
        except train.DivergedError as error:
            print(f"{model} on {path.stem}, seed {seed}: {error}", file=sys.stderr)
            found["accuracy"].append(float("nan"))
            continue
        found["accuracy"].append(round(one.test, 2))
        found["seconds"].append(round(one.seconds, 1))
        found["baseline"] = one.trivial
    return found


def sizes(data: Set) -> list[int]:
    """Series of both parts, shortest and longest of training, channels and classes."""
    train = data["train"]
    ends = [int(train.lengths.min()), int(train.lengths.max())]
    return [len(train), len(data["test"]), *ends, train.x.shape[1], len(set(train.y))]


def facts(train: int, test: int, shortest: int, longest: int, channels: int, classes: int) -> str:
    steps = f"{shortest}-{longest}" if shortest < longest else str(longest)
    return f"{train} / {test}, {steps}, {channels}, {classes}"


def of_graph(graph: str, model: str, epochs: int | None) -> Result:
    """Return test accuracies of three seeds; split k with seed k where splits are stored."""
    has_splits = task_options(graph).get("split") == 0
    options = [{"split": seed} if has_splits else {} for seed in SEEDS]
    found = [trained(graph, model, seed, epochs, options[seed]) for seed in SEEDS]
    return {"accuracy": [one.test for one in found], "baseline": [one.trivial for one in found]}


def trained(
    task: str,
    model: str,
    seed: int,
    epochs: int | None = None,
    options: dict[str, Any] | None = None,
    seconds: float | None = None,
    file: Path | None = None,
) -> train.Result:
    """Train by the recipe on one thread, with options of the task; "file" has a file.

    With ``seconds`` it has as many epochs as take about so long, at least one.
    """
    given = {"task_options": options or {}} | ({"epochs": epochs} if epochs else {})
    with tempfile.TemporaryDirectory() as folder:
        environment = train.RunEnvironment(out=Path(folder), file=file, progress=False, threads=1)
        run = dataclasses.replace(train.fill(model, task, given, environment).run, seed=seed)
        if seconds is not None:
            expected = estimate.expected_seconds(run, run.make_task(environment), environment)
            run = dataclasses.replace(run, epochs=max(1, round(run.epochs * seconds / expected)))
        return train.fit(run, environment)


def load(name: str) -> Set:
    """Return the series [T, F] and the classes of a set."""
    if name == "digits":
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
        is_test = np.arange(len(y)) % 5 == 4
        series = [one[:, None] for one in x]
    elif name == "watch_imu":
        stored = dict(np.load(Path(os.environ["ANHARMONIC_DATA"]) / "sequence" / f"{name}.npz"))
        y = stored["label_names"][stored["label"]]
        is_test = np.isin(stored["subject"], TEST_SUBJECTS)
        series = np.split(stored["values"], stored["offsets"].astype(int)[1:-1])
    else:
        from aeon.datasets import load_classification

        parts = [load_classification(name, split=part) for part in ("train", "test")]
        series = [np.asarray(one).T for x, _ in parts for one in x]
        y = np.concatenate([y for _, y in parts])
        is_test = np.arange(len(y)) >= len(parts[0][1])
    parts = {"train": np.flatnonzero(~is_test), "test": np.flatnonzero(is_test)}
    return {
        part: sequences_from([series[row] for row in rows], y[rows].astype(str))
        for part, rows in parts.items()
    }


def parts_of(data: Set) -> ucr.Parts:
    """Return the series [F, T] and the classes of both parts of a set."""
    return {
        part: ([np.ascontiguousarray(x.T) for x in np.split(one.x, one.offsets[1:-1])], one.y)
        for part, one in data.items()
    }


def tables(results: list[Result]) -> dict[str, str]:
    by_case = {one["case"]: one for one in results}
    rows = [["graph", *NETWORKS, "majority class"]]
    for graph in GRAPHS:
        found = [by_case.get(f"{graph}, {model}") for model in NETWORKS]
        if None not in found:
            values = [one["accuracy"] for one in found] + [found[0]["baseline"]]
            rows.append([graph, *map(spread, values)])
    return {
        "learning": _sets(results, RULES, "mean ± standard deviation of seeds 0, 1, 2"),
        "learning-others": _sets(results, OTHERS, "seed 0"),
        "learning-graphs": markdown_table(rows),
    }


def _sets(results: list[Result], names: tuple[str, ...], seeds: str) -> str:
    """A row for each set and of means; no mean of a model that misses a set."""
    models = (*OURS, RIVAL)
    by_case = {one["case"]: one for one in results if one["case"].partition(", ")[0] in names}
    rows = [["set", "train / test series, steps, channels, classes", "baseline", *models]]
    found = {name: [by_case.get(f"{name}, {model}") for model in models] for name in names}
    found = {name: of for name, of in found.items() if any(of)}
    for name, of in found.items():
        known = [one for one in of if one]
        baselines = (f"{one['baseline']:.1f}" for one in known if one.get("baseline"))
        rows.append([name, known[0]["facts"], next(baselines, "-"), *map(_cell, of)])
    means = ["-"] * len(models)
    for place, of in enumerate(zip(*found.values(), strict=True)):
        if all(of):
            mean = statistics.fmean(statistics.fmean(one["accuracy"]) for one in of)
            means[place] = f"{mean:.1f}"
    rows.append(["**mean**", "", "", *means])
    about = (
        f"Test accuracy in percent, {seeds}; in brackets the mean seconds of training on one "
        "thread. The baseline answers the most frequent class of the training set. "
    )
    return f"{markdown_table(rows, left=2)}\n\n{about}{caption(list(by_case.values()))}"


def _cell(one: Result | None) -> str:
    if one is None:
        return "-"
    seconds = f" ({statistics.fmean(one['seconds']):.0f} s)" if one["seconds"] else ""
    return f"{spread(one['accuracy'])}{seconds}"
