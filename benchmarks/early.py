"""How early a series is classified, by a stream of resonators and by TEASER.

    OMP_NUM_THREADS=1 python benchmarks/bench.py early --data FOLDER

FOLDER is that of the question ``ucr``, as is the environment that TEASER of aeon needs. Three kinds
of training are compared: on whole series; on pieces from the start of each; and one model for each
share of the series. A model answers as soon as its largest probability reaches a threshold, and at
the end of the series at the latest.
"""

import importlib.util
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

import ucr
from anharmonic.estimators import ResonatorClassifier
from anharmonic.nn.resonators.draw import DEFAULT_POOLS
from harness.results import Cases, Options, Result, caption, markdown_table

PACKAGES = ucr.PACKAGES
PICTURE = "early.png"
SETS = (
    "CBF", "ECGFiveDays", "GunPointAgeSpan", "Lightning7", "MedicalImages", "OSULeaf", "Plane",
    "SwedishLeaf", "ToeSegmentation1", "Trace",
)  # fmt: skip
SHARES = np.arange(1, 11) / 10
STREAMED = 20
"""So many test series of each set are streamed, to see that answers are those of pieces."""
THRESHOLDS = (0.5, 0.7, 0.8, 0.9, 0.95)
KINDS = {
    "whole series": "trained on whole series",
    "pieces": "trained on pieces of five lengths",
    "model per length": "one model for each of ten lengths",
}


def cases(options: Options) -> Cases:
    ucr.on_one_thread("early needs --data FOLDER, and", options.data is not None)
    names = set(ucr.names_in(options.data)) & set(SETS)
    methods = {"resonators": of_resonators}
    if importlib.util.find_spec("aeon") is not None:
        methods["TEASER"] = of_teaser
    return {
        f"{name}, {method}": (measure, options.data, name)
        for name in sorted(names)
        for method, measure in methods.items()
    }


def of_resonators(folder: Path, name: str) -> Result:
    """Accuracies and answers of three kinds of training; seconds are CPU seconds."""
    parts = ucr.load(folder, name)
    (x, y), (x_test, y_test) = ((np.stack(series), known) for series, known in parts.values())
    T = x.shape[1]
    ends = np.maximum(np.rint(SHARES * T).astype(int), 1)
    found: Result = {"stream equals pieces": True}
    for kind in KINDS:
        began = time.process_time()
        if kind == "model per length":
            models = [_new().fit(list(x[:, :end]), y) for end in ends]
        else:
            lengths = ends[-1:] if kind == "whole series" else ends[1::2]
            pieces = [row[:end] for end in lengths for row in x]
            models = [_new().fit(pieces, np.tile(y, len(lengths)))] * len(ends)
        chances = [
            _probabilities(model, x_test[:, :end]) for model, end in zip(models, ends, strict=True)
        ]
        seconds = time.process_time() - began
        found[kind] = answers(np.stack(chances), models[0].classes_, y_test)
        found[kind]["seconds"] = round(seconds, 2)
        if kind != "model per length":
            few = x_test[:STREAMED]
            streamed = _streamed(models[0], few, ends)
            same = all(map(np.array_equal, streamed, (one[: len(few)] for one in chances)))
            found["stream equals pieces"] &= same
    return found


def _new() -> ResonatorClassifier:
    pools = [name for name in DEFAULT_POOLS if name != "length"]  # a stream has no length yet
    return ResonatorClassifier(pools=pools, random_state=0, n_jobs=1)


def _probabilities(model: ResonatorClassifier, x: np.ndarray) -> np.ndarray:
    """What `predict_proba` says, for series shorter than those of training, too."""
    features = model.features_.transform_in_parts(x[..., None])
    return np.asarray(softmax(model.sharpness_ * model.model_.decisions(features), axis=1))


def _streamed(model: ResonatorClassifier, x: np.ndarray, ends: np.ndarray) -> list[np.ndarray]:
    """Probabilities after so many samples of all series."""
    stream = model.stream(num_streams=len(x))
    chances = []
    for t in range(x.shape[1]):
        stream.update(x[:, [t]])
        chances += [stream.predict_proba()] * int((ends == t + 1).sum())
    return chances


def answers(chances: np.ndarray, classes: np.ndarray, y: np.ndarray) -> Result:
    """Accuracy after each share, and the answers of each threshold.

    Chances are probabilities after each share, [shares, N, C].
    """
    is_right = classes[chances.argmax(2)] == y
    stops = {}
    for threshold in THRESHOLDS:
        is_sure = chances.max(2) >= threshold
        is_sure[-1] = True
        first = is_sure.argmax(0)
        right = is_right[first, np.arange(len(y))]
        seen = SHARES[first].mean()
        stops[str(threshold)] = {"accuracy": float(right.mean()), "seen": float(seen)}
    return {"accuracy": is_right.mean(1).tolist(), "stops": stops}


