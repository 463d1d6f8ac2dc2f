import pytest

from anharmonic.experiments.registry import expand


@pytest.mark.parametrize("table", expand(["demo"]), ids=lambda table: table.id)
def test_models_are_of_equal_size(table, parameters):
    counts = [parameters(row.run) for row in table.rows]
    assert [row.run.model for row in table.rows] == ["CoRNN", "UnICORNN", "LEM", "LSTM"]
    assert max(counts) <= 1.1 * min(counts)


@pytest.mark.parametrize("table", expand(["demo"]), ids=lambda table: table.id)
def test_demo_needs_no_download(table):
    assert {row.run.task for row in table.rows} <= {"adding", "digits"}
