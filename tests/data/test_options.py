import dataclasses

import numpy as np
import pytest

from anharmonic.data import DataOptions, SequencesTask, sequences_from
from anharmonic.data.registry import task_options


@pytest.fixture
def task():
    x = np.random.default_rng(0).random((40, 12, 2))
    return SequencesTask({"all": sequences_from(x, np.arange(40) % 2)})


def test_they_are_the_options_of_the_task():
    names = [entry.name for entry in dataclasses.fields(DataOptions)]
    assert list(task_options("file")) == ["sha256", *names]


def test_options_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="scale_each with horizon must be None"):
        DataOptions(scale_each=True, horizon=3)
    with pytest.raises(ValueError, match="split with horizon must be auto, time or groups"):
        DataOptions(split="random", horizon=3)
    with pytest.raises(TypeError, match=r"quantiles must be a list; got 0\.5"):
        DataOptions(horizon=3, quantiles=0.5)


def test_other_options_are_another_task_on_the_same_data(task):
    folds = [task.with_options({"folds": 4, "fold": fold}) for fold in range(4)]
    assert sum(one.sizes["valid"] for one in folds) == 34 and task.sizes["test"] == 6
    anew = SequencesTask(task._parts, folds=4, fold=2)
    for mine, other in zip(folds[2].splits(), anew.splits(), strict=True):
        assert (mine.x == other.x).all() and (mine.y == other.y).all()
    assert task.with_options({"folds": 4, "fold": 3}) is folds[3]  # the newest is kept
    with pytest.raises(ValueError, match="columns of data that were read"):
        task.with_options({"target_column": "y"})