def of_teaser(folder: Path, name: str) -> Result:
    """Accuracy and the share that was seen, of TEASER with its defaults."""
    from aeon.classification.early_classification import TEASER

    parts = ucr.load(folder, name)
    arrays = ucr.padded(parts)
    T = arrays["train"].shape[2]
    points = sorted({max(1, round(share * T)) for share in SHARES})
    began = time.process_time()
    model = TEASER(classification_points=points, random_state=0)
    model.fit(arrays["train"], parts["train"][1])
    _, accuracy, earliness = model.score(arrays["test"], parts["test"][1])
    seconds = time.process_time() - began
    return {"accuracy": float(accuracy), "seen": float(earliness), "seconds": round(seconds, 2)}


def _by_method(results: list[Result]) -> tuple[list[Result], list[Result]]:
    """Results of resonators and of TEASER on the sets of both; without TEASER on all sets."""
    ours, teaser = (
        {one["case"].partition(",")[0]: one for one in results if one["case"].endswith(method)}
        for method in (", resonators", ", TEASER")
    )
    names = [name for name in ours if name in teaser or not teaser]
    return [ours[name] for name in names], [teaser[name] for name in names if teaser]


def tables(results: list[Result]) -> dict[str, str]:
    ours, teaser = _by_method(results)
    shares = (f"{100 * share:.0f} %" for share in SHARES)
    rows = [["accuracy in percent after a share of the series", *shares]]
    for kind, name in KINDS.items():
        means = np.mean([one[kind]["accuracy"] for one in ours], axis=0)
        rows.append([f"resonators, {name}", *(f"{100 * value:.1f}" for value in means)])
    by_share = markdown_table(rows)
    rows = [["model", "accuracy", "share seen", "harmonic mean", "CPU seconds"]]
    for kind, name in KINDS.items():
        seconds = sum(one[kind]["seconds"] for one in ours)
        for threshold in THRESHOLDS[2:]:
            stops = [one[kind]["stops"][str(threshold)] for one in ours]
            rows.append(_row(f"{name}, threshold {threshold}", stops, seconds))
    if teaser:
        rows.append(_row("TEASER", teaser, sum(one["seconds"] for one in teaser)))
    same = all(one["stream equals pieces"] for one in ours)
    about = (
        f"Means over {len(ours)} sets, seed 0. Streams of {STREAMED} test series of each "
        f"set {'give' if same else 'DO NOT GIVE'} the same probabilities, to the last bit. "
        f"{caption(results)}"
    )
    picture = f"![Accuracy against the share seen](../docs/pictures/{PICTURE})"
    return {"early": "\n\n".join([by_share, markdown_table(rows), about, picture])}


def _row(name: str, stops: list[Result], seconds: float) -> list[str]:
    # The harmonic mean of accuracy and earliness is that of TEASER's authors.
    both = [statistics.harmonic_mean([one["accuracy"], 1 - one["seen"]]) for one in stops]
    percents = (f"{100 * _mean(stops, 'accuracy'):.1f} %", f"{100 * _mean(stops, 'seen'):.0f} %")
    return [name, *percents, f"{statistics.fmean(both):.3f}", f"{seconds:,.0f}"]


def _mean(stops: list[Result], key: str) -> float:
    return statistics.fmean(one[key] for one in stops)


def draw(results: list[Result]) -> Any:
    """Accuracy against the share of the series that was seen."""
    import matplotlib.pyplot as plt

    ours, teaser = _by_method(results)
    figure, axes = plt.subplots(figsize=(6, 3.6))
    for kind, name in KINDS.items():
        means = np.mean([one[kind]["accuracy"] for one in ours], axis=0)
        (line,) = axes.plot(100 * SHARES, 100 * means, label=name)
        stops = [[one[kind]["stops"][str(t)] for one in ours] for t in THRESHOLDS]
        seen, right = ([100 * _mean(at, key) for at in stops] for key in ("seen", "accuracy"))
        axes.plot(seen, right, "o", color=line.get_color())
    if teaser:
        place = 100 * _mean(teaser, "seen"), 100 * _mean(teaser, "accuracy")
        axes.plot(*place, "k*", ms=11, label="TEASER")
    axes.set_xlabel("share of the series seen, %")
    axes.set_ylabel("mean accuracy, %")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
