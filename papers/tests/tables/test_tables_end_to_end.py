"""Every table runs end to end on the smallest budget, with the real data in ANHARMONIC_DATA."""

import os

import pytest

from anharmonic.cli.main import main
from anharmonic.train import read_results
from anharmonic_papers.report.compare import compare
from anharmonic_papers.tables.budget import BUDGET
from anharmonic_papers.tables.registry import list_tables, table

COMPUTED = {"adding", "breast-cancer", "digits", "fitzhugh-nagumo", "lorenz96"}
BOUNDS = {"epochs": 1, "train_size": 64, "eval_size": 16, "form": "jpeg"}
LENGTHS = {"adding": 8, "lorenz96": 40, "smnist": 49, "psmnist": 49, "noise-padded-cifar10": 40,
           "spoken-digits": 30, "imdb": 12}  # fmt: skip


def words_of(tasks):
    known = {"epochs"} | {name for task in tasks for name in BUDGET.get(task, {})}
    chosen = {name: bound for name, bound in BOUNDS.items() if name in known}
    if "length" in known:
        chosen["length"] = max(LENGTHS.get(task, 0) for task in tasks)
    return [w for k, v in chosen.items() for w in (f"--{k.replace('_', '-')}", str(v))]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
@pytest.mark.parametrize("name", list_tables())
def test_table_runs_and_is_reported(name, tmp_path, monkeypatch):
    found = table(name)
    tasks = {row.run.task for row in found.rows if row.run is not None}
    if "mnist-superpixels" in tasks:
        pytest.skip("cutting 70,000 images takes minutes")
    if not tasks <= COMPUTED and "ANHARMONIC_DATA" not in os.environ:
        pytest.skip("ANHARMONIC_DATA is not set")
    monkeypatch.chdir(tmp_path)
    words = ["table", name, *words_of(tasks), "--seeds", "1", "--threads", "1", "--no-progress"]
    assert main(words) == 0
    lines = compare(found, read_results(tmp_path / "results" / f"{name}.jsonl"))
    for line in lines:
        assert line.full is None
        assert bool(line.reduced) == (line.row.run is not None)
    assert main(["report", name, "--html", "page.html"]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('<tr class="reduced">') == sum(len(line.reduced) for line in lines)
