"""The command: measured in small, stored, continued; pages say what is stored."""

import importlib
import re
from pathlib import Path

import pytest

import bench
from harness import results

ROOT = Path(__file__).parents[2]
STORED = [name for name in bench.QUESTIONS if name not in ("gpu", "limits")]
"""Those with results; the pages of the others hold what was measured before results were kept."""


@pytest.fixture
def apart(tmp_path, monkeypatch):
    """Results and pages in a folder of their own."""
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    pages = []
    monkeypatch.setattr(results, "write_pages", lambda tables, _: pages.append(tables))
    return pages


@pytest.mark.parametrize("question", STORED)
def test_pages_have_the_tables_of_the_stored_results(question):
    module, stored = importlib.import_module(question), results.read(question)
    assert stored and len({one["case"] for one in stored}) == len(stored)
    tables = module.tables(stored)
    assert set(module.PAGES) <= set(tables)
    for block, pages in module.PAGES.items():
        for page in pages:
            _, shown, _ = results.split((ROOT / page).read_text("utf-8"), block, page)
            assert shown == f"{tables[block]}\n", f"python benchmarks/bench.py {question} --tables"


@pytest.mark.parametrize("question", ["cpu", "small_batches", "memory", "scaling"])
def test_what_is_stored_can_be_measured_again(question, quick):
    cases = set(importlib.import_module(question).cases(quick))
    assert {one["case"] for one in results.read(question)} == cases


def test_a_quick_run_prints_tables_and_writes_nothing(apart, capsys, in_this_process, tmp_path):
    assert bench.main(["cpu", "--quick", "--only", "lem-streaming, streaming, 1 thread"]) == 0
    out, err = capsys.readouterr()
    assert "## Streaming (one step of one sequence)" in out
    assert "| LEM, B 1, H 128, one step | 1 |" in out
    assert err == "[1/1] lem-streaming, streaming, 1 thread\n"
    assert not apart and not list(tmp_path.iterdir())


def test_results_are_stored_case_by_case_and_a_run_continues(apart, monkeypatch, capsys):
    limits = importlib.import_module("limits")
    measured = []

    def measure(case):
        def call():
            if len(measured) == 1:
                measured.append(None)
                raise KeyboardInterrupt
            measured.append(case)
            return dict.fromkeys(("product", "small_product", "memory", "tanh", "fresh"), 1.0)

        return call

    names = ("1 thread", "2 threads")
    monkeypatch.setattr(limits, "cases", lambda options: {name: measure(name) for name in names})
    with pytest.raises(KeyboardInterrupt):
        bench.main(["limits"])
    assert [one["case"] for one in results.read("limits")] == ["1 thread"] and not apart
    assert bench.main(["limits", "--missing"]) == 0
    assert measured == ["1 thread", None, "2 threads"] and len(apart) == 1
    stored = results.read("limits")
    assert [one["case"] for one in stored] == list(names)
    assert {"processor", "cores"} <= set(stored[0]["machine"]) and "torch" in stored[0]["versions"]
    # A case that is measured again replaces its line, and leaves the others.
    bench.main(["limits", "--only", "2"])
    assert measured[-1] == "2 threads" and len(results.read("limits")) == 2
    capsys.readouterr()
    assert bench.main(["limits", "--tables"]) == 0 and len(measured) == 4
    assert "| 2 | 1 GFLOP/s |" in capsys.readouterr().out


def test_a_page_wants_one_block(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- b -->\nold\n<!-- /b -->\nc <!-- d -->\n<!-- /d -->\n")
    for text in ("new \\1", "newer"):
        results.write_pages({"b": text}, {"b": ["page.md"]}, tmp_path)
        wanted = f"a\n<!-- b -->\n{text}\n<!-- /b -->\nc <!-- d -->\n<!-- /d -->\n"
        assert page.read_text() == wanted
    for text in ("none", "<!-- b -->\n<!-- /b --> <!-- b -->\n<!-- /b -->"):
        page.write_text(text)
        with pytest.raises(ValueError, match=r"must have one block <!-- b --> .*; got [02]"):
            results.write_pages({"b": "new"}, {"b": ["page.md"]}, tmp_path)
        assert page.read_text() == text


def test_speeds_in_the_readme_are_those_of_the_table():
    cpu = importlib.import_module("cpu")
    training = [one for one in results.read("cpu") if one["mode"] == "training"]
    readme = (ROOT / "README.md").read_text("utf-8")
    for name in ("CoRNN", "UnICORNN", "LEM"):
        ratios = [cpu.ratio(one) for one in training if cpu.CASES[one["name"]].model == name]
        said = re.search(rf"\| `{name}` \|[^|]*\| ([\d.]+) to ([\d.]+) \|", readme)
        assert said is not None
        assert list(said.groups()) == [f"{min(ratios):.1f}", f"{max(ratios):.1f}"]
