"""How well networks for graphs learn with the options that `anharmonic train` chooses.

    python benchmarks/learning_graphs.py [TASK ...]

trains PlainGNN, GraphCON and GradientGating on five graphs (those of the package anharmonic-papers,
and `ANHARMONIC_DATA`, are needed), three seeds each, and prints the table of `docs/graphs.md`: test
accuracy in percent, mean and standard deviation, and that of the most frequent class of training.
Graphs with stored splits take split k with seed k.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

import torch

from anharmonic.data import make_task, task_options
from anharmonic.train import Run, RunEnvironment, fit
from anharmonic.train.recipe_graphs import graph_settings

TASKS = ("cora", "citeseer", "pubmed", "texas", "wisconsin")
MODELS = ("PlainGNN", "GraphCON", "GradientGating")
SEEDS = (0, 1, 2)
OUT = Path(__file__).with_suffix(".json")


def options(task: str, seed: int) -> dict[str, int]:
    """Split k for seed k where splits are stored."""
    return {"split": seed} if task_options(task).get("split") == 0 else {}


def score(task: str, model: str, seed: int, folder: Path) -> float:
    """Test accuracy of one run."""
    fields, chosen, _ = graph_settings(model, make_task(task, options(task, seed)))
    run = Run(task, model, options(task, seed), chosen, seed=seed, **fields)
    return fit(run, RunEnvironment(out=folder, progress=False, threads=1)).test


def majority(task: str, seed: int) -> float:
    """Test accuracy of the most frequent class of training."""
    train, _, test = make_task(task, options(task, seed)).splits()
    likeliest = torch.bincount(train.batch.y).argmax()
    return 100 * float((test.batch.y == likeliest).double().mean())


def row(task: str, found: dict[str, list[float]]) -> str:
    """One line of the table."""
    cells = [f"{statistics.fmean(v):.1f} ± {statistics.stdev(v):.1f}" for v in found.values()]
    return f"| {task} | {' | '.join(cells)} |"


def main(tasks: list[str]) -> None:
    """Measures the tasks, keeps what was measured before, prints all."""
    table = json.loads(OUT.read_text()) if OUT.exists() else {}
    for task in tasks:
        with tempfile.TemporaryDirectory() as folder:
            found = {m: [score(task, m, seed, Path(folder)) for seed in SEEDS] for m in MODELS}
        found["majority class"] = [majority(task, seed) for seed in SEEDS]
        table[task] = found
        OUT.write_text(json.dumps(table, indent=1) + "\n")
        print(row(task, found), flush=True)
    print(f"\n| graph | {' | '.join(MODELS)} | majority class |\n|{'---|' * (len(MODELS) + 2)}")
    print("\n".join(row(task, table[task]) for task in TASKS if task in table))


if __name__ == "__main__":
    main(sys.argv[1:] or list(TASKS))
