import re
from dataclasses import replace

import pytest

from anharmonic.train.run import Run
from anharmonic_papers.report.compare import ABSENT, NOT_RUN, compare, measured, missing
from anharmonic_papers.report.text import markdown, provenance, remarks, steps_until, terminal
from anharmonic_papers.tables.base import Row, Table, join
from anharmonic_papers.tables.budget import Budget, shrink, steps_per_epoch
from anharmonic_papers.tables.registry import table as table_of


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def three_seeds(run, make_result):
    return [make_result(replace(run, seed=s), test=t) for s, t in enumerate((0.001, 0.002, 0.003))]


@pytest.mark.parametrize(
    ("seeds", "mean", "interval", "text"),
    [
        (slice(3), 0.2, (0.1, 0.3), "0.200 ± 0.100"),
        (slice(2), 0.15, (0.1, 0.2), "0.150 (0.100 to 0.200)"),
        (slice(1, 2), 0.2, (0.2, 0.2), "0.200"),
    ],
)
def test_three_seeds_give_a_deviation_and_two_their_range(
    table, three_seeds, seeds, mean, interval, text
):
    found = compare(table, three_seeds[seeds])[0].full
    assert (found.mean, found.text, found.seconds) == (pytest.approx(mean), text, 30.0)
    assert found.interval == pytest.approx(interval)


def test_of_several_results_of_a_run_the_last_counts_and_of_other_tables_none(
    table, run, make_result
):
    results = [make_result(run, test=1.0), make_result(run, test=0.004)]
    lines = compare(table, [*results, make_result(replace(run, lr=0.5))])
    assert lines[0].full.values == [0.4]
    assert [line.state for line in lines[1:]] == [NOT_RUN, ABSENT]
    assert not any(line.reduced for line in lines)


def test_reduced_runs_never_enter_a_mean(table, run, three_seeds, make_result):
    small = shrink(run, Budget(epochs=1, length=10))
    lines = compare(table, [*three_seeds, make_result(small, test=9.0)])
    assert lines[0].full.mean == pytest.approx(0.2)
    (reduced,) = lines[0].reduced
    assert reduced.values == [900.0]
    assert reduced.budget == "reduced budget: 1 epoch, length 10"
    text = terminal(table, lines)
    assert "[900.000]" in text and "[1] Reduced budget: 1 epoch," in text
    assert "not comparable" in text


def test_reduced_runs_alone_leave_the_row_not_run_and_stand_apart(table, run, make_result):
    lines = compare(table, [make_result(shrink(run, Budget(epochs=n))) for n in (1, 2)])
    assert lines[0].state == NOT_RUN and len(lines[0].reduced) == 2
    assert missing(table, lines) == ["anharmonic table test-table"]


def test_terminal_shows_reported_beside_ours(table, three_seeds):
    text = terminal(table, compare(table, three_seeds))
    (row,) = [line for line in text.splitlines() if line.startswith("LEM")]
    cells = row.split()
    assert cells[:7] == ["LEM", "0.2", "±", "0.05", "0.200", "±", "0.100"]
    assert "1k" in cells and "1.2k" in cells and "paper" in cells
    assert "expRNN" in text and ABSENT in text
    assert "anharmonic table test-table --rows cornn" in text
    assert "Baseline, the trivial solution: 16.7 (always predicting 1)." in text
    assert "Reported: learns slowly." in text


def test_what_the_published_code_gave_here_has_a_column(table, three_seeds):
    rerun = replace(table.rows[0], rerun="0.3", rerun_spread="0.1")
    table = replace(table, rows=(rerun, *table.rows[1:]))
    lines = markdown(table, compare(table, three_seeds)).splitlines()
    head = next(line for line in lines if line.startswith("| model"))
    place = head.split(" | ").index("their code, run by us")
    row = next(line for line in lines if line.startswith(f"| {rerun.label} |"))
    assert row.split(" | ")[place] == "0.3 ± 0.1"
    assert "their code" not in terminal(table, compare(replace(table, rows=()), []))


