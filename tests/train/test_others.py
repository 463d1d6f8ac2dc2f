"""Models that are fitted at once, beside those that are trained."""

import dataclasses
import re

import pytest
import torch
from torch import nn

from anharmonic.train import Other, RunEnvironment, compare, write_comparison
from anharmonic.train.compare import plan
from anharmonic.train.others import outcomes_path, read_outcomes
from anharmonic.train.verdict import sentences


class Constant(nn.Module):
    """Always the most frequent class of training."""

    def __init__(self, y, classes):
        super().__init__()
        self.scores = nn.Parameter(torch.bincount(y, minlength=classes).float())

    def forward(self, x, lengths=None):
        return self.scores.expand(len(x), -1)


def constant(fitted, settings=None, refusal=""):
    def fit(task, batches, run):
        fitted.append((run.seed, run.task_options))
        return Constant(torch.cat([batch.y for batch in batches]), task.output_size)

    return Other("constants", settings or {}, lambda task: refusal, fit, "print('constant')")


@pytest.fixture
def environment(tmp_path, data):
    return RunEnvironment(out=tmp_path / "runs", file=data, threads=1, progress=False)


def small(environment, others, **changes):
    lines = []
    given = {"epochs": 1, "model_options": {"hidden_size": 4}}
    options = {"models": ["lem"], "seeds": [0, 1], "given": given, **changes}
    return compare("file", environment, others=others, say=lines.append, **options), lines


def test_they_stand_beside_what_is_trained_and_come_first(environment):
    fitted = []
    found, lines = small(environment, [constant(fitted)])
    (one,) = [standing for standing in found.standings if standing.model == "constants"]
    assert [seed for seed, _ in fitted] == [0, 1]
    assert one.test.mean == found.trivial  # the same answer
    assert one.results[0].parameters == 2
    assert [line.split(",")[0] for line in lines[:2]] == ["constants"] * 2
    assert lines[2].startswith("2 trainings of 2")


def test_inputs_are_those_of_the_data_without_differences(environment):
    fitted = []
    found, _ = small(environment, [constant(fitted)])
    trained = found.plan.recipes["LEM"].run.task_options
    assert trained["difference"] is True
    assert fitted[0][1] == {**trained, "difference": False}


def test_what_has_an_outcome_is_not_fitted_again(environment):
    fitted = []
    first, _ = small(environment, [constant(fitted)], models=[], seeds=[0])
    again, lines = small(environment, [constant(fitted)], models=[])
    assert [seed for seed, _ in fitted] == [0, 1] and len(lines) == 1
    assert again.standings[0].results[0] == first.standings[0].results[0]
    # Other settings are another model.
    small(environment, [constant(fitted, {"a": 1})], models=[], seeds=[0])
    assert len(fitted) == 3


def test_a_line_cut_short_is_fitted_again(environment):
    fitted = []
    small(environment, [constant(fitted)], models=[], seeds=[0])
    path = outcomes_path(environment)
    path.write_text(path.read_text()[:40])
    assert read_outcomes(environment) == {}
    found, _ = small(environment, [constant(fitted)], models=[], seeds=[0])
    assert len(fitted) == 2 and len(found.standings) == 1


def test_every_fold_validates_once(environment):
    fitted = []
    found, _ = small(environment, [constant(fitted)], models=[], seeds=[0], folds=3)
    assert [options["fold"] for _, options in fitted] == [0, 1, 2]
    assert found.judged_by == "validation" and len(found.standings[0].results) == 3


def test_a_failure_stops_no_other(environment):
    def fit(task, batches, run):
        raise ValueError("too heavy")

    broken = dataclasses.replace(constant([]), name="broken", fit=fit)
    found, _ = small(environment, [broken], seeds=[0])
    assert [standing.model for standing in found.standings] == ["LEM"]
    assert found.failures == ("broken, seed 0: too heavy",)


def test_what_cannot_be_fitted_is_left_out_and_said(environment):
    other = constant([], refusal="not today")
    found, lines = small(environment, [other], seeds=[0])
    assert lines[0] == "constants are left out: not today." and not found.failures
    with pytest.raises(ValueError, match="constants are left out: not today"):
        small(environment, [other], models=[])
    made = plan("adding", RunEnvironment(), models=["lem"], others=[constant([])])
    assert made.others == () and "adding" in made.notes[0]
    with pytest.raises(ValueError, match=r"models must be at least one name"):
        plan("adding", RunEnvironment(), models=[])


def test_the_page_shows_them_in_detail_and_how_they_are_had(environment, tmp_path):
    found, _ = small(environment, [constant([])], models=[])
    write_comparison(tmp_path / "page.html", found)
    page = (tmp_path / "page.html").read_text()
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL).group(1)
    assert "Confusion matrix" in page and "print(&#39;constant&#39;)" in page
    assert heading.replace("&#39;", "'") in sentences(found)[0].replace("<", "&lt;")
    both, _ = small(environment, [constant([])])
    write_comparison(tmp_path / "page.html", both)
    assert "anharmonic predict " in (tmp_path / "page.html").read_text()
