import pytest

from anharmonic_papers.tables.registry import table

PARTS = table("demo").parts


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.id)
def test_models_are_of_equal_size(part, parameters):
    counts = [parameters(row.run) for row in part.rows]
    assert [row.run.model for row in part.rows] == ["CoRNN", "UnICORNN", "LEM", "LSTM"]
    assert max(counts) <= 1.1 * min(counts)


def test_demo_is_one_table_of_two_tasks_without_download():
    assert [part.task for part in PARTS] == [
        "handwritten digits, pixel by pixel",
        "adding problem of length 50",
    ]
    rows = table("demo").rows
    assert [row.run.task for row in rows] == ["digits"] * 4 + ["adding"] * 4
    assert rows[2].id == "digits-lem"
