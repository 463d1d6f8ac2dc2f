"""HTML and terminal pages: what comes in is escaped, everything fits, and nothing is lost."""

import base64
import re

import pytest
import torch

from anharmonic import pages
from anharmonic.data.scores import ClassScores, ScoreTable, score_table
from anharmonic.pages import worst_confusion
from anharmonic.pages.scores import confusion_rows

jinja2 = pytest.importorskip("jinja2", reason="pages are made with it")
pytest.importorskip("rich", reason="tables are printed with it")


@pytest.fixture
def render(tmp_path):
    def made(text, name="a.html.jinja", **values):
        (tmp_path / name).write_text(text)
        return pages.render(tmp_path / name, **values)

    return made


def test_values_are_escaped_but_in_markdown_and_none_may_lack(render):
    assert render("{{ word }}", word="<b>") == "&lt;b&gt;"
    assert render("{{ word }}", "a.md.jinja", word="<b>") == "<b>"
    with pytest.raises(jinja2.UndefinedError, match="word"):
        render("{{ word }}", wrod="")


def test_pages_extend_the_base_and_bring_its_style(render):
    child = '{% extends "base.html.jinja" %}{% block main %}<p>{{ word }}</p>{% endblock %}'
    page = render(child, title="A & B", word="hello")
    assert "<h1>A &amp; B</h1>" in page and "<p>hello</p>" in page and "--page:" in page
    assert re.search(r"body \{[^}]*overflow-wrap: break-word;", page)  # of long names of files


def test_a_figure_is_one_image_with_its_words():
    pytest.importorskip("matplotlib", reason="pictures are drawn with it")
    figure, _ = pages.panels(1)
    start, _, rest = pages.image(figure, 'a "picture" <of>').partition("base64,")
    data, alt = rest.split('" alt="')
    assert start == '<img src="data:image/svg+xml;' and b"<svg" in base64.b64decode(data)
    assert alt == 'a &#34;picture&#34; &lt;of&gt;">'


WORDS = "a rather long name of a model with [brackets] that has to wrap somewhere " * 2


@pytest.mark.parametrize(("width", "most"), [(1, 20), (40, 40), (80, 80), (400, 120)])
def test_everything_fits_and_nothing_is_lost(monkeypatch, width, most):
    """No terminal is too narrow, and lines are not longer than can be read."""
    monkeypatch.setenv("COLUMNS", str(width))
    table = pages.grid(["model", "loss"], [[WORDS, "0.1"], ["x" * 100, "1"]])
    text = pages.text(WORDS, table, pages.bullets([WORDS]))
    assert max(map(len, text.splitlines())) <= most
    assert text.split().count("[brackets]") == 6 and text.count("x") == 100
    assert "\x1b" not in text
    command = "anharmonic table " + "word " * 40 + "end"
    assert pages.text(pages.unwrapped(command)) == command


def test_bullets_indent_their_further_lines():
    first, *rest = pages.text(pages.bullets([WORDS])).splitlines()
    assert first.startswith("* a rather") and rest
    assert all(line.startswith("  ") and line[2] != " " for line in rest)


def test_colours_are_for_terminals(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    table = pages.grid(["model", "ours"], [["LEM", "1"]], strong=["ours"])
    assert "\x1b[1m" in pages.text(table)


@pytest.mark.parametrize("name", ["\x1b[2Jcleared", "a\x00b", "back\x08", "\x9b31m", "new\rline"])
def test_names_do_not_command_the_terminal(name):
    made = [pages.grid([name], [[name]]), pages.bullets([name]), pages.unwrapped(name), name]
    text = pages.text(*made)
    assert not set(text) & {"\x1b", "\x00", "\x08", "\x9b", "\r"}
    assert text.count(r"\x") >= 5


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
