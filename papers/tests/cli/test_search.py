"""The search from the command line: chosen values are kept, bad use is said."""

import json
from dataclasses import replace

import pytest

from anharmonic.train.results import read_results
from anharmonic.train.run import Run
from anharmonic.train.search import Range
from anharmonic_papers.tables import graphs, registry
from anharmonic_papers.tables.base import Row, Table

pytest.importorskip("optuna", reason="the search is Optuna's")
TASK = {"length": 10, "valid_size": 8, "test_size": 8, "steps_per_epoch": 2}


@pytest.fixture
def table(monkeypatch):
    run = Run("adding", "LEM", TASK, {"hidden_size": 4}, epochs=1)
    rows = (
        Row("LEM", run=run, search={"lr": Range(1e-3, 1e-1, log=True)}, settings="ours"),
        Row("fixed", run=run),
    )
    made = Table("tiny", "Tiny", "here", "adding", "mse", rows, direction="lower")
    monkeypatch.setitem(registry._TABLES, "tiny", made)
    return made


def test_what_was_chosen_is_kept_and_used(cli, table, tmp_path, monkeypatch):
    code, out, _ = cli("search", "tiny", "--trials", "2", "--no-progress")
    assert code == 0 and out.startswith("lem: validation ") and "after 2 trials" in out
    kept = json.loads((tmp_path / "searches" / "tiny.json").read_text())
    assert kept["lem"]["trials"] == 2 and kept["lem"]["seeds"] == [0]
    assert len((tmp_path / "searches" / "tiny.jsonl").read_text().splitlines()) == 2
    assert cli("search", "tiny", "--trials", "2", "--no-progress")[1] == out  # nothing to do
    monkeypatch.setattr(graphs, "chosen", lambda: {"tiny": kept})
    row = graphs.tuned(table).row("lem")
    assert row.run.lr == kept["lem"]["values"]["lr"]
    assert "2 trials for this row" in row.note


def test_splits_count_as_the_seeds(cli, table, tmp_path, monkeypatch):
    rows = tuple(replace(row, split="length") for row in table.rows)
    monkeypatch.setitem(registry._TABLES, "tiny", replace(table, rows=rows))
    words = ("search", "tiny", "--trials", "1", "--no-progress")
    assert cli(*words, "--seeds", "10", "11", "12")[0] == 0
    runs = [result.run for result in read_results(tmp_path / "searches" / "tiny.jsonl")]
    assert sorted((run.seed, run.task_options["length"]) for run in runs) == [
        (10, 10), (11, 11), (12, 12),
    ]  # fmt: skip
    kept = json.loads((tmp_path / "searches" / "tiny.json").read_text())
    monkeypatch.setattr(graphs, "chosen", lambda: {"tiny": kept})
    assert "validation on splits 10, 11 and 12 of those" in graphs.tuned(table).row("lem").note


def test_bad_use(cli, table):
    code, _, err = cli("search", "tiny", "--rows", "fixed")
    assert code == 2 and "a row of tiny with ranges is one of lem; got fixed" in err
    code, _, err = cli("search", "tyni")
    assert code == 2 and "table must be one of" in err
    assert cli("search")[2].startswith("usage: anharmonic search ID")
