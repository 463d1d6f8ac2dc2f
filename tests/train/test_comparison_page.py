import dataclasses
import re
import shutil

import pytest
import torch
from torch import nn

from anharmonic.data.base import Batch, Batches
from anharmonic.train import RunEnvironment, compare
from anharmonic.train.comparison import plan
from anharmonic.train.comparison_page import _values, write_comparison
from anharmonic.train.run import Run
from anharmonic.train.standings import Standing
from anharmonic.train.verdict import sentences


def quick(task, environment, **changes):
    options = {"models": ["lem", "lstm"], "seeds": [0], "say": lambda line: None, **changes}
    options["given"] = {"model_options": {"hidden_size": 4}, **options.get("given", {})}
    return compare(task, environment, **options)


@pytest.fixture
def environment(tmp_path):
    return RunEnvironment(out=tmp_path / "runs", threads=1, progress=False)


def test_a_page_says_first_what_was_found_and_needs_nothing_else(environment, data, tmp_path):
    environment = RunEnvironment(**{**vars(environment), "file": data})
    found = quick("file", environment, given={"epochs": 3})
    write_comparison(tmp_path / "new" / "page.html", found, "anharmonic compare <a>")
    page = (tmp_path / "new" / "page.html").read_text()
    first, *_ = sentences(found)
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL).group(1)
    assert heading.replace("&#39;", "'") == first
    assert page.index("<h1") < page.index("<table")
    assert "anharmonic compare &lt;a&gt;" in page and "low, &lt;b&gt;" in page
    assert re.findall(r'(?:src|href)="(?!data:)', page) == []
    assert "Confusion matrix" in page and "anharmonic predict " in page
    assert page.count("<figure>") == 2  # training loss and confusion matrix: nothing validates


def test_several_comparisons_stand_on_one_page(environment, tmp_path):
    small = {"length": 8, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2}
    given = {"epochs": 1, "task_options": small}
    one = quick("adding", environment, given=given)
    write_comparison(tmp_path / "page.html", one)
    page = (tmp_path / "page.html").read_text()
    assert "Predicted values" in page and "R²" in page and "Confusion" not in page
    assert "Learning" not in page  # one epoch is no curve
    assert "The same again" not in page
    shutil.rmtree(environment.out)  # without the weights the rest is shown
    two = quick("adding", environment, given=given | {"lr": 0.1}, models=["lem"])
    write_comparison(tmp_path / "page.html", [one, two])
    page = (tmp_path / "page.html").read_text()
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL).group(1)
    assert "adding" in heading and page.count(">Results<") == 2
    assert page.count("in detail") == 1


def test_the_run_in_detail_is_the_best_by_validation_else_the_median_one(make_result):
    runs = [Run("digits", "LEM", seed=seed) for seed in range(3)]
    results = [
        make_result(run, test=test, valid=(valid,), higher_is_better=True)
        for run, test, valid in zip(runs, (90.0, 10.0, 50.0), (60.0, 70.0, 65.0), strict=True)
    ]
    assert Standing("LEM", tuple(results)).representative.test == 10.0
    folds = [
        dataclasses.replace(
            one, run=Run("file", "LEM", {"sha256": "0" * 64, "folds": 3, "fold": fold})
        )
        for fold, one in enumerate(results)
    ]
    assert Standing("LEM", tuple(folds)).representative.test == 50.0
    results = [dataclasses.replace(one, valid=None) for one in results]
    assert Standing("LEM", tuple(results)).representative.test == 50.0
    assert Standing("LEM", tuple(results[:2])).representative.test == 10.0
    errors = [dataclasses.replace(one, higher_is_better=False, valid=one.test) for one in results]
    assert Standing("LEM", tuple(errors)).representative.test == 10.0


def test_settings_that_models_share_are_said_once(environment):
    said = plan("digits", environment, models=["lem", "lstm"], given={"epochs": 1}).settings()
    assert next(iter(said)) == "all models" and "batch_size" in said["all models"]
    assert "dt" in said["LEM"] and "batch_size" not in said["LEM"]
    assert "epochs" not in "".join(said.values())  # it was asked for


def test_of_quantiles_the_median_is_drawn():
    class Model(nn.Module):
        def forward(self, *inputs):
            return torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])

    batch = Batch(torch.zeros(1, 3, 1), torch.tensor([[8.0, 9.0]]).repeat(1, 3), None)
    batches = Batches(1, lambda index: batch)
    assert _values(Model(), batches, (0.1, 0.5, 0.9)) == ([8.0, 9.0], [3.0, 4.0])
