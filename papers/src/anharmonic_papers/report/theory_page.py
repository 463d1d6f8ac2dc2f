"""The page of all statements, ``papers/docs/theory.md``: tables and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from anharmonic.train import write_atomically
from anharmonic_papers.report.theory_pictures import has_curve, panels
from anharmonic_papers.theory import all_statements
from anharmonic_papers.theory.statements import CHAPTERS, Check, Statement

TUNED: Mapping[str, str] = {
    "coRNN": "The bounds on gradients ask for N·dt ≤ 1. The tuned models have N·dt = 80 (adding, "
    "5000 steps), 42 and 33 (sMNIST), 65 and 60 (psMNIST) and 34 (noise-padded CIFAR).",
    "UnICORNN": "The documents' bounds on states and gradients hold while β t_n and γ t_n stay "
    "below 1.256. The tuned models have N·dt = 44 to 617, with β up to 3757.",
    "LEM": "The bound on states asks for dt ≤ 1; psMNIST is tuned to dt = 1.9. The "
    "bound on gradients asks for Γ t_n ≤ 2.51, so t_n ≤ 1.26; the tuned models have N·dt = 29 "
    "to 1490.",
    "GraphCON": "All tuned models have dt = 1. The bound on states asks for dt < min(α/γ, 1/α) and "
    "a bounded σ: PPI with GCN has α/γ = 0.242, ZINC with GAT 1/α = 0.68, Cora, Citeseer and "
    "Pubmed α - γ dt = 0 (the plain network, see `graphcon-plain-limit`), the WebKB graphs "
    "α = γ = 0, and ReLU has no bound. The bound on gradients asks for ΓN dt ≤ 2.51, where Γ ≥ 6: "
    "never met with dt = 1. GCN's operator has rows that do not sum to 1.",
    "Gradient Gating": "Features that come out of a linear encoder need not lie in [-1, 1], as T "
    "8.2.1 takes for granted; no tuned model holds a node fixed, as T 8.2.3 to 8.2.5 do.",
    "Neural ODEs": "Skew Symmetric makes A(z, t) skew, not ∂f/∂z: N 2.3 applies where A does not "
    "depend on z. The documents print neither sizes nor solver settings.",
}
"""Where the tuned models stand outside the assumptions, by chapter."""

_SIGNS = {"<=": "≤", ">=": "≥", "==": "="}

_HEAD = """# Theory

<!-- Written by `anharmonic theory --markdown papers/docs/theory.md`: edit the statements. -->

Every numbered statement of the documents as a function that returns both sides. Numbers: T is the
thesis of T. K. Rusch, C the coRNN, U the UnICORNN and L the LEM paper, N the thesis of F. Nestaas;
numbers in brackets are equations of T, in the chapter on neural ODEs those of N.

| state | meaning |
| --- | --- |
| holds | as printed |
| corrected | ours differs from the printed one; the remark says how |
| false | as printed, and the example is a counterexample that meets every assumption |
| open | neither proved nor refuted; measured only |

"Ratio" is measured over bound in the statement's own example, where it is largest (≤ 1 asked) or
smallest (≥ 1 asked); for a formula it is 1 plus the largest error over the largest value (= 1
asked). On a model of yours:

```python
import torch
from anharmonic import GraphCON
from anharmonic.theory import all_statements
from anharmonic.theory.graphs import MatrixCoupling, gcn_matrix, random_graph

edges = random_graph(nodes=30, chords=20, seed=0)
conv = MatrixCoupling(gcn_matrix(edges, 30), weight=3.0)
layer = GraphCON(conv, num_layers=50, dt=0.4, damping=0.5, activation="tanh")
check = all_statements()["graphcon-state-bound"].check(layer, torch.rand(30, 8).double(), edges)
print(check)  # T 7.2.7: holds, ratio ..., should be at most 1
print(check.measured.shape, check.bound.shape, check.assumptions)
```

`anharmonic theory` runs every example; `anharmonic theory ID` says all there is of one.

Letters: m neurons or features, N steps or layers, t_n = n·dt, v nodes, N_i the neighbours of node
i, d degrees, Δ_1 the largest distance of node 1 to another; |.| is the Euclidean norm.
"""


def measure(statements: Iterable[Statement]) -> dict[str, Check]:
    """The examples' checks by the statements' names.

    Example:
        >>> measure([all_statements()["cornn-energy-explicit"]])["cornn-energy-explicit"].holds
        True
    """
    return {statement.id: statement.example() for statement in statements}


def row(statement: Statement, check: Check) -> str:
    """A statement's line of its chapter's table.

    Example:
        >>> said = all_statements()["cornn-energy-explicit"]
        >>> row(said, said.example()).split(" | ")[1]
        '`cornn-energy-explicit`'
    """
    return f"{without_ratio(statement)} {ratio(check)} | {cell(statement.remark)} |"


def without_ratio(statement: Statement) -> str:
    """The part of a statement's line that is the same on every machine, before the ratio."""
    said = statement
    return f"| {cell(said.number)} | `{said.id}` | {cell(said.claim)} | {said.state} |"


def cell(text: str) -> str:
    r"""Text for a cell of a table.

    Example:
        >>> cell("|x| ≤ 1")
        '\\|x\\| ≤ 1'
    """
    for mark in "|*_":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("<", "&lt;")


def ratio(check: Check) -> str:
    """The example's ratio and what is asked of it; rounding errors are not spelt out.

    Example:
        >>> import torch
        >>> ratio(Check(torch.tensor(3.0), torch.tensor(2.0)))
        '1.5 (≤ 1)'
    """
    value = "≈ 0" if abs(check.ratio) < 1e-3 else f"{check.ratio:.3g}"
    return f"{value} ({_SIGNS[check.relation]} 1)"


def picture_name(chapter: str) -> str:
    """The file of a chapter's picture.

    Example:
        >>> picture_name("Neural ODEs")
        'theory-neural-odes.svg'
    """
    return f"theory-{chapter.lower().replace(' ', '-')}.svg"


def write_page(path: Path) -> list[Path]:
    """Runs every example and writes the page, and its pictures into the folder pictures beside it.

    Args:
        path: The page; its folder is made if it is missing.

    Returns:
        What was written, the page last.

    Raises:
        OSError: If a file cannot be written.
    """
    statements = all_statements()
    checks = measure(statements.values())
    pictures = path.parent / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    text, written = [_HEAD], []
    for chapter in CHAPTERS:
        said = [s for s in statements.values() if s.chapter == chapter]
        if not said:
            continue
        text.append(f"\n## {chapter}\n\n")
        if chapter in TUNED:
            text.append(f"**Outside the assumptions.** {TUNED[chapter]}\n\n")
        drawn = [checks[s.id] for s in said if has_curve(checks[s.id])]
        if drawn:
            name = picture_name(chapter)
            write_atomically(pictures / name, panels(drawn))
            written.append(pictures / name)
            text.append(f"![Measured against bound, {chapter}](pictures/{name})\n\n")
        text.append("| number | name | claim | state | ratio | remark |\n")
        text.append("| --- | --- | --- | --- | --- | --- |\n")
        text.extend(f"{row(s, checks[s.id])}\n" for s in said)
    write_atomically(path, "".join(text))
    return [*written, path]
