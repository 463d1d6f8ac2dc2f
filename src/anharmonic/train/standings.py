"""The plan of a comparison of models, and its results, best first."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from anharmonic.data.base import Task
from anharmonic.nn.registry import model_kind
from anharmonic.train.recipe import Recipe, listed_settings
from anharmonic.train.results import Result
from anharmonic.train.rows import Row
from anharmonic.train.run import Run, RunEnvironment


@dataclass(frozen=True)
class Plan:
    """The trainings of a comparison."""

    title: str
    """Displayed name of the data."""
    task: Task
    """The task."""
    recipes: dict[str, Recipe]
    """A recipe for every model."""
    rows: tuple[Row, ...]
    """The runs; the first seed of all models comes before the second."""
    environment: RunEnvironment
    """Where to train them."""
    refused: tuple[str, ...] = ()
    """A line for each model that cannot be trained on this task."""
    notes: tuple[str, ...] = ()
    """A line for each omitted model."""

    def task_of(self, run: Run) -> Task:
        """Return the task of a run; data in memory are not read again."""
        found = self.recipes[run.model].task_of(run)
        return run.make_task(self.environment) if found is None else found

    def settings(self) -> dict[str, str]:
        """Return the chosen settings: those shared by all models, then those of each model."""
        chosen = {name: dict(found.chosen) for name, found in self.recipes.items()}
        trained = [one for name, one in chosen.items() if model_kind(name) != "fitted"]
        first = trained[0] if len(trained) > 1 else {}
        shared = {
            key: value
            for key, value in first.items()
            if all(key in one and one[key] == value for one in trained)
        }
        who = "all models" if len(trained) == len(chosen) else "all trained models"
        own = {
            name: {k: v for k, v in one.items() if k not in shared or one not in trained}
            for name, one in chosen.items()
        }
        found = {who: shared} | own
        return {name: listed_settings(one) for name, one in found.items() if one}

    def reasons(self) -> list[str]:
        """Return the reasons for the choices, each once."""
        found = (f"{one.why[:1].upper()}{one.why[1:]}" for one in self.recipes.values() if one.why)
        texts = list(dict.fromkeys(found))
        return [text for text in texts if not any(o != text and o.startswith(text) for o in texts)]


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of some values; one value has no deviation."""

    mean: float
    deviation: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of some values.

        Example:
            >>> Spread.of([1.0, 3.0]).mean, Spread.of([1.0]).deviation
            (2.0, None)
        """
        deviation = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), deviation)


@dataclass(frozen=True)
class Standing:
    """The results of one model."""

    model: str
    """Its name."""
    results: tuple[Result, ...]
    """Results over seeds and folds, at least one."""

    @property
    def test(self) -> Spread:
        """The test metric."""
        return Spread.of([result.test for result in self.results])

    @property
    def valid(self) -> Spread | None:
        """The validation metric; None without a validation set."""
        values = [result.valid for result in self.results if result.valid is not None]
        return Spread.of(values) if len(values) == len(self.results) else None

    @property
    def is_validated(self) -> bool:
        """Whether validation compares the runs: all have a value, of the same sequences."""
        folds = {result.run.task_options.get("fold") for result in self.results}
        return self.valid is not None and len(folds) == 1

    @property
    def representative(self) -> Result:
        """The run for details and predictions: the best by validation, else the median one."""
        values = [result.valid if self.is_validated else result.test for result in self.results]
        known = [value for value in values if value is not None]
        if not self.is_validated:
            return self.results[known.index(statistics.median_low(known))]
        best = max if self.results[0].higher_is_better else min
        return self.results[known.index(best(known))]

    @property
    def seconds(self) -> float:
        """Mean time of a training."""
        return statistics.fmean(result.seconds for result in self.results)


@dataclass(frozen=True)
class Comparison:
    """The results of a comparison.

    Example:
        >>> [name for name in Comparison.__dataclass_fields__]
        ['plan', 'standings', 'judged_by', 'failures']
    """

    plan: Plan
    """The trainings."""
    standings: tuple[Standing, ...]
    """The models, best first."""
    judged_by: Literal["validation", "test"]
    """The set that ranks the models; "test" only without a validation set."""
    failures: tuple[str, ...] = field(default=())
    """A line for each model or run that failed."""

    @property
    def elsewhere(self) -> int:
        """Number of trainings without result or error, which another process is running."""
        found = {result.hash for standing in self.standings for result in standing.results}
        missing = sum(row.run.hash not in found for row in self.plan.rows)
        return max(missing - len(self.failures) + len(self.plan.refused), 0)

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return self.standings[0].results[0].metric

    @property
    def answers(self) -> int | None:
        """Smallest number of test targets of a model; None if a result does not contain it."""
        counts = [result.tested for one in self.standings for result in one.results]
        known = [count for count in counts if count is not None]
        return min(known) if known and len(known) == len(counts) else None

    @property
    def higher_is_better(self) -> bool:
        """Whether larger values are better."""
        return self.standings[0].results[0].higher_is_better

    @property
    def trivial(self) -> float | None:
        """The baseline's test value; None if a result does not contain it."""
        values = [r.trivial for s in self.standings for r in s.results if r.trivial is not None]
        return statistics.fmean(values) if values else None


def ordered(made: Plan, standings: Sequence[Standing], failures: Sequence[str] = ()) -> Comparison:
    """Rank the models."""
    validated = all(standing.valid is not None for standing in standings)
    sign = -1 if standings[0].results[0].higher_is_better else 1

    def place(standing: Standing) -> float:
        judged = standing.valid if validated else standing.test
        assert judged is not None
        return sign * judged.mean

    by: Literal["validation", "test"] = "validation" if validated else "test"
    return Comparison(made, tuple(sorted(standings, key=place)), by, tuple(failures))
