import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from anharmonic_papers.report.compare import compare
from anharmonic_papers.report.page import html, write_html
from anharmonic_papers.tables.base import Row, join
from anharmonic_papers.tables.budget import Budget, shrink
from anharmonic_papers.tables.registry import list_tables
from anharmonic_papers.tables.registry import table as table_of

VOID = {"meta", "br", "img"}


class Balance(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check(text):
    parser = Balance()
    parser.feed(text)
    assert parser.open == []
    # Self-contained: nothing is loaded from anywhere, and nothing runs.
    assert not re.search(r"https?://|<script|<link|@import|url\(|src=\"(?!data:)", text)
    ids = re.findall(r"\bid=\"([^\"]*)\"", text)
    assert len(ids) == len(set(ids))


def test_page_of_all_tables_without_results_is_whole():
    text = html([(table_of(i), compare(table_of(i), [])) for i in list_tables()])
    check(text)
    assert "not run" in text and "not in this package yet" in text
    assert "anharmonic table lem-fitzhugh-nagumo" in text


def test_page_shows_numbers_marks_reduced_and_escapes(table, run, make_result):
    results = [
        make_result(run, test=0.00321),
        make_result(shrink(run, Budget(epochs=1)), test=0.05),
    ]
    text = html([(table, compare(table, results))])
    check(text)
    assert "0.321" in text
    assert '<tr class="reduced">' in text and "[5.000]" in text
    assert "<b>title</b>" not in text and "&lt;b&gt;title&lt;/b&gt; &amp; more" in text
    assert "A Processor &lt;x&gt;" in text
    assert "anharmonic table test-table --rows lem --seeds 1 2" in text
    assert "anharmonic table test-table --rows cornn" in text and "1 of 3" in text


def test_page_of_a_joined_table_has_each_metric(table, run, make_result):
    parts = (replace(table, title="adding"), replace(table, title="<x>", metric="other"))
    both = join("both", "Both", "here", parts)
    text = html([(both, compare(both, [make_result(run)]))])
    check(text)
    assert "adding: MSE (x 1e-2), lower is better" in text
    assert "&lt;x&gt;: other (x 1e-2), lower is better" in text


def test_page_gives_its_command_and_says_where_learning_curves_are_missing(table, run, make_result):
    one, said = replace(table, rows=(Row("LEM", run=run),)), "keep fewer than three epochs"
    result = make_result(run)
    for epochs in (1, 4):
        curve = {"epoch": list(range(1, epochs + 1)), "valid": [0.5] * epochs}
        text = html([(one, compare(one, [replace(result, curve=curve, best_epoch=1)]))])
        assert (said in text) == (epochs < 3)
    assert said not in html([(one, compare(one, []))])
    command = '<pre tabindex="0">anharmonic table test-table</pre>'
    assert f"To repeat these numbers</summary>\n{command}" in text


def test_labels_are_escaped_everywhere(table, run, make_result):
    evil = replace(table, rows=(Row("<img src=x>", group='"><i>', reported="1", run=run),))
    text = html([(evil, compare(evil, [make_result(run)]))])
    assert "<img src=x" not in text and '"><i>' not in text
    check(text)


def test_page_is_written_whole_or_says_that_it_cannot(tmp_path, table):
    path = tmp_path / "new" / "page.html"
    write_html(path, [(table, compare(table, []))])
    assert path.read_text(encoding="utf-8").endswith("</html>\n")
    assert [p.name for p in path.parent.iterdir()] == ["page.html"]
    with pytest.raises(OSError, match=r"new must be writable"):
        write_html(path.parent, [(table, compare(table, []))])
