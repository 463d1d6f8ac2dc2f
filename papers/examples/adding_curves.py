"""The adding problem of 500 steps while models train on it: error against optimiser steps.

Reads the results of ``anharmonic table cornn-adding``; of several seeds the median, in the range
between smallest and largest.

    python papers/examples/adding_curves.py --picture docs/pictures/adding.png
"""

import argparse
from pathlib import Path

import numpy as np

from anharmonic.train import read_results
from anharmonic_papers.report.compare import compare
from anharmonic_papers.tables.registry import table

RESULTS = Path(__file__).parents[1] / "results" / "cornn-adding.jsonl"
GROUP, TRIVIAL, STEPS = "T = 500", 0.167, 100  # of an epoch
STYLES = {
    "LSTM": ("LSTM", "#444444", "-"),
    "chrono-LSTM": ("chrono-LSTM", "#AA4499", (0, (1, 1.2))),
    "GRU": ("GRU", "#B8860B", (0, (6, 2, 1, 2))),
    "coRNN, gates from the start": ("coRNN", "#D55E00", (0, (5, 2))),
    "UnICORNN, gates from the start, searched": ("UnICORNN", "#009E73", (0, (3, 1))),
    "LEM": ("LEM", "#0072B2", "-"),
}


def curves():
    """The validation errors by label: runs x epochs."""
    found = {}
    for line in compare(table("cornn-adding"), read_results(RESULTS)):
        if line.row.group == GROUP and line.row.label in STYLES and line.full is not None:
            found[line.row.label] = np.array([r.curve["valid"] for r in line.full.results])
    return found


def draw(path, found):
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.4, 3.3), dpi=180)
    axes.axhline(TRIVIAL, color="0.6", lw=1, ls=(0, (4, 2)))
    axes.annotate("always answering 1", (2500, TRIVIAL * 1.15), color="0.45")
    for label, errors in found.items():
        name, colour, dash = STYLES[label]
        steps, middle = STEPS * np.arange(1, errors.shape[1] + 1), np.median(errors, 0)
        axes.fill_between(steps, errors.min(0), errors.max(0), color=colour, alpha=0.2, lw=0)
        axes.plot(steps, middle, color=colour, ls=dash, lw=1.8)
        axes.annotate(
            name,
            (steps[-1], middle[-1]),
            xytext=(6, -12 if name == "coRNN" else -3),
            textcoords="offset points",
            color=colour,
        )
    axes.set(yscale="log", xlabel="optimiser steps", ylabel="mean squared error", xlim=(0, 6000))
    axes.grid(color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    found = curves()
    for label, errors in found.items():
        print(f"{label:28s} {np.median(errors[:, -1]):8.2e} after {STEPS * errors.shape[1]} steps")
    if arguments.picture is not None:
        draw(arguments.picture, found)


if __name__ == "__main__":
    main()
