"""The figure of times: every curve is timed at every length, by the backend it names."""

import json
from pathlib import Path

import torch

from anharmonic.ops.backend import forced
from anharmonic.train import RunEnvironment
from anharmonic_papers.figures import speed


def test_every_layer_is_timed_at_every_length(monkeypatch):
    for name, value in {"LENGTHS": (3, 5), "BATCH": 2, "HIDDEN": 4}.items():
        monkeypatch.setattr(speed, name, value)
    seen = set()

    def milliseconds(layer, x):
        assert x.shape[1:] == (2, 1)
        seen.add((type(layer).__name__, forced()))
        return float(len(x))

    monkeypatch.setattr(speed, "milliseconds", milliseconds)
    threads = torch.get_num_threads()
    found = speed._measure(RunEnvironment(threads=1))
    assert torch.get_num_threads() == threads
    assert set(found.values) == set(speed._layers()) >= set(speed.FIGURES[0].outcomes)
    assert all(list(v) == found.places[k] == [3.0, 5.0] for k, v in found.values.items())
    assert {("UnICORNN", "auto"), ("UnICORNN", "reference"), ("LSTM", "auto")} <= seen


def test_a_pass_goes_forward_and_backward():
    layer = torch.nn.LSTM(1, 2)
    assert speed.milliseconds(layer, torch.randn(3, 2, 1), turns=2) > 0
    assert all(p.grad is not None for p in layer.parameters())


def test_the_page_of_figures_has_the_stored_times_over_those_of_the_lstm():
    papers = Path(__file__).parents[2]
    curves = json.loads((papers / "results" / "unicornn-speed.json").read_text("utf-8"))["curves"]
    ratio = {name: f"{values[-1] / curves['LSTM'][-1]:.2f}" for name, values in curves.items()}
    page = (papers / "docs" / "figures.md").read_text("utf-8")
    for label, name in (("coRNN", "coRNN"), ("UnICORNN, two layers", "UnICORNN, 2 layers")):
        assert f"| {label} | {ratio[name]} | {ratio[f'{name}, Python loop']} |" in page
    assert f"| LEM | {ratio['LEM']} | |" in page
