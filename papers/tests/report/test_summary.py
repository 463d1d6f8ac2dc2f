"""The summary judges rows as stated, names every experiment, and stands between its marks."""

import os
from pathlib import Path

import pytest
import yaml

from anharmonic_papers.report.summary import experiments, put_into, summary, terminal
from anharmonic_papers.tables import table


@pytest.fixture
def results_of(make_result):
    """Results of rows of a table, by the test values of their seeds in the table's unit."""

    def made(name, **values):
        found = table(name)
        return [
            make_result(run, test=test / found.scale)
            for row, tests in values.items()
            for run, test in zip(
                found.row(row.replace("_", "-")).runs(tuple(range(len(tests)))), tests, strict=True
            )
        ]

    return made


FHN = "lem-fitzhugh-nagumo"
DT_2 = "with the paper's settings; with the printed dt = 1 our errors are larger than with dt = 2 "
DT_2 += "of Figure 5.4"


@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [
        # Lower is better; within rounding: coRNN 0.4, LEM 0.2.
        (FHN, {"cornn": [0.44], "lem": [0.1]}, ("matched",)),
        (
            FHN,
            {"cornn": [0.5], "lem": [0.1]},
            ("below", "1 of 2", "coRNN: 0.4 → 0.500 x 1e-2, 1 of 3 seeds"),
        ),
        (FHN, {"cornn": [0.5]}, ("below", "0 of 1, 1 more without a full run")),
        # Three seeds 0.3 apart: 0.5 is within a deviation of 0.4.
        (FHN, {"cornn": [0.2, 0.5, 0.8], "lem": [0.1]}, ("matched",)),
        # The best of a row's variants counts; rivals do not.
        (FHN, {"lem": [0.9], "lem_dt_2": [0.2], "lstm": [9.0]}, ("matched", None, None, DT_2)),
        # 97.3 is the best of several trainings, 96.10 ± 1.20 their mean.
        ("cornn-psmnist", {"cornn_256": [94.9]}, ("matched",)),
        ("cornn-psmnist", {"cornn_256": [94.8]}, ("below", None, "coRNN 256: 96.10 → 94.80 %")),
        # The paper's row has 760 epochs, the small one 6.
        ("lem-ptb-char", {"lem_small": [1.6]}, ("smaller budget",)),
        # The row with moved images has 8 of 120 epochs, the averaged one has all.
        ("lem-smnist", {"lem_moved_images": [99.3]}, ("smaller budget",)),
        ("lem-smnist", {"lem_averaged": [99.0], "lem_moved_images": [99.3]}, ("below",)),
        ("cornn-adding", {"t_500_cornn": [0.1]}, ("measured",)),
        ("cornn-adding", {}, ("not run",)),
    ],
)
def test_experiments_are_judged_by_their_rows(results_of, name, rows, expected):
    found = {e.experiment.id: e for e in summary(results_of(name, **rows), [])}[name]
    shown = (found.state, found.matched, found.gap, found.why)
    assert all(text in (None, value) for text, value in zip(expected, shown, strict=False)), shown


def test_names_are_those_of_the_papers():
    folder = os.environ.get("ANHARMONIC_PAPERS")
    if not folder:
        pytest.skip("ANHARMONIC_PAPERS does not name the folder of the papers' numbers")
    entries = yaml.safe_load((Path(folder) / "experiments.yaml").read_text())["experiments"]
    assert [one.id for one in experiments()] == [one["id"] for one in entries]


def test_the_terminal_names_all_and_the_row_farthest_below(results_of):
    said = " ".join(terminal(summary(results_of("cornn-smnist", cornn_128=[99.0]), [])).split())
    assert all(one.id in said for one in experiments())
    assert "(0 of 1 rows, 1 more without a full run; coRNN 128: 99.3 → 99.00 %)" in said


def test_marks_are_needed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n")
    with pytest.raises(ValueError, match=r"page\.md must be .*<!-- summary -->.*add them"):
        put_into(page, "new\n")
