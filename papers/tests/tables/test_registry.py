import re

import pytest
import torch

from anharmonic_papers.figures.registry import list_figures
from anharmonic_papers.report.summary import experiments
from anharmonic_papers.tables.registry import list_tables, table


def test_the_tables_of_papers_are_their_experiments_that_are_no_figures():
    of_papers = {name for name in list_tables() if table(name).paper != "ours"}
    with_data = {one.id for one in experiments() if not one.data}
    assert of_papers == with_data - set(list_figures())
    assert all(name.partition("-")[0] == table(name).paper for name in of_papers)


@pytest.mark.parametrize("name", list_tables())
def test_table_is_consistent(name):
    found = table(name)
    assert found.id == name
    ids = [row.id for row in found.rows]
    assert len(ids) == len(set(ids)) and all(re.fullmatch(r"[a-z0-9.-]+", i) for i in ids)
    # Parts of a table with a measure of their own may show the same runs.
    hashes = [(row.group, row.run.hash) for row in found.rows if row.run is not None]
    assert len(hashes) == len(set(hashes)) > 0
    if not any(part.measure != "test" for part in found.parts):
        assert len({name for _, name in hashes}) == len(hashes)
    for row in found.rows:
        assert row.reported or row.outcome or row.run is not None
        assert row.value is None or row.value > 0
        assert row.seeds and len(set(row.seeds)) == len(row.seeds)
        if row.run is not None:
            assert not row.run.reduced and row.run.seed == 0
    for row in found.rows:
        part = found.part(row.group)
        assert part.direction == ("higher" if part.unit == "%" else "lower")
        assert row.value is None or part.unit != "%" or row.value <= 100


@pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
@pytest.mark.parametrize("name", list_tables())
def test_every_run_builds_its_model_and_task(name, parameters):
    with torch.device("meta"):  # without drawing weights
        for row in table(name).rows:
            if row.run is not None:
                assert parameters(row.run) > 0


def test_rows_say_where_the_published_code_differs():
    for name in ("lem-smnist", "lem-psmnist", "lem-ncifar", "unicornn-ncifar"):
        for row in table(name).rows:
            if row.settings == "published code":
                assert "Kaiming normal" in row.note, (name, row.id)
    for name in ("cornn-ncifar", "unicornn-ncifar", "lem-ncifar"):
        assert "three separate affine maps" in table(name).row("cornn").note
    for name in ("cornn-smnist", "lem-smnist"):
        assert "tests the weights of the last epoch" in table(name).note
