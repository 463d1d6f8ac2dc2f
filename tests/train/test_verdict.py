"""What is said must follow from the numbers."""

import dataclasses

import pytest

from anharmonic.data import make_task
from anharmonic.train import RunEnvironment
from anharmonic.train import verdict as module
from anharmonic.train.run import Run
from anharmonic.train.standings import Comparison, Plan, Standing
from anharmonic.train.verdict import about, table, trivial_words

ERRORS = {"metric": "mse", "task": "adding", "trivial": 0.167}
FIRST = (
    "LEM reached 97.0 ± 1.4 % on the test data of GunPoint; the baseline, always answering the "
    "most frequent class, gives 50.7 %. Of 2 models it has the best validation score."
)


def verdict(found):
    return " ".join(module.sentences(found)).replace("\N{NO-BREAK SPACE}", " ")


@pytest.fixture
def comparison(make_result):
    """A comparison from test values by model; in the order given."""

    def make(
        trivial=10.0, metric="accuracy", task="digits", judged="validation", fields=None, **tests
    ):
        standings, higher = [], metric == "accuracy"
        common = {
            "metric": metric,
            "higher_is_better": higher,
            "trivial": trivial,
            **(fields or {}),
        }
        for model, values in tests.items():
            results = [
                dataclasses.replace(
                    make_result(Run(task, model, seed=seed), test=float(value), **common),
                    valid=None if judged == "test" else float(value),
                )
                for seed, value in enumerate(values)
            ]
            standings.append(Standing(model, tuple(results)))
        plan = Plan("GunPoint", make_task(task), {}, (), RunEnvironment())
        return Comparison(plan, tuple(standings), judged)

    return make


@pytest.mark.parametrize(
    ("lem", "lstm", "given", "said"),
    [
        ([96, 98], [80, 81], {"trivial": 50.7}, FIRST),
        ([96, 98], [80, 81], {}, "LSTM 80.5 ± 0.7 %"),
        ([90, 98], [91, 95], {}, "from LSTM is within the standard deviations."),
        # Means 2 and 5 apart, each with a deviation of 1.4.
        ([90, 92], [88, 90], {}, "within the standard deviations"),
        ([90, 92], [85, 87], {}, "not within the standard deviations"),
        ([90], [91], {}, "luck"),
        ([90, 92], [85, 87], {}, "not luck"),
        ([90, 91], [10.3, 11], {}, "LSTM (10.7 ± 0.5 %) did no better than the baseline"),
        ([10, 10.4], [9, 9], {}, "No model did better on GunPoint than the baseline"),
        ([10, 60], [9, 9], {}, "No model did better"),  # its spread is larger than its gain
        ([90, 98], [95, 97], {}, "LSTM reached 96.0 ± 1.4 % on the test data, but the diff"),
        ([90, 91], [98, 99], {}, "But LSTM reached 98.5 ± 0.7 % on the test data."),
        ([97, 98], [97.01, 98.01], {}, "97.5 ± 0.7 % on the test data of GunPoint, and so did L"),
        ([97, 98], [97.01, 98.01], {}, "not LSTM reached"),
        ([90, 91], [80, 80], {"judged": "test"}, "no validation set"),
        ([90, 91], [80, 80], {"judged": "test"}, "not best validation score"),
        ([0.001], [0.166], ERRORS, "LEM reached mse 0.001 on"),
        ([0.001], [0.166], ERRORS, "always answering the mean, gives 0.167"),
        ([0.001], [0.166], ERRORS, "LSTM (0.166) did no better"),
        ([0.001], [0.166], ERRORS, "not But "),
        ([0.03, 0.03], [0.002, 0.002], ERRORS, "But LSTM reached 0.002"),
    ],
)
def test_what_the_reader_must_know_is_said_and_nothing_else(comparison, lem, lstm, given, said):
    text = verdict(comparison(**given, LEM=lem, LSTM=lstm))
    assert (said.removeprefix("not ") in text) != said.startswith("not ")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tested": 30}, "But 30 answers cannot show that it is better than the baseline."),
        ({"tested": 3000, "tested_sequences": 6}, "But 6 sequences cannot show that it is better"),
        ({"tested": 3000}, ""),
    ],
)
def test_one_run_with_few_answers_is_told_from_one_with_many(comparison, fields, said):
    text = verdict(comparison(LEM=[60.0], trivial=50.0, fields=fields))
    assert said in text and ("cannot show" in text) == bool(said)


def test_the_table_and_what_is_said_about_it(comparison):
    found = comparison(LEM=[90.0, 91.0], LSTM=[80.0, 80.0])
    assert "of 2 runs" in about(found)
    assert table(found)[0] == ["LEM", "90.5 ± 0.7", "90.5 ± 0.7", "1,234", "30"]
    assert table(found)[-1][:2] == ["(baseline)", "10.0"]
    found = comparison(LEM=[90.0], LSTM=[80.0, 81.0, 82.0], judged="test")
    assert "standard deviation of 1 to 3 runs" in about(found)
    assert "no validation set" in about(found) and table(found)[0][2] == "–"
    assert [row[0] for row in table(found)[:2]] == ["LEM (1 run)", "LSTM (3 runs)"]
    assert "lower is better" in about(comparison(**ERRORS, LEM=[0.001]))


FORECAST = {"target": "value", "horizon": 2}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metric": "cross_entropy"}, "always answering the shares of the classes"),
        (FORECAST, "repeating the last value"),
        (
            {**FORECAST, "quantiles": (0.1, 0.5)},
            "the last value plus quantiles of the changes since then",
        ),
    ],
)
def test_the_baseline_is_the_one_that_was_measured(comparison, monkeypatch, changes, words):
    found = comparison(LEM=[90.0])
    for name, value in changes.items():
        monkeypatch.setattr(found.plan.task, name, value)
    assert trivial_words(found) == words
