"""A row per step: grouping, order, times, targets and what is refused."""

import numpy as np
import pytest

from anharmonic.data.columns import Columns

pa = pytest.importorskip("pyarrow")


def read(targets=True, given=None, **columns):
    from anharmonic.data.tables import sequences_of
    from anharmonic.data.tables.cells import Table

    return sequences_of(Table(pa.table(columns), "here"), given or Columns(), targets)


def test_rows_are_gathered_by_id_in_the_order_ids_come_and_sorted_by_time():
    table = {"id": [*"babaa"], "t": [1, 5, 0, 4, 6], "v": [11, 25, 10, 24, 26.0]}
    part = read(**table, subject=[*"pqpqq"], label=[*"xyxyy"])
    assert part.lengths.tolist() == [2, 3] and part.x[:, 0].tolist() == [10, 11, 24, 25, 26]
    assert part.y.tolist() == ["x", "y"] and not part.per_step
    assert part.elapsed is None and part.interval == 1.0  # equal steps
    assert part.ids.tolist() == ["b", "a"] and part.groups.tolist() == ["p", "q"]
    assert part.times.tolist() == [0, 4] and part.channels == ("v",)


def test_random_rows_come_back_whatever_their_order():
    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(20), rng.integers(1, 9, 20))
    steps = np.concatenate([np.arange(n) for n in np.bincount(ids)])
    values = rng.normal(size=(len(ids), 2))
    mixed = rng.permutation(len(ids))
    a, b = values[mixed].T
    part = read(id=ids[mixed], time=steps[mixed], a=a, b=b, y=ids[mixed] / 2)
    for number, x in zip(part.y * 2, np.split(part.x, part.offsets[1:-1]), strict=True):
        np.testing.assert_array_equal(x, values[ids == number].astype(np.float32))


def test_uneven_times_are_elapsed_in_the_columns_unit():
    part = read(id=[1, 1, 1, 2, 2], t=[0.0, 1, 3, 7, 8], v=[0, 1, 2, 3, 4], y=[1, 1, 1, 2, 2])
    assert part.elapsed.tolist() == [0, 1, 2, 0, 1] and part.interval == 1.0


def test_steps_that_differ_by_a_percent_are_even():
    assert read(t=[0.0, 1, 2, 3.009], v=[1, 2, 3, 4], y=[1, 2, 3, 4]).elapsed is None
    assert read(t=[0.0, 1, 2, 3.02], v=[1, 2, 3, 4], y=[1, 2, 3, 4]).elapsed is not None


@pytest.mark.parametrize(
    "dates",
    [
        ["2024-01-01", "2024-01-02", "2024-01-05"],
        ["2024-01-01T00:00:00Z", "2024-01-02T01:00+01:00", "2024-01-05T00:00:00+00:00"],
        np.array(["2024-01-01", "2024-01-02", "2024-01-05"], "M8[s]"),
        np.array(["2024-01-01", "2024-01-02", "2024-01-05"], "M8[D]"),
    ],
)
def test_dates_are_counted_in_seconds(dates):
    part = read(date=dates, v=[1, 2, 3], y=[0.1, 0.2, 0.3])
    assert part.elapsed.tolist() == [0, 86400, 3 * 86400]
    assert part.times.astype("M8[D]").astype(str).tolist() == ["2024-01-01"]
    months = read(date=["2024-01", "2024-02", "2024-03"], v=[1, 2, 3], y=[0.1, 0.2, 0.3])
    assert months.elapsed.tolist() == [0, 31 * 86400, 29 * 86400]


def test_a_target_that_changes_is_one_per_step():
    part = read(id=[1, 1, 2], v=[1, 2, 3], label=["a", "b", "a"])
    assert part.per_step and part.y.tolist() == [["a"], ["b"], ["a"]]


def test_means_of_repeated_times_need_no_times():
    given = Columns(layout="long", duplicates="mean")
    part = read(given=given, v=[1, 2, 3], y=[0.5, None, 0.75])
    assert part.x[:, 0].tolist() == [1, 2, 3] and part.y[[0, 2], 0].tolist() == [0.5, 0.75]


