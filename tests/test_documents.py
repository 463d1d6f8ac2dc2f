"""The Python of README and docs runs as it stands, links lead somewhere, examples run."""

import ast
import importlib
import json
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


def text(path):
    return (ROOT / path).read_text("utf-8")


def blocks(page):
    return re.findall(r"```python\n(.*?)```", text(page), re.DOTALL)


def rows(lines):
    """The cells of the lines of a table."""
    for line in lines:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def numbers(cell):
    return [float(number) for number in re.findall(r"[0-9.]+", cell)]


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


def test_pages_import_only_public_names():
    lines = [line for page in PAGES for block in blocks(page) for line in ast.parse(block).body]
    named = [line for line in lines if isinstance(line, ast.ImportFrom)]
    ours = [line for line in named if re.match(r"anharmonic\b", line.module)]
    imported = {(line.module, alias.name) for line in ours for alias in line.names}
    assert len(imported) > 20
    table = text("docs/diagnostics.md").split("| module |")[1].split("\n\n")[0]
    listed = re.findall(r"`([a-z_]+)`(?=:| and)", table)
    imported |= {("anharmonic.diagnostics", name) for name in listed}
    public = {module: importlib.import_module(module).__all__ for module, _ in imported}
    assert [(module, name) for module, name in imported if name not in public[module]] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", text(page)):
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
    folder = ROOT / "papers" / "docs" / "results"
    page = folder / f"{table.partition('-')[0]}.md"
    part = text(page if page.exists() else folder / "more.md").split(f"[`{table}`](")[1]
    found, group, ours = {}, "", 0
    for cells in rows(part.split("\n## ")[0].splitlines()):
        if "ours" in cells[:3]:
            ours = cells.index("ours")
        elif cells[0].startswith("**"):
            group = cells[0].strip("*")
        elif 0 < ours < len(cells) and cells[ours][:1].isdigit():
            found[group, cells[0]] = cells[1], cells[ours]
    return found


def test_the_page_of_the_papers_says_what_was_measured():
    header = "| Model | Texas | Wisconsin | Cornell |\n| --- | --- | --- | --- |\n"
    lines = text("docs/papers.md").split(header)[1].split("\n\n")[0].splitlines()
    known = measured("graphcon-heterophilic") | measured("g2-heterophilic")
    assert len(lines) == 5
    for name, *cells in rows(lines):
        for graph, cell in zip(("Texas", "Wisconsin", "Cornell"), cells, strict=True):
            reported, ours = known[graph, name]
            exact = numbers(f"{reported.split()[0]} {ours}")
            assert numbers(cell) == pytest.approx(exact, abs=0.0501), (name, graph)


BESIDE_LSTM = {
    "sequential MNIST": ("short-smnist", "LEM", "", "coRNN", "LSTM, short", ""),
    "permuted sequential MNIST": (
        "short-psmnist", "LEM", "UnICORNN, time scales searched", "coRNN", "LSTM", ""),
    "noise-padded CIFAR-10": (
        "short-ncifar", "LEM, time scales searched", "UnICORNN, time scales searched", "coRNN",
        "LSTM, short", ""),
    "spoken digits, raw audio": ("spoken-digits", "LEM", "UnICORNN", "coRNN", "LSTM", ""),
    "exercises from a watch": ("cornn-watch-imu", "LEM", "UnICORNN", "coRNN", "LSTM", "GRU"),
    "adding problem of 500 steps": (
        "cornn-adding", "LEM", "UnICORNN, gates from the start, searched",
        "coRNN, gates from the start", "LSTM", "GRU"),
    "FitzHugh-Nagumo": (
        "lem-fitzhugh-nagumo", "LEM, searched", "", "coRNN, tuned", "LSTM, searched", ""),
    "Lorenz 96": (
        "unicornn-lorenz96", "", "UnICORNN, tuned", "coRNN, batch searched", "LSTM", ""),
}  # fmt: skip
"""Tables, and the rows of their models, by the first column of "Beside LSTM and GRU"."""
PARTS = {
    "spoken-digits": "twenty samples a step",
    "cornn-adding": "T = 500",
    "unicornn-lorenz96": "F = 8",
}


def test_the_table_beside_lstm_and_gru_says_what_was_measured():
    table = text("benchmarks/accuracy.md").split("## Beside LSTM and GRU\n")[1].split("\n\n")[1]
    lines = table.splitlines()[2:]
    assert len(lines) == len(BESIDE_LSTM)
    for name, *cells in rows(lines):
        source, *models = BESIDE_LSTM[re.match(r"\[(.*?)\]", name)[1]]
        known = measured(source)
        for model, cell in zip(models, cells, strict=True):
            if not model:
                assert cell == "–"
                continue
            exact = float(known[PARTS.get(source, ""), model][1].split()[0])
            assert float(cell.split()[0]) == pytest.approx(exact, rel=0.01), (name, model)


def test_the_page_of_resonators_says_what_a_microcontroller_takes():
    results = text("benchmarks/results/microcontroller.jsonl").splitlines()
    by_case = {one["case"]: one for one in map(json.loads, results)}
    for number, pools in (("32", "share and largest"), ("1,000", "default pools")):
        one = by_case[f"{number} resonators, {pools}"]
        pattern = rf"^\| {number} resonators.*% \| (.*) kB \| (.*) kB"
        flash, ram = re.search(pattern, text("docs/resonators.md"), re.M).groups()
        assert float(flash.replace(",", "")) == pytest.approx(one["flash"] / 1000, abs=0.5)
        assert float(ram) == pytest.approx(one["state"] / 1000, abs=0.05 if "." in ram else 0.5)
    said = f"1,000 resonators take {flash} kB of flash (ten classes) and {ram} kB of RAM"
    assert said in text("docs/export.md")


def test_pages_quote_the_means_of_the_accuracy_tables():
    """Every page that names a mean of MiniRocket, LEM or resonators has the tables' number."""
    tables = text("benchmarks/accuracy.md")
    means = re.search(r"\| \*\*mean\*\* \|  \|  \| (.*) \|", tables)[1].split(" | ")
    known = dict(zip(("LEM", "coRNN", "UnICORNN", "MiniRocket"), means, strict=True))
    page = text("docs/which-model.md")
    assert all(f"| {name} | {mean} % |" in page for name, mean in known.items())
    said = "MiniRocket reaches {MiniRocket} %, LEM {LEM} % and UnICORNN {UnICORNN} %"
    assert said.format(**known) in re.sub(r"\s+", " ", text("README.md"))
    ucr = dict(re.findall(r"^\| (resonators|MiniRocket|QUANT) \| ([\d.]+) % \| \d", tables, re.M))
    for name in ("docs/resonators.md", "docs/neighbours.md"):
        for method, mean in ucr.items():
            assert re.search(rf"^\| {method}.*\| {mean} % \|", text(name), re.M), (name, method)
