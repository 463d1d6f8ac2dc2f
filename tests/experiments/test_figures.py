"""Figures: measured once, kept whole, printed beside what was reported."""

import json
from dataclasses import replace

import pytest

from anharmonic.cli.main import main
from anharmonic.experiments import registry
from anharmonic.experiments.figures import Figure, markdown, measure, path_of, terminal
from anharmonic.experiments.smoothing import FIGURES


@pytest.fixture
def figure():
    calls = []

    def curves():
        calls.append(1)
        return {"plain": [1.0, 0.1, 0.01234567], "gated": [1.0, 1.0]}

    made = Figure(
        "a-figure", "A title", "Figure 0", "layer", "Energy", {"plain": "decay"}, curves, (0, 2)
    )
    return made, calls


def test_measured_once_and_read_afterwards(figure, tmp_path):
    made, calls = figure
    first = measure(made, tmp_path / "new")
    assert measure(made, tmp_path / "new") == first
    assert len(calls) == 1
    assert first.curves["plain"] == [1.0, 0.1, 0.0123457]
    assert json.loads(path_of(made, tmp_path / "new").read_text())["figure"] == "a-figure"


def test_numbers_at_the_marks_beside_the_reported(figure, tmp_path):
    made, _ = figure
    found = measure(made, tmp_path)
    text = terminal(replace(made, note="A note."), found)
    assert "plain  1.0e+00  1.2e-02  decay" in text
    assert "gated  1.0e+00  -        -" in text
    assert "* A note." in text
    assert "| plain | 1.0e+00 | 1.2e-02 | decay |" in markdown(made, found)


def test_a_damaged_file_is_said(figure, tmp_path):
    made, _ = figure
    path_of(made, tmp_path).write_text('{"figure": "a-figure", "curves": {}')
    with pytest.raises(ValueError, match=r"must hold the curves of a figure.*remove it and run"):
        measure(made, tmp_path)


def test_from_the_command_line(figure, tmp_path, monkeypatch, capsys):
    made, calls = figure
    monkeypatch.setitem(registry._FIGURES, "a-figure", made)
    monkeypatch.chdir(tmp_path)
    assert main(["table", "a-figure", "--dry-run"]) == 0
    assert "would be measured" in capsys.readouterr().out
    assert main(["table", "a-figure"]) == 0
    assert "a-figure: A title" in capsys.readouterr().out
    assert main(["report", "a-figure", "--markdown", "out.md"]) == 0
    assert "## A title" in (tmp_path / "out.md").read_text()
    assert main(["report", "a-figure"]) == 0
    assert "decay" in capsys.readouterr().out
    assert len(calls) == 1


def test_figures_of_the_documents_have_an_outcome_for_every_curve():
    for figure in FIGURES:
        assert registry.list_figures().count(figure.id) == 1
        assert figure.marks[0] == 0
        assert figure.outcomes
