"""Tables beside results: what counts as ours, what is missing, and how a terminal shows it.

The Markdown of the real results is compared with the pages in ``papers/docs`` by test_pages.py.
"""

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


def test_of_several_results_of_a_run_the_last_counts_and_of_other_tables_none(
    table, run, make_result
):
    results = [make_result(run, test=1.0), make_result(run, test=0.004)]
    lines = compare(table, [*results, make_result(replace(run, lr=0.5))])
    assert lines[0].full.values == [0.4]
    assert [line.state for line in lines[1:]] == [NOT_RUN, ABSENT]
    assert not any(line.reduced for line in lines)


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


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (120, r"LEM +0\.2 ± 0\.05 +0\.200 ± 0\.100 +3 +1k +1\.2k .* paper\b"),
        (80, r"\* LEM: reported 0\.2 ± 0\.05, ours 0\.200 ± 0\.100"),
        (40, r"\* LEM: reported 0\.2 "),
    ],
)
def test_terminal_shows_reported_beside_ours_in_its_columns_or_in_paragraphs(
    table, three_seeds, monkeypatch, columns, row
):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = terminal(table, compare(table, three_seeds))
    assert re.search(f"^{row}", text, re.MULTILINE)
    assert columns < 80 or max(map(len, text.splitlines())) <= columns
    words = " ".join(text.split())
    for said in (
        "0.200 ± 0.100",
        ABSENT,
        f"{COMMAND} --rows cornn",
        "Baseline, the trivial solution: 16.7 (always predicting 1).",
        "Reported: learns slowly.",
    ):
        assert said in words


def test_missing_names_the_table_or_rows_or_seeds(table, run, three_seeds, make_result, tmp_path):
    assert missing(table, compare(table, [])) == [COMMAND]
    assert missing(table, compare(table, three_seeds)) == [f"{COMMAND} --rows cornn"]
    one = compare(table, three_seeds[:1])
    both = [f"{COMMAND} --rows lem --seeds 1 2", f"{COMMAND} --rows cornn"]
    assert missing(table, one) == both
    folder = [f"{words} --results {tmp_path / 'test-table.jsonl'}" for words in both]
    assert missing(table, one, tmp_path) == folder
    file = tmp_path / "my results.jsonl"
    for text in (terminal(table, one, file), markdown(table, one, file)):
        assert f"--rows cornn --results '{file}'\n" in f"{text}\n"
    cornn = make_result(replace(run, model="CoRNN", seed=1))
    some = replace(table, rows=(table.rows[0], replace(table.rows[1], seeds=(0, 1)), table.rows[2]))
    assert missing(some, compare(some, [*three_seeds, cornn])) == [
        f"{COMMAND} --rows cornn --seeds 0"
    ]
    assert missing(replace(table, rows=(Row("expRNN"),)), []) == []


def test_rows_say_how_many_of_their_seeds_ran(table, run, three_seeds, make_result):
    other = make_result(replace(run, seed=9))
    for results, seeds in (
        ([], ""),
        (three_seeds[:1], "1 of 3"),
        (three_seeds, "3"),
        ([*three_seeds[:2], other], "2 of 3 + 1 other"),
        ([*three_seeds, other], "4"),
    ):
        assert compare(table, results)[0].seeds == seeds
    assert "  2 of 3  " in terminal(table, compare(table, three_seeds[:2]))


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


def test_a_table_may_measure_something_of_the_curve(table, run, make_result):
    """The value at the epoch of the chosen weights, summed up by median and quartiles."""
    results = []
    for seed, last in enumerate((1.0, 2.0, 3.0, 9.0)):
        result = make_result(replace(run, seed=seed))
        curve = {**result.curve, "nfe": [50.0, last, 60.0]}
        results.append(replace(result, curve=curve, best_epoch=2))
    cost = replace(table, measure="nfe", scale=1.0, form=".1f", quartiles=True)
    found = compare(cost, results)[0].full
    assert (found.text, found.interval) == ("2.5 (1.8 to 4.5)", (1.75, 4.5))
    plain = make_result(run)
    with pytest.raises(ValueError, match=f"with hash {plain.hash} must be one with 'nfe' at"):
        measured(plain, "nfe")
