"""Four models on two sets that any machine has, and a page that says what was found.

The adding problem over 150 steps, where only what is remembered for long is of use, and the digits
of scikit-learn, read pixel by pixel. Settings follow from the data; ``make demo`` runs it.
"""

from pathlib import Path

from anharmonic.train import Comparison, RunEnvironment, compare, report, write_comparison

MODELS = ("LEM", "CoRNN", "UnICORNN", "LSTM")
SETS = {
    "adding": {"task_options": {"length": 150}, "epochs": 12},
    "digits": {},
}


def run(folder: Path, sets: dict = SETS, seeds: tuple[int, ...] = (0, 1)) -> list[Comparison]:
    """Trains on all sets and writes the page; goes on where it was stopped."""
    environment = RunEnvironment(out=folder / "runs", threads=1, progress=False)
    found = []
    for task, given in sets.items():
        found.append(compare(task, environment, models=MODELS, seeds=seeds, given=given))
        print(f"\n{report(found[-1])}\n")
    write_comparison(folder / "report.html", found, "make demo")
    print(f"wrote {folder / 'report.html'}")
    return found


if __name__ == "__main__":
    run(Path("demo"))
