"""What ``anharmonic train MODEL FILE`` reaches with nothing else said, beside MiniRocket.

    python benchmarks/learning.py SETS --out RUNS [--models lem cornn] [--seeds 0 1 2] [--write]

``SETS`` is the folder that ``learning_sets.py`` wrote. Prints a Markdown table; ``--write`` also
puts it, and the numbers, into learning.json and accuracy.md, or with ``--name`` into
another such file and place. Start it again to go on.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
from pathlib import Path

import numpy as np
import torch

import anharmonic as ah
from anharmonic.data import file_digest
from anharmonic.diagnostics.machine import hardware
from anharmonic.train import DivergedError, RunEnvironment, fill, fit

HERE = Path(__file__).parent
PAGE = HERE / "accuracy.md"
NAMES = ("learning", "learning-others")
"""Tables of the page: the sets that the rules were found on, and others."""
MODELS = ("LEM", "CoRNN", "UnICORNN")


def marks(name: str) -> tuple[str, str]:
    """What stands before and after a table on the page."""
    return f"<!-- {name} -->\n", f"<!-- /{name} -->"


def train(
    model: str, path: Path, seeds: list[int], out: Path, epochs: int | None
) -> dict[str, object]:
    """Test accuracies in percent, seconds and baseline; a diverged run counts as trivial."""
    environment = RunEnvironment(out=out, file=path, progress=False)
    given = {"task_options": {"sha256": file_digest(path)}}
    given |= {} if epochs is None else {"epochs": epochs}
    run = fill(model, "file", given, environment).run
    accuracies, seconds, trivial = [], [], None
    for seed in seeds:
        try:
            result = fit(dataclasses.replace(run, seed=seed), environment)
        except DivergedError as error:
            print(f"  {model} on {path.stem}, seed {seed}: {error}", flush=True)
            accuracies.append(float("nan"))
            continue
        accuracies.append(round(result.test, 2))
        seconds.append(round(result.seconds, 1))
        trivial = result.trivial
    return {"accuracy": accuracies, "seconds": seconds, "trivial": trivial}


def facts(path: Path) -> str:
    """Training and test sequences, steps, channels and classes."""
    data = np.load(path)
    lengths = np.diff(data["offsets_train"])
    steps = f"{lengths.min()}-{lengths.max()}" if len(set(lengths)) > 1 else str(lengths[0])
    counts = [len(data[f"y_{part}"]) for part in ("train", "test")]
    channels, classes = data["x_train"].shape[1], len(set(data["y_train"]))
    return f"{counts[0]} / {counts[1]}, {steps}, {channels}, {classes}"


def table(found: dict[str, dict[str, dict[str, object]]], seeds: list[int], machine: str) -> str:
    """The results as Markdown."""
    models = [*MODELS, "MiniRocket"]
    head = ["set", "train / test, steps, channels, classes", "trivial", *models]
    lines = [" | ".join(["", *head, ""]).strip(), "|" + " --- |" * len(head)]
    sums: dict[str, list[float]] = {model: [] for model in models}
    for name, by_model in found.items():
        cells = [name, str(by_model["facts"]), _trivial(by_model)]
        for model in models:
            one = by_model.get(model)
            cells.append("-" if one is None else _cell(one))
            if one is not None:
                sums[model].append(statistics.fmean(one["accuracy"]))
        lines.append(f"| {' | '.join(cells)} |")
    whole = [f"{statistics.fmean(v):.1f}" if len(v) == len(found) else "-" for v in sums.values()]
    lines.append(f"| **mean** | | | {' | '.join(whole)} |")
    made = f"Test accuracy in percent, {_of(seeds)}, and mean seconds of training; {machine}."
    return "\n".join([*lines, "", made]) + "\n"


def _of(seeds: list[int]) -> str:
    named = ", ".join(map(str, seeds))
    return f"mean ± standard deviation of seeds {named}" if len(seeds) > 1 else f"seed {named}"


def _trivial(by_model: dict[str, dict[str, object]]) -> str:
    values = [by_model[m]["trivial"] for m in MODELS if m in by_model]
    return f"{values[0]:.1f}" if values and values[0] is not None else "-"


def _cell(one: dict[str, object]) -> str:
    values, seconds = one["accuracy"], one["seconds"]
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    took = statistics.fmean(seconds) if isinstance(seconds, list) else seconds
    return f"{statistics.fmean(values):.1f}{spread} ({took:.0f} s)"


def main() -> None:
    """Trains, prints and perhaps writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument(
        "--models", nargs="+", default=MODELS, help="only these; others stay as they were written"
    )
    parser.add_argument("--only", nargs="+", help="names of sets")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, help="for a trial of this script")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--name", choices=NAMES, default=NAMES[0])
    asked = parser.parse_args()
    rival = json.loads((asked.sets / "minirocket.json").read_text())
    written = HERE / f"{asked.name}.json"
    known = json.loads(written.read_text())["sets"] if asked.models != MODELS else {}
    found: dict[str, dict[str, dict[str, object]]] = {}
    for path in sorted(asked.sets.glob("*.npz"), key=lambda p: p.stat().st_size):
        if asked.only and path.stem not in asked.only:
            continue
        found[path.stem] = known.get(path.stem, {}) | {
            "facts": facts(path),
            "MiniRocket": rival[path.stem],
        }
        for model in asked.models:
            found[path.stem][model] = train(model, path, asked.seeds, asked.out, asked.epochs)
            print(path.stem, model, found[path.stem][model], flush=True)
    machine = (
        f"{hardware('cpu')}, {torch.get_num_threads()} of {os.cpu_count()} cores, anharmonic "
        f"{ah.__version__}, torch {torch.__version__}"
    )
    text = table(found, asked.seeds, machine)
    print(text)
    if asked.write:
        written.write_text(
            json.dumps({"seeds": asked.seeds, "machine": machine, "sets": found}, indent=1) + "\n"
        )
        begin, end = marks(asked.name)
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
        after = rest.partition(end)[2]
        PAGE.write_text(before + begin + text + end + after, encoding="utf-8")


if __name__ == "__main__":
    main()
