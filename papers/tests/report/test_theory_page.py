"""The page of statements is whole and up to date."""

import ast
import dataclasses
import re
from pathlib import Path

import pytest
import torch

from anharmonic_papers.report.theory_page import (
    TEMPLATE,
    cell,
    picture_name,
    ratio,
    row,
    without_ratio,
    write_page,
)
from anharmonic_papers.theory import all_statements
from anharmonic_papers.theory.statements import CHAPTERS, Check

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "theory.md").read_text("utf-8")


def test_the_page_says_what_the_register_says():
    # If this fails: anharmonic theory --markdown papers/docs/theory.md
    rows = re.findall(r"^(\| [^|]+ \| \[`([a-z0-9-]+)`\]\(\.\./src.*)$", PAGE, re.MULTILINE)
    lines = {name: line for line, name in rows}
    assert lines.keys() == all_statements().keys() and len(lines) == len(rows)
    first = PAGE.split("## How to read")[0]
    for name, said in all_statements().items():
        assert lines[name].startswith(without_ratio(said)), name
        assert lines[name].endswith(f"| {cell(said.remark)} |"), name
        assert (f"[`{name}`]" in first) == (said.state == "false")


def test_the_page_counts_the_papers_statements_apart_from_ours():
    states = [said.state for said in all_statements().values()]
    ours = states.count("corrected")
    first = " ".join(PAGE.split("| chapter |")[0].split())
    assert f"{len(states) - ours} numbered statements of the papers and {ours} corrected" in first
    assert f"{states.count('false')} are false as printed" in first
    assert f"{states.count('unread')} could not be read" in first
    readme = " ".join((DOCS.parents[1] / "README.md").read_text("utf-8").split())
    assert f"checked {len(states) - ours} statements of the papers]" in readme
    assert f": {states.count('false')} are false as printed" in readme


def test_the_page_shows_every_picture_and_says_where_tuned_models_stand():
    shown = re.findall(r"\(pictures/(theory-[a-z0-9-]+\.svg)\)", PAGE)
    drawn = sorted(path.name for path in (DOCS / "pictures").glob("theory-*.svg"))
    assert sorted(shown) == drawn and set(drawn) <= set(map(picture_name, CHAPTERS))
    template = TEMPLATE.read_text("utf-8")
    tuned = ast.literal_eval(re.search(r"set tuned = (\{.*?\}) %", template, re.DOTALL)[1])
    assert tuned.keys() <= set(CHAPTERS) and all(text in PAGE for text in tuned.values())


def test_cells_are_text_without_rounding_errors():
    said = all_statements()["g2-poincare-printed"]
    cells = re.split(r"(?<!\\)\|", row(said, said.example()))[1:-1]
    assert len(cells) == 6
    assert [c.strip() for c in cells[3:5]] == ["false", "1.71 (≤ 1)"]
    assert cell("|a_i|* < 1") == r"\|a\_i\|\* &lt; 1"
    one = torch.tensor(1.0)
    assert ratio(Check(1e-7 * one, one)) == "≈ 0 (≤ 1)"
    assert ratio(Check(2.5 * one, one, relation=">=")) == "2.5 (≥ 1)"
    assert ratio(Check(one, one, relation="==")) == "1 (= 1)"


def test_a_page_with_a_contradicted_statement_is_not_written(tmp_path, monkeypatch):
    said = all_statements()["g2-no-gating"]
    chosen = {said.id: dataclasses.replace(said, state="false")}
    monkeypatch.setattr("anharmonic_papers.theory.statements.STATEMENTS", chosen)
    with pytest.raises(ValueError, match="got 'g2-no-gating'; run `anharmonic theory NAME`"):
        write_page(tmp_path / "docs" / "theory.md")
    assert not any(tmp_path.iterdir())
