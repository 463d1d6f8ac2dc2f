from anharmonic_papers.tables.registry import table


def test_models_are_of_equal_size(parameters):
    rows = table("spoken-digits").rows
    counts = [parameters(row.run) for row in rows]
    assert [row.run.model for row in rows] == ["CoRNN", "UnICORNN", "LEM", "LSTM"]
    assert max(counts) <= 1.1 * min(counts)
    assert all(row.run.task_options == {"unit_rms": True} for row in rows), "full length"
