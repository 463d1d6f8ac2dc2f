"""The page of a trained run."""

import re

import pytest
import torch

from anharmonic.diagnostics.registry import is_power_law, power_law
from anharmonic.diagnostics.timescales import scale_histogram
from anharmonic.train.probes import read_diagnostics

pytest.importorskip("matplotlib", reason="the page has pictures")
SMALL = (
    "adding", "--length", "12", "--valid-size", "9", "--test-size", "4", "--steps-per-epoch", "2",
)  # fmt: skip
TWO = ("--hidden-size", "3", "--epochs", "2", "--threads", "1", "--no-progress")
TITLES = {
    "lem": ["Gates"],
    "cornn": ["Energy", "Weights"],
    "unicornn": ["Effective steps", "Energy", "Weights"],
}


@pytest.mark.fast("cornn")
@pytest.mark.parametrize("model", TITLES)
def test_numbers_and_one_page_that_needs_nothing_else(done, train_quickly, model):
    logged = ("--diagnose", "gradients", *(("weights",) if "cornn" in model else ()))
    folder, _ = train_quickly(model, *SMALL, *logged, quick=TWO)
    out = done("diagnose", folder)
    page = (folder / "diagnosis.html").read_text(encoding="utf-8")
    pictures = ["Gradients over time", *TITLES[model], "Largest Lyapunov exponent"]
    first = ["In short", "Training", "Metrics of the validation set"]
    assert re.findall("<h2>(.*?)</h2>", page) == [*first, *pictures, "The run"]
    assert re.search(r"\nMetrics of the validation set\n  MSE .*\n  RMSE .*\n  MAE .*\n  R² ", out)
    assert all(f"\n{title}\n" in out for title in pictures)
    assert page.count("<img ") == 1 + len(pictures)
    assert "<script" not in page and not re.search(r'(src|href)="https?:', page)
    assert "nan" not in out
    assert f"wrote {folder / 'diagnosis.html'}" in out


def test_a_page_elsewhere_of_two_directions_without_a_log(done, train_quickly, tmp_path):
    folder, _ = train_quickly("cornn", *SMALL, "--bidirectional", "True", quick=TWO)
    out = done("diagnose", folder, "--html", "new/page.html")
    assert out.endswith("wrote new/page.html\n")
    assert "not measured" not in out and "\nWeights\n  η of layer 1 " in out
    assert "\n  η of layer 1, reverse " in out and "layer 2" not in out
    page = (tmp_path / "new/page.html").read_text(encoding="utf-8")
    assert "first layer&#39;s forward direction alone" in page
    assert "trained with --diagnose weights" in page


@pytest.mark.papers
def test_a_neural_ode_has_its_adjoint(done, train_quickly):
    pytest.importorskip("torchdiffeq", reason="solves need the extra 'ode'")
    words = ("NeuralODE", "breast-cancer", "--width", "4", "--rtol", "1e-2", "--atol", "1e-3")
    folder, _ = train_quickly(*words, "--diagnose", "adjoint", quick=TWO)
    log = read_diagnostics(folder / "diagnostics.jsonl")
    assert [entry["epoch"] for entry in log] == [0, 1, 2]
    assert all(len(entry["adjoint"]["norm"]) == 100 for entry in log)
    assert all(entry["adjoint"]["score"] >= 1 for entry in log)
    out = done("diagnose", folder)
    assert "\nAdjoint\n  adjoint score" in out and " a solve" in out


def test_a_short_training_on_a_file_is_never_called_faultless(done, refused, data, train_quickly):
    folder, _ = train_quickly("lem", data, "--bidirectional", "False")
    assert re.search("must be the data file.*--file PATH", refused("diagnose", folder))
    out = done("diagnose", folder, "--file", data)
    assert "Gates" in out and f"LEM on {data.name}" in out
    said = " ".join(out.partition("In short")[2].split())
    assert "None of the checks" not in said
    assert re.search(r"The run made \d+ optimiser steps. The default is 2,000", said)
    recalls = [float(r) for r in re.findall(r"^\S+ +\d+ % +(\d+) % +", out, re.M)]
    assert min(recalls) >= 50 or re.search(r"missed in the test set: .* \(recall \d+ %\)", said)
    assert re.search(r"\nclass +precision +recall +F1 +AUROC +support\n", out)
    page = (folder / "diagnosis.html").read_text(encoding="utf-8")
    assert "validation sequence" not in page  # there are none
    cells = r"<tr><td>\w+</td>(<td>[\d.]+ %</td>){3}<td>[\d.]+</td><td>\d+</td></tr>"
    assert re.search(cells, page)
    assert re.search(r'<img [^>]*alt="Metrics of the test set: Over \d+ predictions.', page)


def test_few_values_make_no_power_law():
    found = [scale_histogram(torch.logspace(-3, 0, 400), bins=bins) for bins in (4, 5)]
    few, enough = map(power_law, found)
    straight = scale_histogram(torch.tensor([0.1, 1.0, 1.0]), bins=2)  # two points are a line
    assert straight.r_squared == 1 and not is_power_law(straight)
    assert few == "all values in 4 of 4 bins, too few to fit a power law"
    assert "(r² " in enough and "5 bins)" in enough
