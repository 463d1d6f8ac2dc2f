"""Tables beside results, where the stored results and their pages (test_pages.py) do not reach."""

import re
from dataclasses import replace

import pytest

from anharmonic_papers.report.compare import ABSENT, NOT_RUN, compare, measured, missing
from anharmonic_papers.report.text import markdown, remarks, terminal
from anharmonic_papers.tables.base import Row, join
from anharmonic_papers.tables.budget import Budget, shrink

COMMAND = "anharmonic table test-table"


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def three_seeds(run, make_result):
    return [make_result(replace(run, seed=s), test=t) for s, t in enumerate((0.001, 0.002, 0.003))]


def test_three_seeds_give_a_deviation_and_two_their_range(table, three_seeds):
    found = [compare(table, three_seeds[:count])[0].full.text for count in (1, 2, 3)]
    assert found == ["0.100", "0.150 (0.100 to 0.200)", "0.200 ± 0.100"]


def test_reduced_runs_never_enter_a_mean_and_alone_leave_the_row_not_run(
    table, run, three_seeds, make_result
):
    small = make_result(shrink(run, Budget(epochs=1, length=10)), test=9.0)
    lines = compare(table, [*three_seeds, small])
    assert lines[0].full.mean == pytest.approx(0.2)
    (reduced,) = lines[0].reduced
    assert (reduced.values, reduced.budget) == ([900.0], "reduced budget: 1 epoch, length 10")
    text = terminal(table, lines)
    assert "[900.000]" in text and "[1] Reduced budget: 1 epoch," in text
    assert "not comparable" in text
    alone = compare(table, [small, make_result(shrink(run, Budget(epochs=2)))])
    assert alone[0].state == NOT_RUN and len(alone[0].reduced) == 2
    assert missing(table, alone) == [COMMAND]


def test_terminal_shows_reported_beside_ours(table, three_seeds, monkeypatch):
    text = terminal(table, compare(table, three_seeds))
    row = r"LEM +0\.2 ± 0\.05 +0\.200 ± 0\.100 +3 +1k +1\.2k .* paper\b"
    assert re.search(f"^{row}", text, re.MULTILINE)
    for said in (
        ABSENT,
        f"{COMMAND} --rows cornn",
        "Baseline, the trivial solution: 16.7 (always predicting 1).",
        "Reported: learns slowly.",
    ):
        assert said in text
    monkeypatch.setenv("COLUMNS", "80")
    text = terminal(table, compare(table, three_seeds))
    assert "* LEM: reported 0.2 ± 0.05, ours 0.200 ± 0.100" in text
    assert max(map(len, text.splitlines())) <= 80


def test_commands_for_what_is_missing_name_the_file_of_results(table, three_seeds, tmp_path):
    one = compare(table, three_seeds[:1])
    both = [f"{COMMAND} --rows lem --seeds 1 2", f"{COMMAND} --rows cornn"]
    assert missing(table, one) == both
    folder = [f"{words} --results {tmp_path / 'test-table.jsonl'}" for words in both]
    assert missing(table, one, tmp_path) == folder
    file = tmp_path / "my results.jsonl"
    for text in (terminal(table, one, file), markdown(table, one, file)):
        assert f"--rows cornn --results '{file}'\n" in f"{text}\n"
    assert missing(replace(table, rows=(Row("expRNN"),)), []) == []


def test_bars_are_escaped_in_markdown(table):
    evil = replace(table, rows=(Row("a|b", reported="1.5"),))
    assert "| a\\|b |" in markdown(evil, compare(evil, []))


def test_a_joined_table_keeps_each_metric_and_note(table, run, make_result):
    other = replace(table, title="other", metric="accuracy", scale=1.0, form=".1f", note="Short.")
    both = join("both", "Both", "here", (replace(table, title="first"), other), note="Of all.")
    lines = compare(both, [make_result(run, test=0.25)])
    assert [line.full.text for line in lines if line.full] == ["25.000", "0.2"]
    assert missing(both, lines)[0] == "anharmonic table both --rows first-lem --seeds 1 2"
    text = terminal(both, lines)
    assert text.index("[first: MSE (x 1e-2), lower is better]") < text.index("[other: accuracy (")
    assert {"first: A note | with a bar.", "other: Short.", "Of all."} < set(remarks(both, lines))


def test_a_curve_without_what_a_table_measures_is_refused(run, make_result):
    plain = make_result(run)
    with pytest.raises(ValueError, match=f"with hash {plain.hash} must be one with 'nfe' at"):
        measured(plain, "nfe")
