"""Resonator features with a linear model, beside MiniRocket; and what each choice is worth.

    python benchmarks/resonators.py SETS [--study] [--seeds 5] [--only NAME ...] [--write]

``SETS`` is the folder that ``learning_sets.py`` wrote. Prints a Markdown table of the defaults, or
with ``--study`` one of changes to them; ``--write`` also puts it, and the numbers, into
resonators.json and docs/resonators.md. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import RidgeClassifierCV
from sklearn.preprocessing import StandardScaler

import anharmonic as ah
from anharmonic.nn import ResonatorFeatures

HERE = Path(__file__).parent
JSON, PAGE = HERE / "resonators.json", HERE.parent / "docs" / "resonators.md"
POOLS = ("share", "run", "position", "largest", "end")
STUDY: dict[str, dict[str, object]] = {
    "as it is": {},
    **{f"without {name}": {"pools": [n for n in POOLS if n != name]} for name in POOLS},
    "with excess": {"pools": [*POOLS, "excess"]},
    "with rms": {"pools": [*POOLS, "rms"]},
    "share alone": {"pools": ["share"]},
    "share, excess, largest, rms": {"pools": ["share", "excess", "largest", "rms"]},
    "periods up to 2 T": {"periods": (2.5, 2.0)},
    "periods up to 4 T": {"periods": (2.5, 4.0)},
    "q 0.3 to 5": {"q": (0.3, 5.0)},
    "q 2 to 20": {"q": (2.0, 20.0)},
    "500 oscillators": {"num_oscillators": 500},
    "2,000 oscillators": {"num_oscillators": 2000},
    "1 bias": {"num_biases": 1},
    "4 biases": {"num_biases": 4},
    "second layer": {"second": True},
    "scaling of each series": {"scaling": "series"},
    "running scaling": {"scaling": "running"},
}


def load(path: Path) -> dict[str, tuple[list[np.ndarray], np.ndarray]]:
    """Series [T, C] and labels of both parts."""
    data = np.load(path)
    return {
        part: (np.split(data[f"x_{part}"], data[f"offsets_{part}"][1:-1]), data[f"y_{part}"])
        for part in ("train", "test")
    }


def rectified(bank: ah.ResonatorBank, series: Iterable[np.ndarray]) -> list[np.ndarray]:
    """The size of responses: what drives a second layer."""
    with torch.no_grad():
        return [bank(torch.from_numpy(one)[:, None])[0][:, 0].abs().numpy() for one in series]


def features(seed: int, options: dict[str, object], parts: list[list[np.ndarray]]) -> list:
    """Standardised features of the training and the test series."""
    made = dict(options)
    if not made.pop("second", False):
        bank = ResonatorFeatures(seed=seed, **made).fit(parts[0])
        return [bank.transform(series) for series in parts]
    torch.manual_seed(seed)
    length = float(np.median([len(one) for one in parts[0]]))
    first = ah.ResonatorBank(parts[0][0].shape[1], 16, periods=(2.5, max(5.0, length)))
    above = [rectified(first, series) for series in parts]
    both = [features(seed, {"num_oscillators": 500}, each) for each in (parts, above)]
    return [np.concatenate(pair, axis=1) for pair in zip(*both, strict=True)]


def score(sets: dict, seeds: int, options: dict[str, object]) -> dict[str, list[float]]:
    """Test accuracy in percent of each seed, and seconds of fit and predict."""
    accuracy, seconds = [], []
    for seed in range(seeds):
        began = time.perf_counter()
        train, test = features(seed, options, [sets[part][0] for part in ("train", "test")])
        scaler = StandardScaler().fit(train)
        ridge = RidgeClassifierCV(alphas=np.logspace(-3, 3, 10))
        ridge.fit(scaler.transform(train), sets["train"][1])
        found = ridge.predict(scaler.transform(test))
        seconds.append(round(time.perf_counter() - began, 2))
        accuracy.append(round(100 * float((found == sets["test"][1]).mean()), 2))
    return {"accuracy": accuracy, "seconds": seconds}


def results_table(found: dict) -> str:
    """Ours beside MiniRocket's, a set a line."""
    lines = ["| set | resonators | s | MiniRocket | s |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, one in found.items():
        ours, rival = one["resonators"], one["MiniRocket"]
        lines.append(
            f"| {name} | {_mean(ours['accuracy'])} | {statistics.median(ours['seconds']):.1f} "
            + (f"| {_mean(rival['accuracy'])} | {rival['seconds']:.1f} |" if rival else "| - | - |")
        )
    return "\n".join(lines)


def study_table(found: dict) -> str:
    """A change a line, a set a column."""
    names = list(next(iter(found.values())))
    lines = [f"| change | {' | '.join(names)} | mean |", "| --- |" + " ---: |" * (len(names) + 1)]
    for change, by_set in found.items():
        means = [statistics.fmean(by_set[name]["accuracy"]) for name in names]
        cells = [f"{value:.1f}" for value in [*means, statistics.fmean(means)]]
        lines.append(f"| {change} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(values: list[float]) -> str:
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.1f}{spread}"


def write(kind: str, text: str, found: dict) -> None:
    """Puts a table and its numbers into the page and the JSON."""
    known = json.loads(JSON.read_text()) if JSON.exists() else {}
    JSON.write_text(json.dumps(known | {kind: found}) + "\n")
    start, end = f"<!-- {kind} -->\n", f"<!-- /{kind} -->"
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(start)
    PAGE.write_text(before + start + text + "\n" + end + rest.partition(end)[2], encoding="utf-8")


def main() -> None:
    """Measures, prints and perhaps writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", type=Path)
    parser.add_argument("--study", action="store_true", help="changes of the defaults instead")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="+", help="names of sets")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    # More features than series: the solver says so, and ridge is for that.
    warnings.filterwarnings("ignore", module="sklearn")
    paths = sorted(asked.sets.glob("*.npz"), key=lambda path: path.stat().st_size)
    sets = {p.stem: load(p) for p in paths if not asked.only or p.stem in asked.only}
    found: dict = {}
    for change, options in STUDY.items() if asked.study else [("resonators", {})]:
        for name, one in sets.items():
            result = score(one, asked.seeds, options)
            print(f"{change}, {name}: {result}", flush=True)
            if asked.study:
                found.setdefault(change, {})[name] = result
            else:
                rival = json.loads((asked.sets / "minirocket.json").read_text()).get(name)
                found[name] = {"resonators": result, "MiniRocket": rival}
    made = (
        f"Test accuracy in percent, mean of {asked.seeds} seeds; {platform.machine()}, "
        f"{torch.get_num_threads()} threads, anharmonic {ah.__version__}."
    )
    text = f"{study_table(found) if asked.study else results_table(found)}\n\n{made}"
    print(text)
    if asked.write:
        write("study" if asked.study else "results", text, found)


if __name__ == "__main__":
    main()
