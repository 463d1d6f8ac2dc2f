"""What a test gave, in ten lines."""

import pytest
import torch

pytest.importorskip("rich", reason="tables are printed with it")
from anharmonic import pages
from anharmonic.data.scores import ClassScores, ScoreTable, score_table
from anharmonic.pages import worst_confusion
from anharmonic.pages.scores import confusion_rows


@pytest.mark.parametrize("classes", [2, 3, 40])
def test_classes_in_ten_lines(classes):
    gen = torch.Generator().manual_seed(0)
    shares = torch.randn(200, classes, generator=gen).softmax(1)
    names = [f"class {i}" for i in range(classes)]
    table = score_table("class", shares, torch.arange(200) % classes, names)
    said = pages.report_text(table)
    assert len(said.splitlines()) <= 10
    assert "accuracy" in said and "Brier score" in said and "Most frequent error" in said
    worst = min(table.classes, key=lambda one: one.f1)
    assert worst.name in said
    assert ("report.json" in said) == (classes > 5)


def test_outputs_in_ten_lines_and_channels_and_steps_of_a_forecast():
    y = torch.arange(480.0).reshape(48, 10).sin()
    said = pages.report_text(score_table("value", y + 0.1, y))
    assert len(said.splitlines()) <= 10 and "5 more outputs in report.json" in said
    one = pages.report_text(score_table("value", y[:, :1] + 0.1, y[:, :1]))
    assert len(one.splitlines()) == 1 and "RMSE 0.1" in one
    y = torch.arange(48.0).reshape(4, 12)
    said = pages.report_text(score_table("value", y + 0.5, y, ("load",), horizon=12))
    assert "load" in said and "1: 0.5, 5: 0.5" in said and "12: 0.5" in said


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([[9, 1, 0], [2, 5, 7], [3, 0, 6]], "'bee' predicted as 'cat' (7 of 14 'bee')."),
        ([[9, 1, 0], [2, 5, 0], [3, 0, 6]], "'cat' predicted as 'ant' (3 of 9 'cat')."),
        ([[90, 0], [1, 9]], "'bee' predicted as 'ant' (1 of 10 'bee')."),
    ],
)
def test_the_worst_confusion_is_named(counts, said):
    found = worst_confusion(["ant", "bee", "cat"][: len(counts)], counts)
    assert found == f"Most frequent error: {said}"


def test_rows_of_a_confusion_matrix_are_true_classes():
    classes = (ClassScores("a", 100.0, 50.0, 66.6667, 4), ClassScores("b", 60.0, 100.0, 75.0, 3))
    head, rows = confusion_rows(ScoreTable(7, {}, {}, classes, confusion=((2, 2), (0, 3))))
    assert head == ("true class / predicted", "a", "b")
    assert rows == [("a", "2", "2"), ("b", "0", "3")]


def test_a_long_class_name_leaves_the_other_columns_whole():
    y = torch.arange(6) % 2
    said = pages.report_text(score_table("class", torch.eye(2)[y], y, ("a class " * 30, "b")))
    assert "precision" in said and "support" in said and said.count("100 %") >= 6
