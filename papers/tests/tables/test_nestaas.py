"""The two neural ODE experiments: one budget for all rows, three measures of the same runs."""

import pytest

from anharmonic_papers.tables import table as table_of

TABLES = [table_of(name) for name in ("nestaas-regression", "nestaas-classification")]


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.id)
def test_rows_differ_in_dynamics_and_rate_alone(table):
    runs = {row.label: row.run for row in table.rows}
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
    assert {run.lr for run in runs.values()} <= {0.01, 0.003}


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.id)
def test_three_measures_of_twenty_seeds_each(table):
    assert [part.measure for part in table.parts] == ["valid", "nfe", "adjoint_score"]
    assert all(part.quartiles and part.direction == "lower" for part in table.parts)
    assert len({row.run.hash for row in table.rows}) == 3
    assert {row.seeds for row in table.rows} == {tuple(range(20))}


def test_classification_bounds_the_matrix():
    for row in TABLES[1].rows:
        bounded = row.run.model_options.get("matrix_activation") == "tanh"
        assert bounded == (row.label != "Regular")
