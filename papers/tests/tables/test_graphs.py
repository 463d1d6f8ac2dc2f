"""What searches chose is what the tables run."""

import pytest

from anharmonic_papers.tables import graphs
from anharmonic_papers.tables.registry import table as table_of

CHOSEN = [(table, row) for table, rows in graphs.chosen().items() for row in rows]


@pytest.mark.parametrize(("table", "row"), CHOSEN)
def test_a_row_runs_what_was_chosen(table, row):
    entry = graphs.chosen()[table][row]
    (found,) = [r for r in table_of(table).rows if r.id == row]
    values = graphs.chosen()[table][entry["as"]]["values"] if "as" in entry else entry["values"]
    assert set(values) == set(found.search)
    given = {**vars(found.run), **found.run.model_options}
    assert {name: given[name] for name in values} == values
    assert (
        f"for {entry['as']} chose" if "as" in entry else f"{entry['trials']} trials"
    ) in found.note


def test_a_row_that_was_not_searched_says_so():
    rows = [
        (table, row)
        for table in {table for table, _ in CHOSEN}
        for row in table_of(table).rows
        if row.search and row.id not in graphs.chosen()[table]
    ]
    assert rows and all(graphs.UNSEARCHED in row.note for _, row in rows)
