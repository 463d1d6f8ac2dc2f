import pytest

from anharmonic_papers.tables.registry import table


@pytest.mark.parametrize(
    ("group", "samples", "most"),
    [("", {}, 1.1), ("twenty samples a step", {"samples_per_step": 20}, 1.2)],
)
def test_models_are_of_equal_size(parameters, group, samples, most):
    rows = [row for row in table("spoken-digits").rows if row.group == group]
    counts = [parameters(row.run) for row in rows]
    assert [row.run.model for row in rows] == ["CoRNN", "UnICORNN", "LEM", "LSTM"]
    assert max(counts) <= most * min(counts)
    whole = {"unit_rms": True} | samples
    assert all(row.run.task_options == whole for row in rows), "full length"
