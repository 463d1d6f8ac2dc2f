import dataclasses

import numpy as np
import pytest

from anharmonic.train import RunEnvironment, compare, read_results
from anharmonic.train.comparison import MODELS, estimate, plan
from anharmonic.train.run import Run
from anharmonic.train.standings import Standing, ordered

SMALL = {
    "epochs": 1,
    "task_options": {"length": 8, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2},
    "model_options": {"hidden_size": 4},
}


@pytest.fixture
def environment(tmp_path):
    return RunEnvironment(out=tmp_path / "runs", threads=1, progress=False)


def small(environment, **changes):
    lines = []
    options = {"models": ["lem", "lstm"], "seeds": [0, 1], "given": SMALL, **changes}
    return compare("adding", environment, say=lines.append, **options), lines


def test_every_model_is_trained_with_every_seed_and_what_it_asked_for(environment):
    found, lines = small(environment)
    assert {standing.model for standing in found.standings} == {"LEM", "LSTM"}
    for standing in found.standings:
        assert [result.run.seed for result in standing.results] == [0, 1]
        assert all(result.run.epochs == 1 for result in standing.results)
        assert standing.test.mean == np.mean([result.test for result in standing.results])
        deviation = np.std([result.test for result in standing.results], ddof=1)
        assert standing.test.deviation == pytest.approx(deviation)
    assert found.metric == "mse" and not found.higher_is_better
    known = [result.trivial for one in found.standings for result in one.results]
    assert found.trivial == pytest.approx(np.mean(known))
    assert lines[0].startswith("4 trainings; estimated time: ")
    # All models have one seed before any has two: after an interruption they can be compared.
    assert [row.name for row in found.plan.rows] == [
        "LEM, seed 0", "LSTM, seed 0", "LEM, seed 1", "LSTM, seed 1",
    ]  # fmt: skip


def test_what_has_a_result_is_not_trained_again(environment):
    first, _ = small(environment, seeds=[0])
    again, lines = small(environment)
    assert lines[0].startswith("2 trainings to run, 2 results from earlier; estimated time: ")
    assert len(read_results(environment.results_path)) == 4
    kept = {result.hash: result for one in again.standings for result in one.results}
    for standing in first.standings:
        assert all(kept[result.hash] == result for result in standing.results)
    assert small(environment)[1] == []


def test_a_run_that_fails_while_it_trains_stops_no_other(environment, monkeypatch):
    from anharmonic.train import rows

    def fit(run, environment, task=None, on_epoch_end=None):
        if run.model == "LEM":
            raise RuntimeError("the machine is on fire")
        return trained(run, environment)

    trained = rows.fit
    monkeypatch.setattr(rows, "fit", fit)
    found, _ = small(environment, seeds=[0])
    assert [standing.model for standing in found.standings] == ["LSTM"]
    assert found.failures == ("LEM, seed 0: the machine is on fire",)
    with pytest.raises(ValueError, match="the machine is on fire"):
        small(environment, models=["lem"], seeds=[0])


@pytest.mark.parametrize(
    ("higher", "valid", "judged_by", "first"),
    [
        (False, (0.5, 0.3), "validation", "LSTM"),
        (True, (0.5, 0.3), "validation", "LEM"),
        (False, (0.1, None), "test", "LEM"),
    ],
)
def test_order_goes_by_test_only_where_nothing_validates(
    make_result, environment, higher, valid, judged_by, first
):
    standings = []
    for model, test, value in zip(("LEM", "LSTM"), (0.1, 0.2), valid, strict=True):
        result = make_result(Run("adding", model), test=test, higher_is_better=higher)
        standings.append(Standing(model, (dataclasses.replace(result, valid=value),)))
    found = ordered(plan("adding", environment, models=["LEM"]), standings)
    assert found.judged_by == judged_by and found.standings[0].model == first


def test_folds_of_a_file(data, tmp_path):
    environment = RunEnvironment(out=tmp_path / "runs", file=data, progress=False)
    made = plan("file", environment, models=["gru"], seeds=[3], folds=3)
    assert [row.run.task_options["fold"] for row in made.rows] == [0, 1, 2]
    assert {row.run.seed for row in made.rows} == {3} and made.title == "mine"
    with pytest.raises(ValueError, match=r"folds must be .* got 3"):
        plan("adding", RunEnvironment(), folds=3)


def test_default_models_are_those_of_the_kind(environment):
    assert tuple(plan("digits", environment).recipes) == MODELS["sequence"]
    with pytest.raises(ValueError, match=r"must be one for sequences.*|sequences"):
        plan("digits", environment, models=["GraphCON"])


def test_time_is_that_of_what_is_left(environment):
    made = plan("adding", environment, models=["lem"], given=SMALL, seeds=[0])
    assert estimate(made) > 0
    small(environment, models=["lem"], seeds=[0])
    assert estimate(made) == 0
