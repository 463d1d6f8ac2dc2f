"""Shards: what they hold is what was written, read in the order of seed and epoch."""

import json

import numpy as np
import pytest
import torch

from anharmonic.data import ShardsTask, file_digest, parquet_shards, write_shards


def shards(seed, sizes=(5, 9, 6), values=False):
    rng = np.random.default_rng(seed)
    for size in sizes:
        x = rng.normal(3.0, 2.0, (size, 7, 2))
        yield x, x.mean((1, 2)) if values else rng.integers(0, 3, size)


def together(made):
    x, y = zip(*made, strict=True)
    return np.concatenate(x).astype(np.float32), np.concatenate(y)


@pytest.fixture
def index(tmp_path):
    made = {"train": shards(0), "valid": shards(1, (4,)), "test": shards(2, (3, 2))}
    return write_shards(tmp_path / "set", made, class_names=["a", "b", "c"])


def test_batches_are_those_of_the_same_data_in_memory(index):
    task = ShardsTask(index)
    assert task.sizes == {"train": 20, "valid": 4, "test": 5}
    assert (task.target, task.class_names, task.input_size) == ("class", ("a", "b", "c"), 2)
    x, y = together(shards(0))
    mean, std = x.reshape(-1, 2).mean(0), x.reshape(-1, 2).std(0)
    order = torch.randperm(20, generator=torch.Generator().manual_seed(0))
    found = task.splits().train.take(order)
    assert np.array_equal(found.y, y[order])
    # Moments summed in float64 against NumPy's in float32.
    np.testing.assert_allclose(found.x, ((x - mean) / std)[order], rtol=1e-5, atol=1e-5)
    raw = ShardsTask(index.parent, standardise=False).splits().test.take(torch.tensor([4, 0]))
    assert np.array_equal(raw.x, together(shards(2, (3, 2)))[0][[4, 0]])


def test_epochs_of_some_steps_go_through_the_data_in_turn(index):
    whole, cut = ShardsTask(index), ShardsTask(index, steps_per_epoch=3)
    passes = [batch.y.tolist() for turn in (0, 1, 2) for batch in whole.loaders(5, 8).train(turn)]
    parts = [batch.y.tolist() for epoch in (0, 1, 2) for batch in cut.loaders(5, 8).train(epoch)]
    assert parts == passes  # three batches of 20 sequences are a pass
    two = ShardsTask(index, steps_per_epoch=2).loaders(5, 8)
    assert [b.y.tolist() for epoch in range(4) for b in two.train(epoch)] == passes[:8]


@pytest.fixture
def parquet(tmp_path):
    """Writes a table and reads it in shards."""
    pa = pytest.importorskip("pyarrow", reason="Parquet is read with pyarrow")
    from pyarrow.parquet import write_table

    def read(columns, y, **how):
        write_table(pa.table({**columns, "y": y}), tmp_path / "a.parquet")
        return parquet_shards(tmp_path / "a.parquet", list(columns), "y", **how)

    return read


def test_values_from_parquet(parquet, tmp_path):
    x, y = together(shards(3, (11,), values=True))
    columns = {"left": list(x[:, :, 0]), "right": list(x[:, :, 1])}
    parts = {name: parquet(columns, y, rows=4) for name in ("train", "test")}
    path = write_shards(tmp_path / "set", parts)
    task = ShardsTask(path, standardise=False)
    assert (task.target, task.metric, task.output_size) == ("value", "rmse", 1)
    assert json.loads(path.read_text())["parts"]["train"]["size"] == 11
    batch = task.splits().train.take(torch.arange(11))
    assert np.array_equal(batch.x.numpy(), x)
    assert np.array_equal(batch.y[:, 0].numpy(), y.astype(np.float32))


ONE, TWO = (np.ones((1, 3, 1)), [0]), np.ones((2, 3, 1))


