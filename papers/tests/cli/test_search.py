"""The search from the command line: chosen values are kept, bad use is said."""

import json

import pytest

from anharmonic.train.results import read_results
from anharmonic_papers.tables import registry

TABLE = """
title: Tiny
source: here
metric: mse
direction: lower
rows:
- label: LEM
  settings: ours
  run: &run
    task: adding
    model: LEM
    task_options: {length: 10, valid_size: 8, test_size: 8, steps_per_epoch: 2}
    model_options: {hidden_size: 4}
    epochs: 1
  search: {lr: {low: 1e-3, high: 1e-1, log: true}}
  MORE
- {label: fixed, run: *run}
"""


@pytest.fixture
def write(monkeypatch, tmp_path):
    """Writes the table's file anew, with more in its first row."""
    monkeypatch.setattr(registry, "FOLDER", tmp_path)

    def write(**more):
        lines = "\n  ".join(f"{name}: {json.dumps(value)}" for name, value in more.items())
        (tmp_path / "tiny.yaml").write_text(TABLE.replace("MORE", lines))
        registry.read_table.cache_clear()

    write()
    return write


def test_what_was_chosen_is_kept_and_used(cli, write, tmp_path):
    code, out, _ = cli("table", "tiny", "--search", "--trials", "2", "--no-progress")
    assert code == 0 and out.startswith("lem: validation ") and "after 2 trials" in out
    kept = json.loads((tmp_path / "searches" / "tiny.json").read_text())
    assert kept["lem"]["trials"] == 2 and kept["lem"]["seeds"] == [0]
    assert len((tmp_path / "searches" / "tiny.jsonl").read_text().splitlines()) == 2
    again = cli("table", "tiny", "--search", "--trials", "2", "--no-progress")[1]
    assert again == out  # nothing to do
    write(chosen=kept["lem"])
    row = registry.table("tiny").row("lem")
    assert row.run.lr == kept["lem"]["values"]["lr"]
    assert "2 trials for this row" in row.note


def test_splits_count_as_the_seeds(cli, write, tmp_path):
    write(split="length")
    words = ("table", "tiny", "--search", "--trials", "1", "--no-progress")
    assert cli(*words, "--seeds", "10", "11", "12")[0] == 0
    runs = [result.run for result in read_results(tmp_path / "searches" / "tiny.jsonl")]
    assert sorted((run.seed, run.task_options["length"]) for run in runs) == [
        (10, 10), (11, 11), (12, 12),
    ]  # fmt: skip
    kept = json.loads((tmp_path / "searches" / "tiny.json").read_text())
    write(split="length", chosen=kept["lem"])
    note = registry.table("tiny").row("lem").note
    assert "validation on splits 10, 11 and 12" in note
