import json
import re
from pathlib import Path

import pytest

import cpu
from harness import speed

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bench(tmp_path, monkeypatch, capsys, in_this_process):
    """Runs the benchmark in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        capsys.readouterr()
        code = cpu.main(words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_quick_run_writes_everything(bench, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- bench -->\n<!-- /bench -->\n")
    words = "--quick --cases lem-b32 lem-streaming --threads 1 --repeats 1 --rounds 1"
    files = "--json all.json --markdown all.md --readme page.md"
    code, out, err = bench(*words.split(), *files.split())
    assert code == 0
    assert "Training step" in out and "Inference" in out and "Streaming" in out
    assert err.startswith("[1/3] LEM, B 2, H 8, T 20: training, 1 thread ...")
    assert len(json.loads((tmp_path / "all.json").read_text())["measurements"]) == 3
    assert "### Training step" in (tmp_path / "all.md").read_text()
    assert "| LEM, B 2, H 8, T 20 |" in page.read_text()


def test_stored_numbers_are_not_measured_again(bench, monkeypatch):
    words = "--quick --cases lem-streaming --threads 1 --repeats 1 --rounds 1 --json all.json"
    _, first, _ = bench(*words.split())
    monkeypatch.setattr(speed, "measure", None)
    assert bench("--from-json", "all.json") == (0, first, "")


def test_a_line_of_history_says_where_and_when(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(cpu, "HISTORY", tmp_path / "new" / "cpu.jsonl")
    words = "--quick --cases lem-streaming --threads 1 --repeats 1 --rounds 1 --json all.json"
    for _ in range(2):
        bench(*words.split(), "--history")
    first, second = map(json.loads, cpu.HISTORY.read_text().splitlines())
    assert set(first) == set(second) == {"commit", "date", "machine", "versions", "ratios"}
    assert list(first["ratios"]) == ["lem-streaming streaming 1"]


def test_wrong_use(bench, capsys):
    with pytest.raises(SystemExit):
        bench("--cases", "lem-b23")
    assert "'lem-b23'" in capsys.readouterr().err
    with pytest.raises(FileNotFoundError, match=r"missing\.json"):
        bench("--from-json", "missing.json")


def test_speeds_in_the_readme_are_those_of_the_table():
    measured = json.loads((ROOT / "benchmarks" / "cpu.json").read_text("utf-8"))["measurements"]
    training = [one for one in measured if one["target"] and "one step" not in one["title"]]
    readme = (ROOT / "README.md").read_text("utf-8")
    for name in ("CoRNN", "UnICORNN", "LEM"):
        ratios = [one["ratios"]["anharmonic"] for one in training if one["title"].startswith(name)]
        said = re.search(rf"\| `{name}` \|[^|]*\| ([\d.]+) to ([\d.]+) \|", readme)
        assert said is not None
        assert list(said.groups()) == [f"{min(ratios):.1f}", f"{max(ratios):.1f}"]
