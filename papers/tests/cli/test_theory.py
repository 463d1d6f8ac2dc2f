import pytest

from anharmonic_papers.cli.theory import _named
from anharmonic_papers.report.theory_page import row
from anharmonic_papers.theory import all_statements

FEW = ("graphcon-energy", "graphcon-energy-printed", "g2-poincare", "ode-cross-product")


@pytest.fixture
def few(monkeypatch):
    """Only a few statements, so that the whole register need not run."""
    found = all_statements()
    chosen = {name: found[name] for name in FEW}
    monkeypatch.setattr("anharmonic_papers.theory.statements.STATEMENTS", chosen)
    return list(chosen.values())


def test_theory_prints_every_statement_in_a_line(cli, few):
    code, out, _ = cli("theory")
    assert code == 0
    listed, _, counts = out.partition("\n\n")
    lines = {line.split()[0]: line for line in listed.splitlines()}
    assert sorted(lines) == sorted(FEW)
    counts = " ".join(counts.split())
    assert counts.startswith("2 printed statements and 2 of ours: holds 1 (as printed)")
    assert "open 0 (neither proved nor refuted)" in counts and "corrected 2" in counts
    for said in few:
        assert f" {said.state} " in lines[said.id] and said.number in lines[said.id]
    assert "T 7.2.1: fails, ratio 1.276, should be equal to 1" in lines["graphcon-energy-printed"]
    assert "T 7.2.1: holds, ratio 1, should be equal to 1" in lines["graphcon-energy"]


def test_theory_takes_threads(cli, few, monkeypatch):
    threads = []
    monkeypatch.setattr("torch.set_num_threads", threads.append)
    assert cli("theory", "--threads", "2")[0] == 0 and threads == [2]
    code, _, err = cli("theory", "--threads", "0")
    assert code == 2 and "threads must be" in err


def test_theory_says_all_of_those_named(cli):
    code, out, _ = cli("theory", "g2-poincare-printed", "g2-poincare")
    assert code == 0 and max(map(len, out.splitlines())) <= 100
    said, _, symbols = out.partition("\n\n")
    heads = [line for line in said.splitlines() if not line.startswith(" ")]
    assert heads == [
        "g2-poincare-printed (Gradient Gating, T 8.2.4, false)",
        "g2-poincare (Gradient Gating, T 8.2.4, corrected)",
    ]
    assert "  arguments of its check: x, edge_index" in said and "  assumptions: " in said
    assert symbols.count("largest degree") == 1 and "x [v, m], features" in symbols
    assert "  example: T 8.2.4: fails, ratio 1.711" in out
    words = " ".join(out.split())
    assert "left side is 2470 and" in words and all_statements()["g2-poincare"].claim in words


def test_theory_takes_numbers_and_a_chapter(cli, few):
    code, out, _ = cli("theory", "t 8.2.4", "g2-poincare")
    said = out.partition("\n\n")[0]
    heads = [line.split()[0] for line in said.splitlines() if not line.startswith(" ")]
    assert (code, heads) == (0, ["g2-poincare"])
    out = cli("theory", "--chapter", "GraphCON")[1]
    assert [line.split()[0] for line in out.partition("\n\n")[0].splitlines()] == list(FEW[:2])
    code, out, _ = cli("theory", "--chapter", "LEM")
    assert code == 0 and out.strip().startswith("0 printed statements")
    for word in ("L", " ", "T"):
        code, _, err = cli("theory", word)
        assert code == 2 and "name or number" in err


def test_theory_takes_every_number_of_a_statement():
    for numbers, name in (
        (("L 4.2", "L4.2", "5.2.2", "T 5.2.2 = L 4.2"), "lem-gradient"),
        (("C C.1",), "cornn-sensitivity-implicit-sharp"),
        (("u 3",), "unicornn-memory"),
        (("(7.9)",), "graphcon-right-stochastic-gcn"),
    ):
        for number in numbers:
            assert name in _named(number, all_statements()), number


def test_theory_writes_the_page(cli, few, tmp_path):
    code, out, _ = cli("theory", "--markdown", "new/theory.md")
    assert code == 0
    assert out.splitlines() == ["wrote new/pictures/theory-graphcon.svg", "wrote new/theory.md"]
    page = (tmp_path / "new/theory.md").read_text("utf-8")
    assert "## GraphCON" in page and "## LEM" not in page and page.count("](pictures/") == 1
    assert all(row(said, said.example()) in page for said in few)
