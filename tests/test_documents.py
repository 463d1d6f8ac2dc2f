"""The Python of README and docs runs as it stands, links lead somewhere, examples run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "papers" / "docs").rglob("*.md")),
]
EXAMPLES = [
    *sorted((ROOT / "examples").glob("*.py")),
    *sorted((ROOT / "papers" / "examples").glob("*.py")),
]
SHORT = {"graph_parts.py": ["--depth", "4", "--epochs", "2", "--seeds", "1"]}
"""Options of examples that train for minutes."""
QUICK = {"README.md", "streaming.py"}
"""Pages and examples that the fast suite runs; each begins a process and most train."""
NEEDS = {
    "ray_around_fit.py": ["ray"],
    "aeon_estimators.py": ["aeon"],
    "jobs_on_slurm.py": ["submitit"],
}


@pytest.fixture
def run(run_python, tmp_path, monkeypatch):
    """What a script prints that begins in an empty folder."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")

    def run(code, *words):
        done = run_python(code, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


# Each block starts with names of its own.
RUN_BLOCKS = """
import contextlib, io
for number, block in enumerate({blocks!r}):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(block, f"block {{number}}", "exec"), {{"__name__": "__main__"}})
    assert out.getvalue().strip(), f"block {{number}} prints nothing"
"""


def slow_unless_quick(path):
    return pytest.param(path, id=path.name, marks=() if path.name in QUICK else pytest.mark.slow)


@pytest.mark.parametrize("page", [slow_unless_quick(p) for p in PAGES if blocks(p)])
def test_python_blocks_run(page, run):
    run(RUN_BLOCKS.format(blocks=blocks(page)))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("example", [slow_unless_quick(p) for p in EXAMPLES])
def test_examples_run(example, run, request):
    if example.name == "graph_parts.py":
        request.getfixturevalue("real_data")("planetoid_cora.npz", "graph")
    for module in NEEDS.get(example.name, ()):
        pytest.importorskip(module, reason="no dependency, only an example's")
    code = f"import runpy; runpy.run_path({str(example)!r}, run_name='__main__')"
    assert run(code, *SHORT.get(example.name, [])).strip()


def measured(table):
    """The cells "reported" and "ours" of a table in papers/docs/results, by graph and row."""
    page = ROOT / "papers" / "docs" / "results" / f"{table.partition('-')[0]}.md"
    page = page.read_text("utf-8")
    part = page.split(f"[`{table}`](")[1].split("\n## ")[0]
    found, group = {}, ""
    for line in part.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].startswith("**"):
            group = cells[0].strip("*")
        elif len(cells) > 2 and cells[2][:1].isdigit():
            found[group, cells[0]] = cells[1], cells[2]
    return found


def test_the_page_of_the_papers_says_what_was_measured():
    page = (ROOT / "docs" / "papers.md").read_text("utf-8")
    lines = page.split("| Model | Texas | Wisconsin | Cornell |\n| --- | --- | --- | --- |\n")[1]
    known = measured("graphcon-heterophilic") | measured("g2-heterophilic")
    rows = lines.split("\n\n")[0].splitlines()
    assert len(rows) == 5
    for line in rows:
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for graph, cell in zip(("Texas", "Wisconsin", "Cornell"), cells, strict=True):
            reported, ours = known[graph, name]
            said = [float(number) for number in re.findall(r"[0-9.]+", cell)]
            both = f"{reported.split()[0]} {ours}"
            exact = [float(number) for number in re.findall(r"[0-9.]+", both)]
            assert said == pytest.approx(exact, abs=0.0501), (name, graph)


def test_pages_quote_the_means_of_the_accuracy_tables():
    """Every page that names a mean of MiniRocket, LEM or resonators has the tables' number."""
    tables = (ROOT / "benchmarks" / "accuracy.md").read_text("utf-8")
    means = re.search(r"\| \*\*mean\*\* \|  \|  \| (.*) \|", tables)[1].split(" | ")
    known = dict(zip(("LEM", "coRNN", "UnICORNN", "MiniRocket"), means, strict=True))
    page = (ROOT / "docs" / "which-model.md").read_text("utf-8")
    assert all(f"| {name} | {mean} % |" in page for name, mean in known.items())
    readme = (ROOT / "README.md").read_text("utf-8")
    said = re.search(
        r"MiniRocket reaches ([\d.]+) %, LEM ([\d.]+) % and UnICORNN ([\d.]+) %", readme
    )
    assert list(said.groups()) == [known[name] for name in ("MiniRocket", "LEM", "UnICORNN")]
    ucr = dict(re.findall(r"^\| (resonators|MiniRocket|QUANT) \| ([\d.]+) % \| \d", tables, re.M))
    for name in ("resonators.md", "neighbours.md"):
        page = (ROOT / "docs" / name).read_text("utf-8")
        for method, mean in ucr.items():
            assert re.search(rf"^\| {method}.*\| {mean} % \|", page, re.M), (name, method)
