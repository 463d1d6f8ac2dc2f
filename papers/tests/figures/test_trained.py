"""Figures that train: the log is read again, the budget is said, a log that is gone is said."""

import pytest

from anharmonic import train
from anharmonic.train import Run, RunEnvironment
from anharmonic_papers.figures import trained

TASK = {"length": 8, "valid_size": 4, "test_size": 4, "steps_per_epoch": 3}
BUDGET = "adding, 6 steps of 4"


def a_run(model, **options):
    return Run("adding", model, TASK, {"hidden_size": 4, **options}, epochs=2, batch_size=4)


@pytest.fixture
def environment(tmp_path):
    return RunEnvironment(out=tmp_path, threads=1, progress=False)


def test_runs_are_smaller_than_those_of_the_tables_and_say_so():
    small = trained._small_runs()
    assert all(run.reduced and run.select == "last" for run in small.values())
    assert trained._words(small["sMNIST"]) == "smnist, 400 steps of 120"


def test_the_assumption_over_steps(environment):
    run = a_run("CoRNN", dt=0.25)
    found = trained._assumption({"adding": run}, environment)
    assert found.budget == BUDGET and found.places["adding: η"] == [0.0, 3.0, 6.0]
    assert found.values["adding: dt^r, r = 1/2"] == [0.5] * 3
    assert len(set(found.values["adding: η"])) == 3
    (train.run_folder(run, environment) / train.DIAGNOSTICS).unlink()
    with pytest.raises(FileNotFoundError, match=r"must be what was measured.*remove the run's"):
        trained._log(run, environment)


def test_norms_and_steps_by_layer(environment):
    run = a_run("UnICORNN", num_layers=3, dt=0.19)
    norms = trained._norms(run, environment)
    assert list(norms.values) == ["layer 1", "layer 2", "layer 3"]
    assert norms.places["layer 3"] == [0.0, 1.0, 2.0]
    steps = trained._effective_steps(run, environment)
    assert len(steps.values) == 4
    for values in steps.values.values():
        assert values == sorted(values) and 0.08 < values[0] < values[-1] < 0.11


def test_shares_of_gates_sum_to_one_up_to_dt(environment):
    found = trained._gate_shares(a_run("LEM", dt=0.21), environment)
    assert found.budget == BUDGET
    for name in ("gate of z, a", "gate of y, e"):
        assert sum(found.values[name]) == pytest.approx(1.0)
        assert max(found.places[name]) < 0.21
