"""Comparisons: what is trained, in which order models stand, and their page."""

import dataclasses
import re
import shutil

import numpy as np
import pytest
import torch

from anharmonic.data.base import Batch, Batches
from anharmonic.train import Run, compare, rows
from anharmonic.train.comparison import MODELS, estimate, plan
from anharmonic.train.comparison_page import _values, write_comparison
from anharmonic.train.standings import Standing, ordered
from anharmonic.train.verdict import sentences

SMALL = {
    "epochs": 1,
    "task_options": {"length": 8, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2},
    "model_options": {"hidden_size": 4},
}


def small(environment, task="adding", **changes):
    lines = []
    options = {"models": ["lem", "lstm"], "seeds": [0], "given": SMALL, **changes}
    return compare(task, environment, say=lines.append, **options), lines


def test_every_model_is_trained_with_every_seed_and_what_it_asked_for_once(environment):
    first, _ = small(environment)
    found, lines = small(environment, seeds=[0, 1])
    assert lines[0].startswith("2 trainings to run, 2 results from earlier; estimated time: ")
    assert {standing.model for standing in found.standings} == {"LEM", "LSTM"}
    assert found.metric == "mse" and not found.higher_is_better
    for standing in found.standings:
        asked = [(result.run.seed, result.run.epochs) for result in standing.results]
        assert asked == [(0, 1), (1, 1)]
        assert standing.results[:1] in [one.results for one in first.standings]
        tested = [result.test for result in standing.results]
        assert standing.test.mean == np.mean(tested)
        assert standing.test.deviation == pytest.approx(np.std(tested, ddof=1))
    known = [result.trivial for one in found.standings for result in one.results]
    assert found.trivial == pytest.approx(np.mean(known))
    # All models have one seed before any has two: after an interruption they can be compared.
    names = [row.name for row in found.plan.rows]
    assert names == ["LEM, seed 0", "LSTM, seed 0", "LEM, seed 1", "LSTM, seed 1"]
    assert small(environment, seeds=[0, 1])[1] == []


def test_a_run_that_fails_while_it_trains_stops_no_other(environment, monkeypatch):
    def fit(run, *others):
        if run.model == "LEM":
            raise RuntimeError("the machine is on fire")
        return trained(run, *others)

    trained = rows.fit
    monkeypatch.setattr(rows, "fit", fit)
    found, _ = small(environment)
    assert [standing.model for standing in found.standings] == ["LSTM"]
    assert found.failures == ("LEM, seed 0: the machine is on fire",)
    with pytest.raises(ValueError, match="the machine is on fire"):
        small(environment, models=["lem"])


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


def test_plans_have_folds_default_models_and_the_time_of_what_is_left(data, environment):
    here = dataclasses.replace(environment, file=data)
    made = plan("file", here, models=["gru"], seeds=[3], folds=3)
    assert [row.run.task_options["fold"] for row in made.rows] == [0, 1, 2]
    assert {row.run.seed for row in made.rows} == {3} and made.title == "mine"
    assert tuple(plan("digits", environment).recipes) == MODELS["sequence"]
    made = plan("adding", environment, models=["lem"], given=SMALL, seeds=[0])
    assert estimate(made) > 0
    small(environment, models=["lem"])
    assert estimate(made) == 0


def heading_of(page):
    return re.search(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)[1].replace("&#39;", "'")


def test_a_page_says_first_what_was_found_and_needs_nothing_else(environment, data, tmp_path):
    given = {"epochs": 3, "model_options": {"hidden_size": 4}}
    found, _ = small(dataclasses.replace(environment, file=data), "file", given=given)
    write_comparison(tmp_path / "new" / "page.html", found, "anharmonic compare <a>")
    page = (tmp_path / "new" / "page.html").read_text()
    assert heading_of(page) == sentences(found)[0]
    assert page.index("<h1") < page.index("<table")
    assert "anharmonic compare &lt;a&gt;" in page and "low, &lt;b&gt;" in page
    assert re.findall(r'(?:src|href)="(?!data:)', page) == []
    assert "Confusion matrix" in page and "anharmonic predict " in page
    assert page.count("<figure>") == 2  # training loss and confusion matrix: nothing validates


def test_several_comparisons_stand_on_one_page(environment, tmp_path):
    def page_of(found):
        write_comparison(tmp_path / "page.html", found)
        return (tmp_path / "page.html").read_text()

    one, _ = small(environment)
    page = page_of(one)
    assert "Predicted values" in page and "R²" in page
    # One epoch is no curve, and no command was given.
    assert not any(words in page for words in ("Confusion", "Learning", "The same again"))
    shutil.rmtree(environment.out)  # without the weights the rest is shown
    two, _ = small(environment, given=SMALL | {"lr": 0.1}, models=["lem"])
    page = page_of([one, two])
    assert "adding" in heading_of(page) and page.count(">Results<") == 2
    assert page.count("in detail") == 1


@pytest.mark.parametrize(
    ("valid", "higher", "folds", "test"),
    [
        ((60.0, 70.0, 65.0), True, False, 10.0),
        ((90.0, 10.0, 50.0), False, False, 10.0),
        ((60.0, 70.0, 65.0), True, True, 50.0),  # each validates on other data
        ((None, None, None), True, False, 50.0),
        ((None, None), True, False, 10.0),
    ],
)
def test_the_run_in_detail_is_the_best_by_validation_else_the_median_one(
    make_result, valid, higher, folds, test
):
    results = []
    for n, (value, tested) in enumerate(zip(valid, (90.0, 10.0, 50.0), strict=False)):
        fold = {"sha256": "0" * 64, "folds": 3, "fold": n}
        run = Run("file", "LEM", fold) if folds else Run("digits", "LEM", seed=n)
        result = make_result(run, test=tested, higher_is_better=higher)
        results.append(dataclasses.replace(result, valid=value))
    assert Standing("LEM", tuple(results)).representative.test == test


def test_of_quantiles_the_median_is_drawn():
    class Model(torch.nn.Module):
        def forward(self, *inputs):
            return torch.arange(1.0, 7.0)[None]

    batch = Batch(torch.zeros(1, 3, 1), torch.tensor([[8.0, 9.0]]).repeat(1, 3), None)
    found = _values(Model(), Batches(1, lambda index: batch), (0.1, 0.5, 0.9))
    assert found == ([8.0, 9.0], [3.0, 4.0])
