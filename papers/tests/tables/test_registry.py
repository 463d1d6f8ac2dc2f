"""The tables as data: names, runs, rows. (tests/pins has the runs of every row.)"""

import re

import pytest
import torch

from anharmonic_papers.figures.registry import list_figures
from anharmonic_papers.report.summary import experiments
from anharmonic_papers.tables.base import Row
from anharmonic_papers.tables.registry import list_tables, table


def test_a_row_has_a_name_a_number_and_a_run_per_seed(run):
    assert Row("LEM (published code)", group="N = 10").id == "n-10-lem-published-code"
    assert Row("F", group="F = 0.9").id == "f-0.9-f"
    assert Row("LSTM", reported="2.0e-2").value == 0.02 and Row("LSTM").value is None
    row = Row("LEM", run=run, seeds=(3, 4))
    assert [r.seed for r in row.runs()] == [3, 4]
    assert [r.seed for r in row.runs((7,))] == [7]
    assert list(Row("expRNN").runs()) == []


def test_every_experiment_whose_data_we_have_is_a_table_or_a_figure():
    known, figures = set(list_tables()), set(list_figures())
    with_data = {one.id for one in experiments() if not one.data}
    assert with_data <= known | figures
    assert not {one.id for one in experiments() if one.data} & (known | figures)


@pytest.mark.filterwarnings("ignore::anharmonic.StabilityWarning")
@pytest.mark.parametrize("name", list_tables())
def test_table_is_consistent_and_its_runs_can_be_made(name, parameters):
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
        part = found.part(row.group)
        assert part.direction == ("higher" if part.unit == "%" else "lower")
        assert row.value is None or part.unit != "%" or row.value <= 100
        if row.run is not None:
            assert not row.run.reduced and row.run.seed == 0
            with torch.device("meta"):  # without drawing weights
                assert parameters(row.run) > 0


def test_the_demo_is_one_table_of_two_tasks_without_download():
    assert [part.title for part in table("demo").parts] == ["digits", "adding"]
    assert [row.run.task for row in table("demo").rows] == ["digits"] * 4 + ["adding"] * 4


@pytest.mark.parametrize("name", ["nestaas-regression", "nestaas-classification"])
def test_rows_of_neural_odes_differ_in_dynamics_and_rate_alone(name):
    """One budget for all rows, and three measures of the same runs."""
    both = table(name)
    runs = {row.label: row.run for row in both.rows}
    assert list(runs) == ["Regular", "Unrestricted", "Skew Symmetric"]
    own = {"dynamics", "matrix_activation", "normalisation"}  # (Regular has no matrix)
    shared = [
        (
            run.epochs,
            run.batch_size,
            run.task_options,
            {k: v for k, v in run.model_options.items() if k not in own},
        )
        for run in runs.values()
    ]
    assert shared == 3 * [shared[0]]
    assert [part.measure for part in both.parts] == ["valid", "nfe", "adjoint_score"]
    assert all(part.quartiles and part.direction == "lower" for part in both.parts)
    assert len({row.run.hash for row in both.rows}) == 3
