"""The command: measured in small, stored, continued; pages say what is stored."""

import importlib
import re
from argparse import Namespace
from pathlib import Path

import pytest
import torch

import bench
from harness import results

ROOT = Path(__file__).parents[2]


@pytest.fixture
def apart(tmp_path, monkeypatch):
    """Results and pages in a folder of their own."""
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    pages = []
    monkeypatch.setattr(results, "write_pages", pages.append)
    return pages


@pytest.mark.parametrize("question", bench.QUESTIONS)
def test_pages_have_the_tables_of_the_stored_results(question):
    module, stored = importlib.import_module(question), results.read(question)
    assert stored and len({one["case"] for one in stored}) == len(stored)
    paths = (path for folder in ("benchmarks", "docs") for path in ROOT.glob(f"{folder}/*.md"))
    pages = "".join(path.read_text("utf-8") for path in paths)
    for block, table in module.tables(stored).items():
        shown = f"<!-- {block} -->\n{table}\n<!-- /{block} -->"
        assert shown in pages, f"python benchmarks/bench.py {question} --tables"
        assert pages.count(f"<!-- {block} -->") == 1


@pytest.mark.parametrize(
    "question",
    [
        "cpu",
        "bfloat16",
        "small_batches",
        "compiled",
        "memory",
        "graphs",
        "microcontroller",
        "scaling",
    ],
)
def test_what_is_stored_can_be_measured_again(question):
    cases = importlib.import_module(question).cases(Namespace(quick=False))
    assert {one["case"] for one in results.read(question)} == set(cases)


@pytest.mark.parametrize(
    ("question", "cases", "rows"),
    [
        pytest.param(
            "small_batches",
            ["H 32, T 100, 1 thread, B 2", "H 32, one step, 1 thread, B 1"],
            ["| LEM, H 32, T 100, 1 thread |  | ", "| UnICORNN, H 32, one step, 1 thread |"],
            marks=pytest.mark.slow,
        ),
        (
            "compiled",
            ["MinimalGate; B 32, H 128, T 1,000"],
            ["| layer; batch, units, steps | compiled | loop | torch.compile | nn.LSTM |"],
        ),
        pytest.param(
            "scaling",
            ["shards, first run", "shards, second run", "a training step"],
            ["| from memory |", "| 64 cores |", "| one GPU |"],
            marks=pytest.mark.slow,
        ),
        ("seeds", ["digits, UnICORNN, seed 3"], ["| digits | UnICORNN | 1 | "]),
        ("bfloat16", ["lem"], ["| LEM; 32, 128, 1,000 | "]),
    ],
)
def test_what_is_measured_is_shown(question, cases, rows, measured, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function: function)  # takes seconds, tested by it
    monkeypatch.setattr(importlib.import_module("seeds"), "MODELS", {"digits": ("UnICORNN",)})
    tables = importlib.import_module(question).tables(measured(question, *cases))
    assert all(row in "".join(tables.values()) for row in rows)


def test_a_quick_run_prints_tables_and_writes_nothing(apart, capsys, measured, tmp_path):
    assert bench.main(["cpu", "--quick", "--only", "lem-streaming, streaming, 1 thread"]) == 0
    out, err = capsys.readouterr()
    assert "## Streaming (one step of one sequence)" in out
    assert "| LEM, B 1, H 128, one step | 1 |" in out
    assert err == "[1/1] lem-streaming, streaming, 1 thread\n"
    assert not apart and not list(tmp_path.iterdir())


def test_results_are_stored_case_by_case_and_a_run_continues(apart, monkeypatch, capsys):
    seeds = importlib.import_module("seeds")
    called = []

    def measure(seed):
        called.append(seed)
        if called == [0, 1]:
            raise KeyboardInterrupt
        return {"task": "cora", "model": "GraphCON", "seed": seed, "test": 70.0, "seconds": 1.0}

    cases = {f"seed {seed}": (measure, seed) for seed in (0, 1)}
    monkeypatch.setattr(seeds, "cases", lambda options: cases)
    with pytest.raises(KeyboardInterrupt):
        bench.main(["seeds"])
    assert [one["case"] for one in results.read("seeds")] == ["seed 0"] and not apart
    assert bench.main(["seeds", "--missing"]) == 0
    assert called == [0, 1, 1] and len(apart) == 1
    stored = results.read("seeds")
    assert [one["case"] for one in stored] == list(cases)
    assert {"processor", "cores"} <= set(stored[0]["machine"]) and "torch" in stored[0]["versions"]
    # A case that is measured again replaces its line, and leaves the others.
    bench.main(["seeds", "--only", "1"])
    assert called[-1] == 1 and len(results.read("seeds")) == 2
    capsys.readouterr()
    assert bench.main(["seeds", "--tables"]) == 0 and len(called) == 4
    assert "| cora | GraphCON | 2 | 70.0 |" in capsys.readouterr().out


def test_of_all_pages_one_has_one_block(tmp_path):
    page, other = tmp_path / "docs" / "page.md", tmp_path / "benchmarks" / "other.md"
    for path in (page, other):
        path.parent.mkdir()
        path.write_text("c <!-- d -->\n<!-- /d -->\n")
    page.write_text("a\n<!-- b -->\nold\n<!-- /b -->\nc <!-- d -->\n<!-- /d -->\n")
    for text in ("new \\1", "newer"):
        results.write_pages({"b": text}, tmp_path)
        wanted = f"a\n<!-- b -->\n{text}\n<!-- /b -->\nc <!-- d -->\n<!-- /d -->\n"
        assert page.read_text() == wanted
    for name, number in (("none", 0), ("d", 2)):
        with pytest.raises(ValueError, match=f"one block <!-- {name} --> .*; got {number}"):
            results.write_pages({name: "new"}, tmp_path)
    assert page.read_text() == wanted


def test_speeds_in_the_readme_are_those_of_the_table():
    cpu = importlib.import_module("cpu")
    training = [one for one in results.read("cpu") if one["mode"] == "training"]
    readme = (ROOT / "README.md").read_text("utf-8")
    for name in ("CoRNN", "UnICORNN", "LEM"):
        ratios = [cpu.ratio(one) for one in training if cpu.CASES[one["name"]].model == name]
        said = re.search(rf"\| `{name}` \|[^|]*\| ([\d.]+) to ([\d.]+) \|", readme)
        assert said is not None
        assert list(said.groups()) == [f"{min(ratios):.1f}", f"{max(ratios):.1f}"]
