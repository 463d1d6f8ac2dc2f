"""What is said must follow from the numbers."""

import dataclasses
from types import SimpleNamespace

import pytest

from anharmonic.data import make_task
from anharmonic.train import RunEnvironment
from anharmonic.train import verdict as module
from anharmonic.train.run import Run
from anharmonic.train.standings import Comparison, Plan, Spread, Standing
from anharmonic.train.verdict import about, learned, shown, table, trivial_words


def verdict(found):
    return " ".join(module.sentences(found)).replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture
def comparison(make_result):
    """A comparison from test values by model; in the order given."""

    def make(trivial=10.0, metric="accuracy", task="digits", judged="validation", **tests):
        standings = []
        for model, values in tests.items():
            results = []
            for seed, value in enumerate(values):
                run = Run(task, model, seed=seed)
                higher = metric == "accuracy"
                result = make_result(run, test=value, metric=metric, higher_is_better=higher)
                valid = None if judged == "test" else value
                results.append(dataclasses.replace(result, trivial=trivial, valid=valid))
            standings.append(Standing(model, tuple(results)))
        plan = Plan("GunPoint", make_task(task), {}, (), RunEnvironment())
        return Comparison(plan, tuple(standings), judged)

    return make


def test_the_best_is_named_with_its_number_and_the_trivial_answer(comparison):
    said = verdict(comparison(LEM=[96.0, 98.0], LSTM=[80.0, 81.0], trivial=50.7))
    assert said.startswith(
        "LEM reached 97.0 ± 1.4 % on the test data of GunPoint; the baseline, "
        "always answering the most frequent class, gives 50.7 %. Of 2 models it has the "
        "best validation score."
    )
    assert "LSTM 80.5 ± 0.7 %" in said and "standard deviations" not in said and "luck" not in said


@pytest.mark.parametrize(
    ("tests", "words"),
    [
        (
            {"LEM": [90.0, 98.0], "LSTM": [91.0, 95.0]},
            "from LSTM is within the standard deviations.",
        ),
        ({"LEM": [90.0], "LSTM": [91.0]}, "luck"),
        (
            {"LEM": [90.0, 91.0], "LSTM": [10.3, 11.0]},
            "LSTM (10.7 ± 0.5 %) did no better than the baseline",
        ),
        (
            {"LEM": [10.0, 10.4], "LSTM": [9.0, 9.0]},
            "No model did better on GunPoint than the baseline",
        ),
        (
            {"LEM": [90.0, 91.0], "LSTM": [98.0, 99.0]},
            "But LSTM reached 98.5 ± 0.7 % on the test data.",
        ),
        (
            {"LEM": [97.0, 98.0], "LSTM": [97.01, 98.01]},
            "LEM reached 97.5 ± 0.7 % on the test data of GunPoint, and so did LSTM",
        ),
    ],
)
def test_what_the_reader_must_know_is_said(comparison, tests, words):
    assert words in verdict(comparison(**tests))


def test_one_run_with_few_answers_is_told_from_one_with_many(comparison):
    found = comparison(LEM=[60.0], trivial=50.0)
    (result,) = found.standings[0].results
    for fields, said in (
        ({"tested": 30}, "But 30 answers cannot show that it is better than the baseline."),
        ({"tested": 3000, "tested_sequences": 6}, "But 6 sequences cannot show that it is better"),
        ({"tested": 3000}, ""),
    ):
        one = Standing("LEM", (dataclasses.replace(result, **fields),))
        text = verdict(dataclasses.replace(found, standings=(one,)))
        assert said in text and ("cannot show" in text) == bool(said)


def test_how_many_runs_count_is_said(comparison):
    found = comparison(LEM=[90.0, 91.0], LSTM=[80.0, 81.0])
    assert "of 2 runs" in about(found) and table(found)[0][0] == "LEM"
    found = comparison(LEM=[90.0], LSTM=[80.0, 81.0, 82.0])
    assert "standard deviation of 1 to 3 runs" in about(found)
    assert [row[0] for row in table(found)[:2]] == ["LEM (1 run)", "LSTM (3 runs)"]


def test_an_order_by_test_is_said(comparison):
    found = comparison(LEM=[90.0, 91.0], LSTM=[80.0, 80.0], judged="test")
    assert "no validation set" in verdict(found) and "no validation set" in about(found)
    assert "best validation score" not in verdict(found)
    assert table(found)[0][2] == "–"


def test_errors_get_smaller(comparison):
    found = comparison(trivial=0.167, metric="mse", task="adding", LEM=[0.001], LSTM=[0.166])
    best, other = found.standings
    assert learned(found, best) and not learned(found, other)
    said = verdict(found)
    assert "LEM reached mse 0.001 on" in said and "always answering the mean, gives 0.167" in said
    assert "LSTM (0.166) did no better" in said and "lower is better" in about(found)


@pytest.mark.parametrize(
    ("values", "better"),
    [([10.4, 10.4], False), ([60.0, 60.0], True), ([10.0, 60.0], False), ([5.0, 5.0], False)],
)
def test_learning_is_more_than_luck(comparison, values, better):
    found = comparison(LEM=values)
    assert learned(found, found.standings[0]) is better


def test_table_ends_with_the_trivial_answer(comparison):
    rows = table(comparison(LEM=[90.0, 91.0], LSTM=[80.0, 80.0]))
    assert rows[0] == ["LEM", "90.5 ± 0.7", "90.5 ± 0.7", "1,234", "30"]
    assert rows[-1][:2] == ["(baseline)", "10.0"]


def test_numbers_have_the_digits_that_matter():
    assert shown(Spread(0.00012345, 0.0000678), "mse") == "0.000123 ± 6.8e-05"
    assert shown(98.76, "f1") == "98.8"


def test_of_errors_the_smaller_one_tests_better(comparison):
    found = comparison(trivial=1.0, metric="mse", task="adding", LEM=[0.02, 0.02], LSTM=[0.3, 0.3])
    assert "But " not in verdict(found)
    found = comparison(trivial=1.0, metric="mse", task="adding", LEM=[0.3, 0.3], LSTM=[0.02, 0.02])
    assert "But LSTM reached 0.02" in verdict(found)


@pytest.mark.parametrize("other, within", [([88.0, 90.0], True), ([85.0, 87.0], False)])
def test_the_spread_is_that_of_both(comparison, other, within):
    """Means 2 and 5 apart, each with a deviation of 1.4."""
    said = verdict(comparison(LEM=[90.0, 92.0], LSTM=other))
    assert ("within the standard deviations" in said) is within


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metric": "cross_entropy"}, "always answering the shares of the classes"),
        (
            {"target": "value", "windows": SimpleNamespace(horizon=2), "quantiles": (0.1, 0.5)},
            "the last value plus quantiles of its changes",
        ),
    ],
)
def test_the_baseline_is_the_one_that_was_measured(comparison, monkeypatch, changes, words):
    found = comparison(LEM=[90.0])
    for name, value in changes.items():
        monkeypatch.setattr(found.plan.task, name, value, raising=False)
    assert trivial_words(found) == words
