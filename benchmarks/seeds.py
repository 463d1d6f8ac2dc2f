"""How far one seed can fall below the others: ten trainings by the recipe.

    OMP_NUM_THREADS=1 python benchmarks/bench.py seeds

Data sets come from ANHARMONIC_DATA, else they are downloaded. The seed sets weights, order of the
data and dropout; the split stays the same. Needs anharmonic-papers for the tasks.
"""

import statistics
from typing import Any

from harness.results import Cases, Options, Result, caption, grouped, markdown_table
from learning import trained

MODELS = {
    "cora": ("GraphCON", "GradientGating"),
    "watch-imu": ("LEM", "UnICORNN", "LinOSSNetwork"),
    "spoken-digits": ("LEM", "UnICORNN", "LinOSSNetwork"),
}
SEEDS = range(10)


def cases(options: Options) -> Cases:
    epochs = 1 if options.quick else None
    return {
        f"{task}, {model}, seed {seed}": (measure, task, model, seed, epochs)
        for task, models in MODELS.items()
        for seed in SEEDS
        for model in models
    }


def measure(task: str, model: str, seed: int, *given: Any) -> Result:
    found = trained(task, model, seed, *given)
    facts = {"task": task, "model": model, "seed": seed, "epochs": found.run.epochs}
    return {**facts, "test": found.test, "seconds": found.seconds}


def tables(results: list[Result]) -> dict[str, str]:
    rows = [["task", "model", "seeds", "mean", "worst seed", "seconds"]]
    found = grouped(results, "task", "model")
    for key in [(task, model) for task, models in MODELS.items() for model in models]:
        if key in found:
            scores = [one["test"] for one in found[key]]
            seconds = statistics.median(one["seconds"] for one in found[key])
            numbers = f"{statistics.fmean(scores):.1f}", f"{min(scores):.1f}", f"{seconds:.0f}"
            rows.append([*key, str(len(scores)), *numbers])
    about = "Test accuracy in percent; median seconds of one training on one thread; "
    return {"seeds": f"{markdown_table(rows, left=2)}\n\n{about}{caption(results)}"}
