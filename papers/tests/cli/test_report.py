import pytest

from anharmonic.train.results import append
from anharmonic_papers.figures.registry import list_figures
from anharmonic_papers.tables import list_tables, table


@pytest.fixture
def results(tmp_path, make_result):
    run = table("demo").row("digits-lem").run
    append(tmp_path / "results" / "demo.jsonl", make_result(run, test=91.25))


def test_report_needs_results(cli, tmp_path):
    code, _, err = cli("report")
    assert code == 2 and "results must be a file of result lines" in err
    assert f"got 'nothing at {tmp_path / 'results'}'; run" in err
    assert "give papers/results of a checkout to --results" in err
    (tmp_path / "results").mkdir()
    code, _, err = cli("report", "demo")
    assert code == 2 and f"got 'no results in {tmp_path / 'results'}'; run" in err


def test_report_prints_tables_with_results_and_names_the_others(cli, results):
    code, out, _ = cli("report")
    assert code == 0 and "91.25" in out and out.startswith("demo: ")
    others = ", ".join(n for n in (*list_tables(), *list_figures()) if n != "demo")
    said = " ".join(out.split())
    assert f"No results yet: {others}. Reported numbers: coRNN arXiv 2010.00951," in said
    commands = [line for line in out.splitlines() if line.startswith("  anharmonic table")]
    assert max(len(line) for line in out.splitlines() if line not in commands) <= 80
    assert "No results yet" not in cli("report", "demo")[1]
    assert "91.25" in cli("report", "demo", "--results", "results/demo.jsonl")[1]
    out = cli("report", "lem-smnist")[1]
    assert out.startswith("lem-smnist: ") and "not run" in out and "demo: " not in out


def test_report_writes_html_and_markdown(cli, results, tmp_path):
    words = ("--html", "new/page.html", "--markdown", "new/page.md")
    code, out, _ = cli("report", "demo", "demo", *words)
    assert code == 0 and out == "wrote new/page.html\nwrote new/page.md\n"
    page = (tmp_path / "new/page.html").read_text(encoding="utf-8")
    text = (tmp_path / "new/page.md").read_text(encoding="utf-8")
    assert "91.25" in page and text.count("| LEM | 91.25 | 1 |") == 1
    assert page.count("arXiv 2010.00951") == text.count("arXiv 2010.00951") == 1


def test_report_says_the_summary_and_writes_pages_of_what_ran(cli, results, tmp_path):
    code, out, _ = cli("report", "--summary")
    said = " ".join(out.split())
    assert code == 0 and said.startswith("The papers report 70 experiments. For 0 of these they ")
    assert "15 no data (the data set was not available): cornn-har2, " in said
    assert cli("report", "--markdown", "all.md")[0] == 0
    assert [page.name for page in (tmp_path / "all").iterdir()] == ["more.md"]
