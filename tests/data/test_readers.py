import hashlib

import numpy as np
import pytest

from anharmonic.data.columns import Columns
from anharmonic.data.readers import file_digest, read_parts

HEADER = "@univariate true\n@classLabel true a b\n@data\n"


def test_parts_by_the_ending(tmp_path):
    np.savez(tmp_path / "mine", x=np.zeros((3, 2)), y=[0, 1, 0])
    (tmp_path / "mine.npz").rename(tmp_path / "mine.NPZ")
    assert len(read_parts(tmp_path / "mine.NPZ")["all"]) == 3
    content = (tmp_path / "mine.NPZ").read_bytes()
    assert file_digest(tmp_path / "mine.NPZ") == hashlib.sha256(content).hexdigest()
    paths = [tmp_path / f"Small_{part}.tsv" for part in ("TRAIN", "TEST")]
    paths[0].write_text("1\t0.5\t1.5\n2\t3\t4\n")
    paths[1].write_text("2\t5\t6\n")  # read as the other part
    for path in paths:
        parts = read_parts(path)
        assert {name: len(part) for name, part in parts.items()} == {"train": 2, "test": 1}
        assert parts["test"].x[:, 0].tolist() == [5, 6]
    assert list(read_parts(paths[1], targets=False)) == ["all"]


def test_unknown_ending_and_hint(tmp_path):
    for ending, said in ((".xls", "must be one of '.npz', .*'.xls'"), (".arff", "; got .+; ")):
        path = tmp_path / f"mine{ending}"
        path.write_text("@relation x\n@attribute a real\n@data\n1\n")
        with pytest.raises(ValueError, match=said):
            read_parts(path)
    (tmp_path / "mine.ts").write_text(HEADER + "1,2:a\n")
    with pytest.raises(ValueError, match=r"mine.ts .*none: .ts has none.*id_column"):
        read_parts(tmp_path / "mine.ts", columns=Columns(id="a"))


def test_arrays_with_the_names_of_keys(tmp_path):
    x, y = np.random.default_rng(0).random((6, 5)), np.arange(6) % 2
    np.save(tmp_path / "X.npy", x)
    with pytest.raises(ValueError, match=r"targets of X.npy must lie beside it; got none; save"):
        read_parts(tmp_path / "X.npy")
    alone = file_digest(tmp_path / "X.npy")
    np.save(tmp_path / "y.npy", y)
    assert file_digest(tmp_path / "X.npy") != alone
    for path in (tmp_path, tmp_path / "X.npy"):
        part = read_parts(path)["all"]
        assert part.y is not None and part.y.tolist() == y.tolist()
        assert part.lengths.tolist() == [5] * 6
    own = tmp_path / "own"
    own.mkdir()
    for name in ("train", "test"):
        np.save(own / f"x_{name}.npy", x)
        np.save(own / f"y_{name}.npy", y)
    assert sorted(read_parts(own / "x_train.npy")) == ["test", "train"]
    assert sorted(read_parts(own)) == ["test", "train"]
    np.save(tmp_path / "series.npy", np.arange(40.0))
    part = read_parts(tmp_path / "series.npy", targets=False)["all"]
    assert part.lengths.tolist() == [40]


def test_shards_are_refused_by_their_name(tmp_path):
    (tmp_path / "shards.json").write_text("{}")
    for path in (tmp_path, tmp_path / "shards.json"):
        with pytest.raises(ValueError, match="got shards, which only train reads"):
            read_parts(path, targets=False)


def test_columns_survive_json():
    columns = Columns("label", "id", None, "who", "long", ("a", "b"), True, 5, True)
    assert Columns.from_dict(columns.to_dict()) == columns
    with pytest.raises(ValueError, match="groop"):
        Columns.from_dict({"groop": "x"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": "a", "id": "a"},
        {"id": 3},
        {"layout": "tall"},
        {"windows": "yes"},
        {"forecast": "a"},
        {"found": 1},
        {"header": "no"},
        {"width": "3"},
        {"width": -1},
        {"values": (1, 2)},
        {"label_pattern": "("},
        {"target": "y", "forecast": True},
    ],
)
def test_what_is_no_setting_of_columns_is_refused(wrong):
    with pytest.raises((TypeError, ValueError), match=rf"(?s){next(iter(wrong))}.*; got .+; .+"):
        Columns(**wrong)
