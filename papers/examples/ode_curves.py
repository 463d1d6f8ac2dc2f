"""Neural ODEs while they train: loss, function evaluations and adjoint score of three dynamics.

Reads the results of ``anharmonic table nestaas-regression nestaas-classification``: the median of
the seeds at every epoch, in a band between the quartiles.

    python papers/examples/ode_curves.py --pictures papers/docs/pictures   # writes two pictures
"""

import argparse
from pathlib import Path

import numpy as np

from anharmonic.pages import lines, panels, save
from anharmonic.train import read_results
from anharmonic_papers.tables.registry import table

RESULTS = Path(__file__).parents[1] / "results"
MEASURES = {
    "valid": "validation loss",
    "nfe": "function evaluations of a solve",
    "adjoint_score": "adjoint score q95 / q05",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    for name in ("nestaas-regression", "nestaas-classification"):
        found = read_results(arguments.results / f"{name}.jsonl")
        figure, axes = panels(3, width=9.0, height=3.0)
        for place, (measure, words) in zip(axes, MEASURES.items(), strict=True):
            curves, bands = {}, []
            for row in {row.label: row for row in table(name).rows}.values():
                hashes = {run.hash for run in row.runs()}
                runs = [result.curve for result in found if result.run.hash in hashes]
                epochs = runs[0]["epoch"]
                low, middle, high = np.quantile([r[measure] for r in runs], [0.25, 0.5, 0.75], 0)
                curves[row.label] = (epochs, middle.tolist())
                bands.append((epochs, low, high))
                print(f"{name}, {row.label}, {words}: {middle[-1]:.4g} at the end")
            lines(place, curves, x="epoch", y=words, log="y" if measure != "nfe" else "")
            for drawn, band in zip(list(place.get_lines()), bands, strict=True):
                place.fill_between(*band, color=drawn.get_color(), alpha=0.2, linewidth=0)
        if arguments.pictures is not None:
            save(figure, arguments.pictures / f"{name}.svg")


if __name__ == "__main__":
    main()