@pytest.mark.parametrize(
    ("train", "text"),
    [
        ([], "shards of train must be at least one"),
        ([(np.ones((2, 3)), [0, 1])], r"x in shard train-0.*\[n, T, F\]"),
        ([(TWO, [0])], "y in shard train-00000.*of 2 rows"),
        ([(ONE[0], [-1])], "y in shard.*classes from 0; got -1"),
        ([(TWO, [True, False])], "y in shard.*real numbers; got 'bool'; number classes from 0"),
        ([(TWO, TWO)], r"y in shard.*\[n\] or \[n, O\]; got \[2, 3, 1\]"),
        ([(np.ma.masked_equal(TWO, 1), [0, 1])], "x in shard.*must be finite"),
        ([(TWO, np.ma.masked_equal([0, 1], 1))], "y in shard.*must be finite"),
        ([(TWO.astype(str), [0, 1])], "x in shard.*real numbers; got '<U32'"),
        ([ONE, (np.ones((1, 4, 1)), [0])], "shard train-00001 must be as the first one"),
        ([ONE, (ONE[0].astype(np.float16), [0])], "shard train-00001 must be as the first one"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, train, text):
    with pytest.raises(ValueError, match=text):
        write_shards(tmp_path / "set", {"train": train, "test": []})
    with pytest.raises(ValueError, match="parts must be train, test and perhaps valid"):
        write_shards(tmp_path / "set", {"train": train})


def test_every_class_needs_a_name_and_lists_of_parquet_one_length(tmp_path, parquet):
    for names in (["a"], ["a", "a"]):
        with pytest.raises(ValueError, match="class_names must be a name of its own for each of 2"):
            parts = {"train": [(TWO, [0, 1])], "test": [ONE]}
            write_shards(tmp_path / "set", parts, class_names=names)
    for columns in ({"x": [[0.0, 1.0], [2.0]]}, {"x": [0.0, 1.0], "z": [[1, 2]] * 2}):
        with pytest.raises(ValueError, match=r"must hold lists of one length; .*; cut or pad"):
            next(parquet(columns, [0, 1]))


def test_other_or_missing_shards_are_refused(index):
    with pytest.raises(ValueError, match=r"sha256 of .*give the file of the run"):
        ShardsTask(index, sha256="0" * 64)
    with pytest.raises(FileExistsError, match="without shards"):
        write_shards(index.parent, {"train": shards(0), "test": shards(1)})
    (index.parent / "test.y.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"test\.y\.npy"):
        ShardsTask(index).splits()


def changed(index, change):
    """The index after a change, its digests unchanged."""
    content = json.loads(index.read_text())
    change(content)
    index.write_text(json.dumps(content))


@pytest.mark.parametrize("name", ["train.x.npy", "valid.y.npy", "test.x.npy"])
def test_a_damaged_file_is_refused(index, name):
    path = index.parent / name
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ValueError, match=rf"sha256 of .*{name}.*as written; got .*; restore"):
        ShardsTask(index).splits()


@pytest.mark.parametrize("array", [np.zeros((19, 7, 2)), np.zeros((20, 7, 2), complex)])
def test_files_that_do_not_fit_together_are_refused(index, array):
    """Their digests are those of the index."""
    changed(index, lambda content: content.update(class_names=["a", "b"]))
    with pytest.raises(ValueError, match=r"classes in train\.y\.npy must be those of the index"):
        ShardsTask(index).splits()
    np.save(index.parent / "train.x.npy", array)
    digest = file_digest(index.parent / "train.x.npy")
    changed(index, lambda content: content["parts"]["train"].update(x=digest))
    with pytest.raises(ValueError, match=r"train\.x\.npy must be \[20, 7, 2\] of real numbers; g"):
        ShardsTask(index).splits()


@pytest.mark.parametrize(
    "change",
    [
        *["", "{}", "[]", "null", "{", "\0"],
        {"parts": {"train": [{"name": "../outside", "size": 20}], "valid": [], "test": []}},
        {"parts": {"train": {"size": 20, "x": "0", "y": "0"}}},
        *({"parts": new} for new in (3, [], {"train": {}, "valid": {}, "test": {}})),
        *({"mean": new} for new in ([0.0], None, "12")),
        *({"std": [1.0, new]} for new in (-1.0, float("nan"), float("inf"))),
        *({"class_names": new} for new in (5, "abc", ["a", "b", "b"], [1, 2, 3], [])),
        *({"channels": new} for new in ("two", 2.0, 10**18)),
        *({"steps": new} for new in (1e999, "7", 0)),
        {"target": "colour"},
        {"outputs": 0},
    ],
)
def test_a_damaged_index_is_refused(index, change):
    if isinstance(change, str):
        index.write_text(change)
    else:
        changed(index, lambda content: content.update(change))
    with pytest.raises(ValueError, match=r"must be an index of shards; got .*; write it again"):
        ShardsTask(index)


def test_only_files_of_the_folder_are_read(index, tmp_path):
    (index.parent / "train.x.npy").rename(tmp_path / "outside.x.npy")
    changed(index, lambda content: content["parts"]["train"].update(name="../outside"))
    with pytest.raises(FileNotFoundError, match=r"train\.x\.npy"):
        ShardsTask(index).splits()
