"""Frames in memory and Parquet files, lists in cells included."""

import numpy as np
import pytest

from anharmonic.data.arrays import sequences_from
from anharmonic.data.readers import read_parts

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def pd():
    return pytest.importorskip("pandas")


def test_a_pandas_frame_with_a_row_per_sequence(pd):
    frame = pd.DataFrame(np.arange(6.0).reshape(2, 3))
    frame["label"] = pd.Categorical(["up", "down"])
    part = sequences_from(frame)
    assert part.x[:, 0].tolist() == [0, 1, 2, 3, 4, 5] and part.y.tolist() == ["up", "down"]


def test_levels_of_the_index_that_have_names_are_columns(pd):
    index = pd.MultiIndex.from_tuples([(1, 0), (1, 1), (2, 0)], names=["id", "time"])
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [True, False, None], "y": [0.5, 0.5, 1]}, index)
    part = sequences_from(frame)
    assert part.lengths.tolist() == [2, 1] and part.y.tolist() == [0.5, 1]
    assert part.channels == ("a", "b") and np.isnan(part.x[2, 1])


def test_a_selection_of_rows_is_not_mistaken_for_its_index(pd):
    frame = pd.DataFrame({"label": ["a", "b", "a"], "v0": [1, 2, 3], "v1": [4, 5, 6]})[1:]
    assert sequences_from(frame).x[:, 0].tolist() == [2, 5, 3, 6]


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_what_pandas_writes_with_its_index_comes_back(pd, tmp_path, name):
    frame = pd.DataFrame({"v0": [1.0, 2.0], "v1": [3.0, 4.0], "label": ["a", "b"]}, index=[3, 4])
    getattr(frame, f"to_{name[2:]}")(tmp_path / name)
    part = read_parts(tmp_path / name)["all"]
    assert part.x[:, 0].tolist() == [1, 3, 2, 4] and part.y.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("make", "texts"),
    [
        (lambda pd: pd.DataFrame([[1, 2, "a"]], columns=["v", "v", "label"]), ["'v'", "twice"]),
        (lambda pd: pd.DataFrame({"v": [1, "x"], "label": ["a", "b"]}), ["column v", "'x'"]),
        (lambda pd: pd.DataFrame({("a", "b"): [1]}), ["levels"]),
        (lambda pd: pd.DataFrame({"label": ["a"]})[:0], ["rows", "0"]),
        (lambda pd: pd.DataFrame({"v": [1 + 2j], "label": ["a"]}), ["convert this column"]),
        (lambda _: pa.table({"v": [[1, 2], None], "label": ["a", "b"]}), ["'v'", "empty cell"]),
        (lambda _: pa.table({"v": [[1, 2], []], "label": ["a", "b"]}), ["without a step"]),
        (lambda _: pa.table({"v": [[[1, 2]], [[1]]], "label": ["a", "b"]}), ["row 2", "of 2"]),
        (lambda _: pa.table({"v": [["a"]], "label": ["a"]}), ["row 1", "numbers"]),
        (lambda _: pa.table({"v": [[1, 2]], "w": [[1]], "label": ["a"]}), ["2 and 1", "row 1"]),
        (lambda _: pa.table({"v": [[1, 2]], "y": [[1]]}), ["'y'", "row 1", "2 entries"]),
    ],
)
def test_tables_that_cannot_be_read(pd, make, texts):
    with pytest.raises(ValueError) as error:
        sequences_from(make(pd))
    assert all(text in str(error.value) for text in texts)


def test_lists_in_cells(tmp_path):
    speed = [[[1, 2], [3, 4], [5, 6]], [[7, 8]]]
    columns = {"audio": [[1.0, 2.0, None], [4.0]], "speed": speed, "file": ["a.wav", "b.wav"]}
    parquet.write_table(pa.table({**columns, "label": ["x", "y"]}), tmp_path / "x.parquet")
    part = read_parts(tmp_path / "x.parquet")["all"]
    assert part.channels == ("audio", "speed_0", "speed_1") and part.lengths.tolist() == [3, 1]
    assert part.x[3].tolist() == [4, 7, 8] and np.isnan(part.x[2, 0])
    assert part.y.tolist() == ["x", "y"] and part.columns.layout == "nested"
    again = read_parts(tmp_path / "x.parquet", targets=False, columns=part.columns)["all"]
    np.testing.assert_array_equal(again.x, part.x)


def test_a_list_of_targets_is_one_per_step():
    part = sequences_from(pa.table({"v": [[1, 2], [3]], "y": [[0.1, 0.2], [0.3]]}))
    assert part.per_step and part.y.tolist() == [[0.1], [0.2], [0.3]]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + b"x" * 99 + b"PAR1"])
def test_a_damaged_parquet_file_is_refused(tmp_path, content):
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.parquet must be a sound Parquet file"):
        read_parts(tmp_path / "x.parquet")


def test_names_of_folders_are_no_columns(tmp_path):
    path = tmp_path / "label=7" / "x.parquet"
    path.parent.mkdir()
    parquet.write_table(pa.table({"v0": [1, 2], "v1": [3, 4], "label": ["a", "b"]}), path)
    assert read_parts(path)["all"].y.tolist() == ["a", "b"]


def test_a_small_file_of_huge_tables_is_refused(tmp_path):
    path, zeros = tmp_path / "bomb.parquet", pa.array(np.zeros(40_000_000, np.int8))
    parquet.write_table(pa.table({"a": zeros}), path, compression="zstd")
    with pytest.raises(ValueError, match="320000000 bytes of arrays in a file of"):
        read_parts(path)


def test_a_hugging_face_data_set():
    datasets = pytest.importorskip("datasets")
    names = datasets.ClassLabel(names=["no", "yes"])
    features = datasets.Features(x=datasets.Sequence(datasets.Value("float32")), label=names)
    data = datasets.Dataset.from_dict({"x": [[1, 2], [3]], "label": [1, 0]}, features=features)
    part = sequences_from(data)
    assert part.y.tolist() == ["yes", "no"] and part.x[:, 0].tolist() == [1, 2, 3]
    assert sequences_from(data.select([1])).y.tolist() == ["no"]
    with pytest.raises(ValueError, match=r"save_npz.*train"):
        sequences_from(datasets.DatasetDict({"train": data}))
    with pytest.raises(ValueError, match="split that is in memory"):
        sequences_from(data.to_iterable_dataset())


def test_categories_and_extension_types_are_what_they_stand_for():
    words = pa.array(["a", "b", "a"], pa.string_view()).cast(pa.string())
    categories = pa.DictionaryArray.from_arrays([1, 0, 1], words.cast(pa.string_view())[:2])
    half = pa.array([0.5, 1, 2], pa.float16())
    table = pa.table({"v0": half, "v1": half, "label": categories})
    assert sequences_from(table).y.tolist() == ["b", "a", "b"]


def test_text_that_never_comes_again_is_no_target():
    table = pa.table({"quarter": ["first", "second", "third"], "a": [1, 2, 3], "b": [4, 5, 6]})
    with pytest.raises(ValueError, match=r"'quarter'.*time_column"):
        sequences_from(table)