@pytest.mark.parametrize(
    ("columns", "row"),
    [(120, "LEM +0.2 "), (80, r"\* LEM: reported 0.2 "), (40, r"\* LEM: reported 0.2 ")],
)
def test_terminal_fits_its_columns_by_making_rows_paragraphs(
    table, three_seeds, monkeypatch, columns, row
):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = terminal(table, compare(table, three_seeds))
    assert re.search(f"^{row}", text, re.MULTILINE)
    words = " ".join(text.split())
    assert "0.200 ± 0.100" in words and "anharmonic table test-table --rows cornn" in words
    assert columns < 80 or max(map(len, text.splitlines())) <= columns


def test_missing_names_the_table_or_rows_or_seeds(table, run, three_seeds, make_result, tmp_path):
    command = "anharmonic table test-table"
    assert missing(table, compare(table, [])) == [command]
    assert missing(table, compare(table, three_seeds)) == [f"{command} --rows cornn"]
    one = compare(table, three_seeds[:1])
    both = [f"{command} --rows lem --seeds 1 2", f"{command} --rows cornn"]
    assert missing(table, one) == both
    assert missing(table, one, tmp_path) == [
        f"{words} --results {tmp_path / 'test-table.jsonl'}" for words in both
    ]
    file = tmp_path / "my results.jsonl"
    for text in (terminal(table, one, file), markdown(table, one, file)):
        assert f"--rows cornn --results '{file}'\n" in f"{text}\n"
    cornn = make_result(replace(run, model="CoRNN", seed=1))
    some = replace(table, rows=(table.rows[0], replace(table.rows[1], seeds=(0, 1)), table.rows[2]))
    lines = compare(some, [*three_seeds, cornn])
    assert missing(some, lines) == [f"{command} --rows cornn --seeds 0"]
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


def test_provenance_says_hardware_versions_dates_and_commit(table, three_seeds):
    text = " ".join(provenance(compare(table, three_seeds)))
    for part in ("A Processor <x>", "1 thread", "torch 2.13.0", "2026-01-02", "0123456789ab"):
        assert part in text
    assert provenance(compare(table, [])) == []


def test_equal_remarks_are_joined(table):
    rows = tuple(Row(name, outcome="learns") for name in "AB")
    joined = remarks(replace(table, rows=rows), compare(replace(table, rows=rows), []))
    assert "A; B: Reported: learns." in joined


def test_markdown_escapes_bars(table, three_seeds):
    lines = compare(table, three_seeds)
    row = Row("a|b", reported="1.5")
    text = markdown(replace(table, rows=(row,)), compare(replace(table, rows=(row,)), []))
    assert "a\\|b" in text
    rows = [line for line in markdown(table, lines).splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows}) == 1


def test_empty_columns_are_left_out(table, run, make_result):
    plain = replace(table, rows=(Row("LEM", run=run, settings="ours"),))
    lines = compare(plain, [make_result(run)])
    for text in (terminal(plain, lines), markdown(plain, lines)):
        assert "reported" not in text and "params (ours)" in text


def test_a_joined_table_keeps_each_metric_and_note(table, run, make_result):
    other = replace(table, title="other", metric="accuracy", scale=1.0, form=".1f", note="Short.")
    both = join("both", "Both", "here", (replace(table, title="first"), other), note="Of all.")
    lines = compare(both, [make_result(run, test=0.25)])
    assert [line.full.text for line in lines if line.full] == ["25.000", "0.2"]
    text = terminal(both, lines)
    assert "Source: here." in text and text.count("MSE") == 1
    assert text.index("[first: MSE (x 1e-2), lower is better]") < text.index("[other: accuracy (")
    said = remarks(both, lines)
    assert "first: A note | with a bar." in said and "other: Short." in said and "Of all." in said
    assert "**other: accuracy (x 1e-2), lower is better**" in markdown(both, lines)


