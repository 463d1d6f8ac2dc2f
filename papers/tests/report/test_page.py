import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from anharmonic_papers.report.compare import compare
from anharmonic_papers.report.page import html, write_html
from anharmonic_papers.tables.base import Row
from anharmonic_papers.tables.budget import Budget, shrink
from anharmonic_papers.tables.registry import list_tables
from anharmonic_papers.tables.registry import table as table_of


class Balance(HTMLParser):
    """Asserts that every element is closed."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def page(*pairs):
    """The page of tables with results; it is whole and loads nothing."""
    text = html([(table, compare(table, results)) for table, results in pairs])
    parser = Balance()
    parser.feed(text)
    assert parser.open == []
    assert not re.search(r"https?://|<script|<link|@import|url\(|src=\"(?!data:)", text)
    ids = re.findall(r"\bid=\"([^\"]*)\"", text)
    assert len(ids) == len(set(ids))
    return text


def test_page_of_all_tables_without_results_is_whole():
    text = page(*((table_of(name), []) for name in list_tables()))
    assert "not run" in text and "not in this package yet" in text
    assert "digits: accuracy" in text and "adding: MSE" in text  # the parts of a joined table
    assert "anharmonic table lem-fitzhugh-nagumo" in text


def test_page_shows_numbers_marks_reduced_and_escapes(table, run, make_result):
    small = make_result(shrink(run, Budget(epochs=1)), test=0.05)
    text = page((table, [make_result(run, test=0.00321), small]))
    for said in (
        "0.321",
        '<tr class="reduced">',
        "[5.000]",
        "&lt;b&gt;title&lt;/b&gt; &amp; more",
        "A Processor &lt;x&gt;",
        "anharmonic table test-table --rows lem --seeds 1 2",
        "anharmonic table test-table --rows cornn",
        "1 of 3",
    ):
        assert said in text
    evil = replace(table, rows=(Row("<img src=x>", group='"><i>', reported="1", run=run),))
    text = page((evil, [make_result(run)]))
    assert "<img src=x" not in text and '"><i>' not in text


def test_page_gives_its_command_and_says_where_learning_curves_are_missing(table, run, make_result):
    one, said = replace(table, rows=(Row("LEM", run=run),)), "keep fewer than three epochs"
    for epochs in (1, 4):
        text = page((one, [make_result(run, valid=(0.5,) * epochs)]))
        assert (said in text) == (epochs < 3)
    assert said not in page((one, []))
    command = '<pre tabindex="0">anharmonic table test-table</pre>'
    assert f"To repeat these numbers</summary>\n{command}" in text


def test_a_page_that_cannot_be_written_is_named(tmp_path, table):
    (tmp_path / "new").mkdir()
    with pytest.raises(OSError, match=r"new must be writable"):
        write_html(tmp_path / "new", [(table, compare(table, []))])
