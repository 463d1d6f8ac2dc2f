"""A row per step: grouping, order, targets and new tables."""

import numpy as np
import pytest

from anharmonic.data.columns import Columns


def test_rows_are_gathered_by_id_in_the_order_ids_come_and_sorted_by_time(made):
    table = {"id": [*"babaa"], "t": [1, 5, 0, 4, 6], "v": [11, 25, 10, 24, 26.0]}
    part = made(**table, subject=[*"pqpqq"], label=[*"xyxyy"])
    assert part.lengths.tolist() == [2, 3] and part.x[:, 0].tolist() == [10, 11, 24, 25, 26]
    assert part.y.tolist() == ["x", "y"] and not part.per_step
    assert part.elapsed is None and part.interval == 1.0  # equal steps
    assert part.ids.tolist() == ["b", "a"] and part.groups.tolist() == ["p", "q"]
    assert part.times.tolist() == [0, 4] and part.channels == ("v",)


def test_random_rows_come_back_whatever_their_order(made):
    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(20), rng.integers(1, 9, 20))
    steps = np.concatenate([np.arange(n) for n in np.bincount(ids)])
    values = rng.normal(size=(len(ids), 2))
    mixed = rng.permutation(len(ids))
    a, b = values[mixed].T
    part = made(id=ids[mixed], time=steps[mixed], a=a, b=b, y=ids[mixed] / 2)
    for number, x in zip(part.y * 2, np.split(part.x, part.offsets[1:-1]), strict=True):
        np.testing.assert_array_equal(x, values[ids == number].astype(np.float32))


@pytest.mark.parametrize(
    ("columns", "given", "y", "per_step"),
    [
        # A target that changes is one per step; one that is given once, that of the sequence.
        ({"id": [1, 1, 2, 2], "label": [*"abaa"]}, {}, [["a"], ["b"], ["a"], ["a"]], True),
        ({"id": [1, 1, 2, 2], "label": [None, "a", "b", None]}, {}, ["a", "b"], False),
        ({"label": [*"xxxy"]}, {"windows": True}, [["x"], ["x"], ["x"], ["y"]], True),
        ({"y": [0.5, 1.5, 0.75, 1]}, {"layout": "long", "duplicates": "mean"},
         [[0.5], [1.5], [0.75], [1]], True),  # without times none are repeated
    ],
)  # fmt: skip
def test_targets(made, columns, given, y, per_step):
    part = made(Columns(**given), v=[1, 2, 3, 4], **columns)
    assert part.y.tolist() == y and part.per_step == per_step
    assert part.x[:, 0].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("gap", ["", "NaN", "NA", "?"])
def test_gaps_between_numeric_targets_are_no_class(read, gap):
    part = read({"time": range(6), "a": range(6), "label": [1, 2, gap, 2, 1, 1]})
    assert part.y[part.known, 0].tolist() == [1, 2, 2, 1, 1] and part.y.dtype.kind == "i"
    part = read({"time": range(4), "a": range(4), "y": [0.5, gap, 2, 3]})
    assert part.y.dtype.kind == "f" and part.y[[0, 2, 3], 0].tolist() == [0.5, 2, 3]


def test_a_new_table_is_read_by_the_names_of_training(made):
    found = made(id=[1, 1], a=[1, 2], b=[3, 4], label=["x", "x"]).columns
    assert found.layout == "long" and found.values == ("a", "b")
    part = made(found, False, b=[30, 40], extra=["?", "?"], a=[10, 20], id=[1, 2])
    assert part.x.tolist() == [[10, 30], [20, 40]] and part.y is None and len(part) == 2
    with pytest.raises(ValueError, match=r"'a' and 'b'.* as in training"):
        made(found, False, id=[1, 2], a=[1, 2])


def test_numbered_columns_are_steps_of_whole_rows_even_to_be_cut(made):
    columns = {"v0": [1, 2], "v1": [3, 4], "v2": [5, 6], "label": ["x", "y"]}
    assert made(Columns(windows=True), **columns).lengths.tolist() == [3, 3]


