"""Models on two sets that any machine has, and a page that says what was found.

The adding problem over 150 steps, where only what is remembered for long is of use, and the digits
of scikit-learn, read pixel by pixel. Settings follow from the data; one seed each, two trainings
at a time. ``make demo`` runs it. (In 12 epochs of the adding problem coRNN and UnICORNN learn
nothing yet; ``anharmonic table cornn-adding`` trains for as long as the paper.)
"""

from pathlib import Path

from anharmonic.train import Comparison, RunEnvironment, compare, report, write_comparison

SETS = {
    "adding": {
        "models": ("LEM", "LSTM"),
        "given": {"task_options": {"length": 150}, "epochs": 12},
    },
    "digits": {"models": ("Resonators", "LEM", "CoRNN", "UnICORNN", "LSTM")},
}


def run(folder: Path, sets: dict = SETS, jobs: int = 2) -> list[Comparison]:
    """Trains on all sets and writes the page; goes on where it was stopped."""
    environment = RunEnvironment(out=folder / "runs", threads=1, progress=False)
    found = []
    for task, options in sets.items():
        found.append(compare(task, environment, seeds=[0], jobs=jobs, **options))
        print(f"\n{report(found[-1])}\n")
    write_comparison(folder / "report.html", found, "make demo")
    print(f"wrote {folder / 'report.html'}")
    return found


if __name__ == "__main__":
    run(Path("demo"))