def test_a_seed_can_be_a_split_too(make_result):
    pages = Run("texas", "PlainGNN", {}, {"conv": "MLP"}, epochs=9)
    row = Row("MLP", run=pages, seeds=(0, 1, 2), split="split")
    found = Table("pages", "", "", "", "accuracy", (row,), unit="%")
    runs = list(row.runs())
    assert [run.seed for run in runs] == [0, 1, 2]
    assert [run.task_options["split"] for run in runs] == [0, 1, 2]
    results = [make_result(run, test=80.0 + run.seed) for run in runs]
    (line,) = compare(found, results)
    assert line.full is not None and line.full.values == [80.0, 81.0, 82.0]
    assert line.missing == ()
    small = [replace(run, epochs=2, reduced=True) for run in runs]
    (line,) = compare(found, [make_result(run) for run in small])
    assert line.full is None and len(line.reduced) == 1 and len(line.reduced[0].results) == 3


def test_a_part_may_measure_something_of_the_curve(table, run, make_result):
    """The value at the epoch of the chosen weights, summed up by median and quartiles."""
    results = []
    for seed, last in enumerate((1.0, 2.0, 3.0, 9.0)):
        result = make_result(replace(run, seed=seed), valid=(0.3, 0.1, 0.2))
        curve = {**result.curve, "nfe": [50.0, last, 60.0]}
        results.append(replace(result, curve=curve, best_epoch=2))
    rows = (Row("LEM", run=run, seeds=(0, 1, 2, 3)),)
    words = {"source": "", "task": "", "rows": rows, "direction": "lower", "quartiles": True}
    parts = (
        Table(id="a", title="loss", metric="loss", measure="valid", **words),
        Table(id="b", title="cost", metric="NFE", measure="nfe", form=".1f", **words),
    )
    both = join("joined", "Both", "Document", parts)
    lines = compare(both, results)
    assert [row.id for row in both.rows] == ["loss-lem", "cost-lem"]
    assert lines[1].full.text == "2.5 (1.8 to 4.5)"
    assert lines[1].full.mean == 2.5 and lines[1].full.interval == (1.75, 4.5)
    assert lines[0].full.values == [results[0].valid] * 4
    assert missing(both, lines) == []
    assert missing(both, compare(both, results[:3])) == [
        "anharmonic table joined --rows loss-lem --seeds 3"
    ]


def test_a_curve_without_the_measure_is_named(run, make_result):
    result = make_result(run)
    with pytest.raises(ValueError, match=f"with hash {result.hash} must be one with 'nfe' at"):
        measured(result, "nfe")


def a_result(make_result, row, valid, **changes):
    run = replace(table_of("cornn-adding").row(row).run, **changes)
    curve = {"epoch": list(range(1, len(valid) + 1)), "valid": valid}
    return replace(make_result(run), curve=curve)


def test_the_first_epoch_below_counts_in_steps(make_result):
    found = table_of("cornn-adding")
    assert found.thresholds == (0.05, 0.01)
    solved = a_result(make_result, "t-500-lem", [0.16, 0.04, 0.06, 0.002], epochs=60)
    half = a_result(make_result, "t-500-cornn", [0.16, 0.04, 0.06], epochs=60)
    not_at_all = a_result(make_result, "t-2000-cornn", [0.16, 0.17], epochs=200)
    (said,) = [r for r in remarks(found, compare(found, [solved, half, not_at_all]))
               if r.startswith("Steps until MSE")]  # fmt: skip
    assert "below 0.05 and 0.01" in said
    assert "LEM, T = 500, seed 0: 200, 400" in said
    assert "coRNN, T = 500, seed 0: 200, never" in said
    assert "coRNN, T = 2000, seed 0: not in 20,000" in said


def test_a_table_without_thresholds_says_nothing(make_result):
    found = table_of("lem-fitzhugh-nagumo")
    run = found.row("lem").run
    assert steps_until(found, [(found.rows[0], "", make_result(run))]) == []
    assert steps_per_epoch(run) == 4  # 128 trajectories in batches of 32