def test_what_is_forecast_is_no_target_by_its_name(made):
    columns = {"unique_id": ["p", "p", "q"], "ds": ["2024-01-01", "2024-01-02", "2024-01-01"]}
    given = Columns(windows=True, forecast=True)
    part = made(given, False, **columns, y=[1.5, 2.5, 3.5], label=["a", "a", "b"])
    assert part.channels == ("y",) and part.y is None and part.x[:, 0].tolist() == [1.5, 2.5, 3.5]
    again = made(part.columns, False, **columns, y=[1.5, 2.5, 3.5])
    assert again.x.tolist() == part.x.tolist()
    with pytest.raises(ValueError, match=r"target_column with horizon .*'y'.*--forecast"):
        Columns(target="y", forecast=True)


def test_a_gap_among_labels_makes_them_no_channel_of_a_forecast(made):
    columns = {"ds": [1, 2, 3, 4], "v": [1.5, 2.5, 3.5, 4.5], "anomaly": [0, 1, None, 0]}
    part = made(Columns(windows=True, forecast=True), False, **columns)
    assert part.channels == ("v",) and part.columns.target == "anomaly"


def test_blanks_around_a_name_make_no_other_series_or_group(made):
    columns = {"id": ["p", "p ", "q", "q"], "subject": ["s", "s", " s", "s"], "v": [1.0, 2, 3, 4]}
    part = made(**columns, label=[0, 0, 1, 1])
    assert part.ids.tolist() == ["p", "q"] and part.groups.tolist() == ["s", "s"]


def test_an_id_of_something_names_the_group_beside_an_id_and_of_whole_rows(made):
    part = made(id=[1, 1, 2, 2], ward_id=["a", "a", "b", "b"], v=[1.0, 2, 3, 4], label=[0, 0, 1, 1])
    assert part.groups.tolist() == ["a", "b"] and part.columns.group == "ward_id"
    rows = made(site_id=[1, 1, 2], s0=[1.0, 2, 3], s1=[1.0, 2, 3], s2=[1.0, 2, 3], label=[0, 1, 0])
    assert rows.groups.tolist() == [1, 1, 2] and len(rows) == 3


def test_a_time_column_without_a_name_is_described(read):
    assert "time column ''" in read(",a,label\n0,1,x\n2,2,x\n1,3,y\n").columns.describe()


def test_times_that_go_back_as_after_a_restart_give_a_warning(read, recwarn):
    first, again = ("".join(f"{i}.{part},{i}\n" for i in range(30)) for part in (5, 25))
    read(f"time,a\n{first}{again}", "forecast")
    (said,) = recwarn
    assert "Times of mine.csv go back, first in row 32 (1 such rows)." in str(said.message)
    late = "".join(f"{i},1\n" for i in range(40, 80))
    for sorted_at_last in (
        f"{late}{first}",
        f"{first}{late}20,1\n",
        "\n".join(first.split()[::-1]),
    ):
        assert read(f"time,a\n{sorted_at_last}", "forecast").clock[-1] > 29
    assert len(recwarn) == 1


def test_a_missing_row_does_not_make_times_of_day_of_numbers(made):
    times = [*range(30), *range(14), *range(15, 30)]
    part = made(id=[1] * 30 + [2] * 29, time=times, v=[1.5] * 59, label=[0] * 30 + [1] * 29)
    assert part.elapsed[44] == 2


def test_a_recording_with_another_step_gives_a_warning(made, recwarn):
    times = [*range(5), *range(5), *range(0, 5000, 1000)]
    columns = {"id": np.repeat([1, 2, 3], 5).tolist(), "v": [i / 2 for i in range(15)]}
    made(**columns, time=times, label=[0] * 10 + [1] * 5)
    (said,) = [str(one.message) for one in recwarn]
    assert "1 of 3 recordings of here" in said and "usual 1: 1000 in the one from row 11" in said
    made(**columns, time=[*range(5), *range(5), 0, 9, 10, 50, 99], label=[0] * 10 + [1] * 5)
    assert len(recwarn) == 1  # irregular, not of another rate
    shaken = (np.arange(5) * 1000 + np.array([0, 30, -40, 20, -30])).tolist()  # milliseconds
    made(**columns, time=[*range(5), *range(5), *shaken], label=[0] * 10 + [1] * 5)
    assert "in the one from row 11" in str(recwarn[-1].message) and len(recwarn) == 2
