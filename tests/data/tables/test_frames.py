"""Frames in memory and Parquet files, lists in cells included."""

import numpy as np
import pytest

from anharmonic.data import Columns
from anharmonic.data.arrays import sequences_from
from anharmonic.data.readers import read_parts

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
parquet = pytest.importorskip("pyarrow.parquet")

INDEX = pd.MultiIndex.from_tuples([(1, 0), (1, 1), (2, 0)], names=["id", "time"])
KIND = pd.Categorical(["x", "y", "x", "x"])
HALF = pa.array([0.5, 1, 2], pa.float16())
WORDS = pa.array(["a", "b"], pa.string_view())


@pytest.mark.parametrize(
    ("table", "given", "x", "y"),
    [
        (pd.DataFrame({0: [0.0, 3], 1: [1.0, 4], "label": pd.Categorical(["up", "down"])}), {},
         [[0], [1], [3], [4]], ["up", "down"]),
        # Levels of the index that have names are columns.
        (pd.DataFrame({"a": [1, 2, 3], "b": [True, False, None], "y": [0.5, 0.5, 1]}, INDEX), {},
         [[1, 1], [2, 0], [3, np.nan]], [0.5, 1]),
        # A selection of rows is not mistaken for its index.
        (pd.DataFrame({"label": [*"aba"], "v0": [1, 2, 3], "v1": [4, 5, 6]})[1:], {},
         [[2], [5], [3], [6]], ["b", "a"]),
        (pd.DataFrame({"id": [1, 1, 2, 2], "ax": [1, 2, 3, 4], "kind": KIND, "label": [*"aabb"]}),
         {"categorical": ("kind",)}, [[1, 1, 0], [2, 0, 1], [3, 1, 0], [4, 1, 0]], ["a", "b"]),
        (pa.table({"v": [[1, 2], [3]], "y": [[0.1, 0.2], [0.3]]}), {}, [[1], [2], [3]],
         [[0.1], [0.2], [0.3]]),  # a list of targets is one per step
        # Databases write whole numbers as decimals.
        (pa.table({"v": [[1, 2], [3]], "label": pa.array([3, 4], pa.decimal128(38, 0))}), {},
         [[1], [2], [3]], [3, 4]),
        # Categories and extension types are what they stand for.
        (pa.table({"v0": HALF, "v1": HALF,
                   "label": pa.DictionaryArray.from_arrays([1, 0, 1], WORDS)}), {},
         [[0.5], [0.5], [1], [1], [2], [2]], ["b", "a", "b"]),
    ],
    ids=["wide", "levels", "selection", "categories", "lists", "decimals", "extensions"],
)  # fmt: skip
def test_frames(table, given, x, y):
    part = sequences_from(table, columns=Columns(**given))
    np.testing.assert_array_equal(part.x, x)
    assert part.y.tolist() == y and isinstance(part.y.tolist()[0], type(y[0]))


@pytest.mark.parametrize("name", ["x.csv", "label=7/x.parquet"])
def test_what_pandas_writes_with_its_index_comes_back(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)  # whose name is no column
    frame = pd.DataFrame({"v0": [1.0, 2.0], "v1": [3.0, 4.0], "label": ["a", "b"]}, index=[3, 4])
    getattr(frame, f"to_{path.suffix[1:]}")(path)
    part = read_parts(path)["all"]
    assert part.x[:, 0].tolist() == [1, 3, 2, 4] and part.y.tolist() == ["a", "b"]


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
