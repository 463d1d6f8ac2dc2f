import re
from dataclasses import replace

import pytest

from anharmonic.train.run import Run
from anharmonic_papers.report.compare import ABSENT, NOT_RUN, compare, measured, missing
from anharmonic_papers.report.text import markdown, provenance, remarks, terminal
from anharmonic_papers.tables.base import Row, Table, join
from anharmonic_papers.tables.budget import Budget, shrink
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


def test_reduced_runs_stand_in_rows_of_their_size_only(make_result):
    table = table_of("cornn-adding")
    cornn = {row.group: row.run for row in table.rows if row.label == "coRNN"}
    # Longer than T = 500 and T = 2000: it can only be less of T = 5000.
    five = make_result(shrink(cornn["T = 5000"], Budget(epochs=7)))
    # As long as T = 500: that row's, though T = 2000 and T = 5000 could be cut to it.
    half = make_result(shrink(cornn["T = 500"], Budget(epochs=8)))
    found = {
        line.row.group: [ours.budget for ours in line.reduced]
        for line in compare(table, [five, half])
        if line.row.label == "coRNN"
    }
    assert found == {
        "T = 500": ["reduced budget: 8 epochs"],
        "T = 2000": [],
        "T = 5000": ["reduced budget: 7 epochs"],
    }


def test_reduced_runs_of_one_document_stay_in_its_table(make_result):
    runs = {name: table_of(name).row("cornn").run for name in ("cornn-ncifar", "lem-ncifar")}
    for mine, other in (("cornn-ncifar", "lem-ncifar"), ("lem-ncifar", "cornn-ncifar")):
        result = make_result(shrink(runs[mine], Budget(epochs=1)))
        assert [len(ln.reduced) for ln in compare(table_of(mine), [result])].count(1) == 1
        assert not any(ln.reduced for ln in compare(table_of(other), [result]))


def test_terminal_shows_reported_beside_ours(table, three_seeds):
    text = terminal(table, compare(table, three_seeds))
    (row,) = [line for line in text.splitlines() if line.startswith("LEM")]
    cells = row.split()
    assert cells[:7] == ["LEM", "0.2", "±", "0.05", "0.200", "±", "0.100"]
    assert "1k" in cells and "1.2k" in cells and "paper" in cells
    assert "expRNN" in text and ABSENT in text
    assert "anharmonic table test-table --rows cornn" in text
    assert "Trivial solution: 16.7 (always predicting 1)." in text
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


def test_terminal_groups_rows(table):
    grouped = replace(table, rows=(Row("A", group="T = 1"), Row("A", group="T = 2")))
    text = terminal(grouped, compare(grouped, []))
    assert text.index("[T = 1]") < text.index("[T = 2]")


def test_missing_names_the_table_or_rows_or_seeds(table, run, three_seeds, make_result):
    assert missing(table, compare(table, [])) == ["anharmonic table test-table"]
    lines = compare(table, three_seeds)
    assert missing(table, lines) == ["anharmonic table test-table --rows cornn"]
    assert missing(table, compare(table, three_seeds[:1])) == [
        "anharmonic table test-table --rows lem --seeds 1 2",
        "anharmonic table test-table --rows cornn",
    ]
    rows = (table.rows[0], replace(table.rows[1], seeds=(0, 1)), table.rows[2])
    cornn = make_result(replace(run, model="CoRNN", seed=1))
    some = replace(table, rows=rows)
    assert missing(some, compare(some, [*three_seeds, cornn])) == [
        "anharmonic table test-table --rows cornn --seeds 0"
    ]
    assert missing(replace(table, rows=(Row("expRNN"),)), []) == []


def test_what_is_missing_goes_where_the_results_are(table, three_seeds, tmp_path):
    lines = compare(table, three_seeds[:1])
    file, folder = tmp_path / "my results.jsonl", tmp_path / "folder"
    folder.mkdir()
    for text in (terminal(table, lines, file), markdown(table, lines, file)):
        assert f"--rows cornn --results '{file}'\n" in f"{text}\n"
    in_folder = folder / "test-table.jsonl"
    assert len(missing(table, lines, folder)) == 2
    assert all(c.endswith(f" --results {in_folder}") for c in missing(table, lines, folder))


def test_rows_say_how_many_of_their_seeds_ran(table, run, three_seeds, make_result):
    def seeds(results):
        return compare(table, results)[0].seeds

    assert [seeds(three_seeds[:n]) for n in range(4)] == ["", "1 of 3", "2 of 3", "3"]
    other = make_result(replace(run, seed=9))
    assert seeds([*three_seeds[:2], other]) == "2 of 3 + 1 other"
    assert seeds([*three_seeds, other]) == "4"
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