def test_a_target_given_once_is_that_of_the_sequence():
    part = read(id=[1, 1, 2, 2], v=[1, 2, 3, 4], label=[None, "a", "b", None])
    assert not part.per_step and part.y.tolist() == ["a", "b"]


def test_a_new_table_is_read_by_the_names_of_training():
    found = read(id=[1, 1], a=[1, 2], b=[3, 4], label=["x", "x"]).columns
    assert found.layout == "long" and found.values == ("a", "b")
    part = read(False, found, b=[30, 40], extra=["?", "?"], a=[10, 20], id=[1, 2])
    assert part.x.tolist() == [[10, 30], [20, 40]] and part.y is None and len(part) == 2
    with pytest.raises(ValueError, match=r"'a' and 'b'.* as in training"):
        read(False, found, id=[1, 2], a=[1, 2])


TWO = {"id": [1, 1], "v": [1, 2], "y": [1, 1]}


@pytest.mark.parametrize(
    ("columns", "texts"),
    [
        (TWO | {"t": [0, 0]}, ["0.0 twice", "row 2", "id_column"]),
        (TWO | {"t": [0, None]}, ["time column 't'", "row 2"]),
        (TWO | {"t": ["01/02/24", "x"]}, ["'x'", "row 2", "dates"]),
        (TWO | {"t": ["2024-01-01T00:00Z", "2024-01-02T00:00"]}, ["1 of 2 with a time zone"]),
        ({"id": [1, None, 1], "v": [1, 2, 3], "y": [1, 1, 1]}, ["id column 'id'", "row 2"]),
        (TWO | {"y": [None, None]}, ["'y'", "row 1, id 1"]),
        (TWO | {"group": ["a", "b"]}, ["a and b", "'group'"]),
        (TWO | {"id": [1.5, 1.5]}, ["id column", "double"]),
        (TWO | {"v": ["1", "two"]}, ["'two'", "row 2", "'v'"]),
        ({"id": [1, 1], "y": [1, 1]}, ["value columns"]),
        ({"id": [1, 1], "v": [1, 2]}, ["'v'", "--target-column"]),
    ],
)
def test_what_does_not_fit_is_said_with_its_place(columns, texts):
    with pytest.raises(ValueError) as error:
        read(**columns)
    assert all(text in str(error.value) for text in texts)


def test_rows_of_a_recording_to_be_cut_are_steps():
    columns = {"a": [1, 2, 3], "b": [4, 5, 6], "label": ["x", "x", "y"]}
    part = read(given=Columns(windows=True), **columns)
    assert part.lengths.tolist() == [3] and part.channels == ("a", "b") and part.per_step
    numbered = read(given=Columns(windows=True), v0=[1, 2], v1=[3, 4], v2=[5, 6], label=["x", "y"])
    assert numbered.lengths.tolist() == [3, 3]


def test_what_is_forecast_is_no_target_by_its_name():
    columns = {"unique_id": ["p", "p", "q"], "ds": ["2024-01-01", "2024-01-02", "2024-01-01"]}
    given = Columns(windows=True, forecast=True)
    part = read(False, given, **columns, y=[1.5, 2.5, 3.5], label=["a", "a", "b"])
    assert part.channels == ("y",) and part.y is None and part.x[:, 0].tolist() == [1.5, 2.5, 3.5]
    again = read(False, part.columns, **columns, y=[1.5, 2.5, 3.5])
    assert again.x.tolist() == part.x.tolist()
    with pytest.raises(ValueError, match=r"target_column with horizon .*'y'.*--forecast"):
        Columns(target="y", forecast=True)


def test_an_id_of_something_names_the_group_beside_an_id_and_of_whole_rows():
    part = read(id=[1, 1, 2, 2], ward_id=["a", "a", "b", "b"], v=[1.0, 2, 3, 4], label=[0, 0, 1, 1])
    assert part.groups.tolist() == ["a", "b"] and part.columns.group == "ward_id"
    rows = read(site_id=[1, 1, 2], s0=[1.0, 2, 3], s1=[1.0, 2, 3], s2=[1.0, 2, 3], label=[0, 1, 0])
    assert rows.groups.tolist() == [1, 1, 2] and len(rows) == 3
