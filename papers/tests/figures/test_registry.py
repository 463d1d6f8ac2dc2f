import pytest

from anharmonic_papers.figures.registry import tables_and_figures


def test_a_name_given_twice_counts_once():
    tables, figures = tables_and_figures(["demo", "g2-mad", "lem-adding", "demo"])
    assert [t.id for t in tables] == ["demo", "lem-adding"]
    assert [f.id for f in figures] == ["g2-mad"]
    with pytest.raises(ValueError, match=r"table must be one of .*'demo'"):
        tables_and_figures(["nothing"])
