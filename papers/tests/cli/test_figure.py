"""The command that measures and draws figures."""

import json
from pathlib import Path

import pytest

from anharmonic_papers.figures import registry
from anharmonic_papers.figures.base import Curves, Figure


@pytest.fixture
def calls(monkeypatch):
    """A figure of two short curves in the registry; the places it was measured at."""
    seen = []

    def curves(environment):
        seen.append(environment)
        return Curves({"plain": [1.0, 0.1, 0.01], "gated": [1.0, 1.0, 1.0]}, budget="nothing")

    made = Figure(
        "a-figure", "A title", "Figure 0", "layer", "Energy", {"plain": "decay"}, curves, (0, 2),
        log="y",
    )  # fmt: skip
    monkeypatch.setitem(registry._FIGURES, "a-figure", made)
    return seen


def test_measures_once_prints_and_draws(cli, tmp_path, calls):
    assert cli("figure", "a-figure", "--dry-run")[1] == (
        "a-figure: A title (Figure 0)  would be measured\n"
    )
    code, out, _ = cli("figure", "a-figure", "a-figure", "--threads", "1")
    assert code == 0 and out.count("a-figure: A title") == 1
    assert "1.0e-02  decay" in out and "Trained for it: nothing." in out
    assert out.endswith("wrote pictures/a-figure.svg\n\n")
    assert calls[0].threads == 1
    picture = (tmp_path / "pictures/a-figure.svg").read_bytes()
    assert b"<svg" in picture and len(picture) < 100_000
    assert json.loads((tmp_path / "results/a-figure.json").read_text())["budget"] == "nothing"
    assert cli("figure", "a-figure", "--form", "png", "--pictures", "new")[0] == 0
    assert (tmp_path / "new/a-figure.png").read_bytes().startswith(b"\x89PNG")
    assert cli("figure", "a-figure")[0] == 0 and len(calls) == 1
    assert (tmp_path / "pictures/a-figure.svg").read_bytes() == picture
    assert "has a result" in cli("figure", "a-figure", "--dry-run")[1]


def test_report_shows_measured_figures(cli, tmp_path, calls):
    cli("figure", "a-figure")
    assert cli("report", "a-figure", "--markdown", "out.md")[0] == 0
    assert "## A title" in (tmp_path / "out.md").read_text()
    assert "decay" in cli("report", "a-figure")[1]


@pytest.mark.parametrize(
    "name", ["cornn-single-neuron-heuristics", "graphcon-molecule-illustration"]
)
def test_figures_without_training_are_drawn_as_stored(cli, tmp_path, name):
    code, out, _ = cli("figure", name, "--form", "png")
    assert code == 0 and "reported" in out
    assert (tmp_path / "pictures" / f"{name}.png").stat().st_size > 10_000
    stored = Path(__file__).parents[2] / "results" / f"{name}.json"
    made = tmp_path / "results" / f"{name}.json"
    expected, found = (json.loads(file.read_text("utf-8")) for file in (stored, made))
    assert found["places"] == expected["places"]
    for curve, values in expected["curves"].items():
        assert found["curves"][curve] == pytest.approx(values, abs=1e-5), curve
