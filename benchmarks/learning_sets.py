"""Real sets for ``learning.py``, and what MiniRocket reaches on them.

Runs in an environment of its own, with aeon (which has the sets) and without this package:

    pip install aeon
    python benchmarks/learning_sets.py SETS [--data FOLDER] [--aeon NAME ...]

Writes one .npz for each set, with its official split, and minirocket.json. ``--data`` names a
folder with sequence/watch_imu.npz and sequence/fsdd.npz (see papers/docs), of which the recordings
of subjects 2, 5 and 8, and the takes 0 to 4, are the test part. scikit-learn's digits are read
pixel by pixel; every fifth image is a test image.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

AEON = (
    "GunPoint", "ItalyPowerDemand", "ArrowHead", "BasicMotions", "OSULeaf", "JapaneseVowels",
    "PickupGestureWiimoteZ",
)  # fmt: skip
TEST_SUBJECTS = (2, 5, 8)


def packed(sequences: list[np.ndarray], part: str) -> dict[str, np.ndarray]:
    """Arrays of a part, sequences [T, F] one after another."""
    ends = np.concatenate([[0], np.cumsum([len(one) for one in sequences])])
    return {f"x_{part}": np.concatenate(sequences).astype("f4"), f"offsets_{part}": ends}


def from_aeon(name: str) -> dict[str, np.ndarray]:
    """A set that comes with aeon."""
    from aeon.datasets import load_classification

    arrays = {}
    for part in ("train", "test"):
        x, y = load_classification(name, split=part)
        arrays |= packed([np.asarray(one).T for one in x], part)
        arrays[f"y_{part}"] = np.asarray(y).astype(str)
    return arrays


def from_sklearn() -> dict[str, np.ndarray]:
    """The 8 by 8 digits, row by row."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    is_test = np.arange(len(y)) % 5 == 4
    arrays = {}
    for part, rows in (("train", ~is_test), ("test", is_test)):
        arrays |= packed([one[:, None] for one in x[rows]], part)
        arrays[f"y_{part}"] = y[rows].astype(str)
    return arrays


def from_folder(folder: Path, name: str) -> dict[str, np.ndarray]:
    """Watch recordings split by subject, or spoken digits split by take."""
    data = dict(np.load(folder / "sequence" / f"{name}.npz"))
    ends = data["offsets"].astype(int)
    if name == "watch_imu":
        values, labels = data["values"], data["label_names"][data["label"]]
        is_test = np.isin(data["subject"], TEST_SUBJECTS)
    else:
        values, labels = data["audio"][:, None] / np.float32(32768), data["label"].astype(str)
        is_test = data["take"] < 5
    arrays = {}
    for part, rows in (("train", ~is_test), ("test", is_test)):
        arrays |= packed([values[ends[i] : ends[i + 1]] for i in np.flatnonzero(rows)], part)
        arrays[f"y_{part}"] = labels[rows]
    return arrays


def minirocket(arrays: dict[str, np.ndarray], seeds: range) -> dict[str, object]:
    """Its test accuracies in percent and mean seconds; shorter series are padded with zeros."""
    from aeon.classification.convolution_based import MiniRocketClassifier

    parts = {}
    longest = max(9, *(np.diff(arrays[f"offsets_{part}"]).max() for part in ("train", "test")))
    for part in ("train", "test"):
        x, ends = arrays[f"x_{part}"], arrays[f"offsets_{part}"]
        parts[part] = np.zeros((len(ends) - 1, x.shape[1], longest), np.float32)
        for i in range(len(ends) - 1):
            parts[part][i, :, : ends[i + 1] - ends[i]] = x[ends[i] : ends[i + 1]].T
    few = parts["train"][:, :, :300]
    MiniRocketClassifier(n_jobs=1).fit(few, arrays["y_train"])  # compiles
    found, began = [], time.perf_counter()
    for seed in seeds:
        model = MiniRocketClassifier(random_state=seed, n_jobs=1)
        model.fit(parts["train"], arrays["y_train"])
        found.append(100 * float((model.predict(parts["test"]) == arrays["y_test"]).mean()))
    seconds = (time.perf_counter() - began) / len(found)
    return {"accuracy": [round(value, 2) for value in found], "seconds": round(seconds, 1)}


def main() -> None:
    """Writes the sets and the file of MiniRocket."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", type=Path, help="folder that is written")
    parser.add_argument("--data", type=Path, help="folder with sequence/watch_imu.npz")
    parser.add_argument("--aeon", nargs="*", default=AEON, help="sets that come with aeon")
    asked = parser.parse_args()
    asked.sets.mkdir(parents=True, exist_ok=True)
    sets = {name: from_aeon(name) for name in asked.aeon} | {"digits": from_sklearn()}
    if asked.data is not None:
        sets |= {name: from_folder(asked.data, name) for name in ("watch_imu", "fsdd")}
    rivals = asked.sets / "minirocket.json"
    results = json.loads(rivals.read_text()) if rivals.exists() else {}
    for name, arrays in sets.items():
        np.savez(asked.sets / f"{name}.npz", **arrays)
        results[name] = minirocket(arrays, range(3))
        print(name, results[name], flush=True)
        rivals.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
