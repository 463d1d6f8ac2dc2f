"""Data larger than memory: sequences in memory-mapped `.npy` files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anharmonic._checks import (
    boolean,
    json_of,
    message,
    of_hints,
    positive_int,
    require,
    text_of,
)
from anharmonic._files import existing
from anharmonic.data.arrays import without_mask
from anharmonic.data.base import Batch, Batches, Splits, Task
from anharmonic.data.dataset import Dataset, as_target
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.data.readers import checked_digest, file_digest
from anharmonic.data.registry import SHARDS_INDEX

_PARTS = ("train", "valid", "test")
# Number of rows to check or sum at a time.
_ROWS = 4096
Pair = tuple[NDArray[Any], NDArray[Any]]


def write_shards(
    folder: str | Path,
    parts: Mapping[str, Iterable[Pair]],
    class_names: Iterable[str] = (),
) -> Path:
    """Write sequences of equal length shard by shard, with only one shard in memory.

    Args:
        folder: Target folder; created if missing, must not contain shards yet.
        parts: "train", "test" and optionally "valid", each an iterable of shards. A shard has
            inputs, real numbers `[n, T, F]`, stored in their dtype (float64 as float32). Its
            targets are integers `[n]` (classes from 0) or decimal numbers `[n]` or `[n, O]`
            (values).
        class_names: Names of the classes; empty for numbers.

    Returns:
        The path of the index, which `anharmonic train MODEL PATH` takes.

    Raises:
        ValueError: If a part is missing or empty, shards do not fit together, or inputs or targets
            are not finite.
        FileExistsError: If the folder contains shards.

    Example:
        >>> import tempfile
        >>> rng = np.random.default_rng(0)
        >>> def shards(count):
        ...     for _ in range(count):
        ...         x = rng.random((8, 20, 1), np.float32)
        ...         yield x, (x.mean((1, 2)) > 0.5).astype(int)
        >>> path = write_shards(tempfile.mkdtemp(), {"train": shards(3), "test": shards(1)})
        >>> task = ShardsTask(path)
        >>> task.sizes, task.output_size
        ({'train': 24, 'valid': 0, 'test': 8}, 2)
    """
    folder = Path(folder)
    advice = "take another folder, or remove it"
    is_new = not (folder / SHARDS_INDEX).exists()
    require(is_new, "folder", folder, "without shards", advice, FileExistsError)
    known = {"train", "test"} <= set(parts) <= set(_PARTS)
    advice = "give training and test shards"
    require(known, "parts", sorted(parts), "train, test and perhaps valid", advice)
    folder.mkdir(parents=True, exist_ok=True)
    form: dict[str, Any] = {}
    index: dict[str, Any] = {"parts": {}}
    largest = 0
    for part in _PARTS:
        paths, size = {key: folder / f"{part}.{key}.npy" for key in "xy"}, 0
        with paths["x"].open("wb") as x_file, paths["y"].open("wb") as y_file:
            for number, (x, y) in enumerate(parts.get(part, ())):
                where = f"shard {part}-{number:05d}"
                x, y = _checked(where, without_mask(x), without_mask(y), form)
                size += len(x)
                _append(x_file, x, size)
                _append(y_file, y, size)
                largest = max(largest, int(y.max())) if form["target"] == "class" else 0
        require(size > 0 or part == "valid", f"shards of {part}", 0, "at least one", "give it one")
        digests = {key: file_digest(path) for key, path in paths.items()}
        index["parts"][part] = {"size": size, **digests}
    names = [str(name) for name in class_names]
    if form["target"] == "class":
        names = names or [str(number) for number in range(largest + 1)]
        fits = largest < len(names) == len(set(names))
        expected, advice = f"a name of its own for each of {largest + 1} classes", "name them all"
        require(fits, "class_names", names, expected, advice)
    moments = _moments(np.load(folder / "train.x.npy", mmap_mode="r"))
    index |= form | {"class_names": names} | moments
    path = folder / SHARDS_INDEX
    path.write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    return path


def _checked(where: str, x: NDArray[Any], y: NDArray[Any], form: dict[str, Any]) -> Pair:
    """Return the arrays to write; the first ones define the form of all others."""
    for name, values, advice in (
        ("x", x, "convert it"),
        ("y", y, "number classes from 0, as in y.astype(int)"),
    ):
        kind = str(values.dtype)
        require(values.dtype.kind in "iuf", f"{name} in {where}", kind, "real numbers", advice)
    advice = "give one target, or a row of them, per sequence"
    require(y.ndim in (1, 2), f"y in {where}", list(y.shape), "[n] or [n, O]", advice)
    x = x.astype(np.float32) if x.dtype == np.float64 else x
    advice = "give it three axes"
    require(x.ndim == 3 and x.size > 0, f"x in {where}", list(x.shape), "[n, T, F]", advice)
    whole = np.issubdtype(y.dtype, np.integer)
    y = y.astype(np.int64) if whole else y.astype(np.float32).reshape(len(y), -1)
    found = {
        "dtype": x.dtype.str,
        "steps": x.shape[1],
        "channels": x.shape[2],
        "target": "class" if whole else "value",
        "outputs": 1 if whole else y.shape[1],
    }
    first = {name: form.setdefault(name, value) for name, value in found.items()}
    require(found == first, where, found, f"as the first one, {first}", "write them alike")
    fits = len(x) == len(y) and (not whole or y.ndim == 1)
    advice = "give one target per sequence"
    require(fits, f"y in {where}", list(y.shape), f"of {len(x)} rows", advice)
    if whole:
        require(y.min() >= 0, f"y in {where}", int(y.min()), "classes from 0", "number them so")
    for name, values in (("x", x), ("y", y)):
        finite = all(np.isfinite(values[i : i + _ROWS]).all() for i in range(0, len(x), _ROWS))
        advice = "fill what is missing before"
        require(finite, f"{name} in {where}", "NaN or infinite", "finite", advice)
    return x, y


def _append(file: BinaryIO, array: NDArray[Any], rows: int) -> None:
    """Append rows to a `.npy` file; NumPy's header has room for the final number of rows."""
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": (rows, *array.shape[1:])}
    file.seek(0)
    np.lib.format.write_array_header_1_0(file, header)
    file.seek(0, 2)
    file.write(np.ascontiguousarray(array).data)


def _moments(x: NDArray[Any]) -> dict[str, list[float]]:
    """Return mean and deviation of the channels, computed in groups of rows."""
    sums = np.zeros((2, x.shape[2]))
    for start in range(0, len(x), _ROWS):
        rows = x[start : start + _ROWS].astype(np.float64)
        sums += [rows.sum((0, 1)), (rows**2).sum((0, 1))]
    mean, square = sums / (x.shape[0] * x.shape[1])
    std = np.sqrt(np.maximum(square - mean**2, 0.0))
    return {"mean": mean.tolist(), "std": np.where(std > 0, std, 1.0).tolist()}


class ShardDataset(Dataset[Batch]):
    """Sequences `[N, T, F]` in memory-mapped files; a batch reads and scales only its own rows."""

    lengths = None

    def __init__(self, x: NDArray[Any], y: NDArray[Any], how: Preprocessing) -> None:
        self._x, self._y, self._scaled = x, y, how.standardise
        self._mean, self._std = torch.tensor(how.mean), torch.tensor(how.std)

    def __len__(self) -> int:
        return len(self._x)

    def take(self, indices: Tensor) -> Batch:
        """Make one batch of the sequences `indices`."""
        rows = indices.numpy()
        x = torch.from_numpy(np.asarray(self._x[rows], np.float32))
        y = torch.from_numpy(np.asarray(self._y[rows]))
        if self._scaled:
            x = x.sub_(self._mean).div_(self._std)
        return Batch(x, as_target(y), None)


class _Index:
    """The contents of the index from `write_shards`."""

    parts: dict[str, dict[str, Any]]
    steps: int
    channels: int
    target: Literal["class", "value"]
    outputs: int
    class_names: list[str]
    mean: list[float]
    std: list[float]


class _Part:
    """The index entry of a part."""

    size: int
    x: str
    y: str


class ShardsTask(Task):
    """Your own sequences of equal length in `.npy` files that need not fit into memory.

    The metric is accuracy in percent for classes and root mean squared error for values. The first
    use reads all data once to compare digests with the index.

    Args:
        path: The index from `write_shards`, or its folder.
        sha256: Expected `file_digest` of the index, which holds the digests of the files; another
            index is refused. None for no check.
        standardise: Whether to scale every input channel to mean 0 and standard deviation 1 over
            the training data.
        steps_per_epoch: Batches per epoch, after which the model is validated and the state saved.
            An epoch begins where the previous one stopped. None for a pass over all data.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the index or a file is damaged, or the index differs from the run's.

    Example:
        >>> import tempfile
        >>> rows = [(np.zeros((2, 5, 2), "f4"), np.array([0, 1]))]
        >>> index = write_shards(tempfile.mkdtemp(), {"train": rows, "test": rows})
        >>> ShardsTask(index).input_size
        2
    """

    name = "shards"
    licence = "yours"
    readout = "last"

    def __init__(
        self,
        path: str | Path,
        sha256: str | None = None,
        standardise: bool = True,
        steps_per_epoch: int | None = None,
    ) -> None:
        boolean("standardise", standardise)
        if steps_per_epoch is not None:
            positive_int("steps_per_epoch", steps_per_epoch)
        path = Path(path)
        self.path = existing(path / SHARDS_INDEX if path.is_dir() else path)
        self.digest = checked_digest(self.path, sha256)
        self.source = str(self.path.parent)
        self._steps_per_epoch = steps_per_epoch
        try:
            index = json_of(text_of(self.path))
            of_hints(_Index, index, str(self.path), "restore it")
            self._parts = {part: index["parts"][part] for part in _PARTS}
            for found in self._parts.values():
                of_hints(_Part, found, str(self.path), "restore it")
            self.sizes = {part: found["size"] for part, found in self._parts.items()}
            self._steps, self.input_size = index["steps"], index["channels"]
            self.target, outputs = index["target"], index["outputs"]
            self.class_names = tuple(index["class_names"])
            mean, std = tuple(index["mean"]), tuple(index["std"])
            fits = (
                min(self.sizes["train"], self.sizes["test"], self._steps, outputs) > 0
                and self.sizes["valid"] >= 0
                and len(mean) == len(std) == self.input_size > 0
                and min(std) > 0
                and len(set(self.class_names)) == len(self.class_names)
                and (self.target == "value" or len(self.class_names) > 0)
            )
            require(fits, "its content", "other values", "as `write_shards` wrote it", "restore it")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            text = message(f"{self.path} must be an index of shards", repr(error), "write it again")
            raise ValueError(text) from error
        self.preprocessing = Preprocessing(mean, std, standardise=standardise, missing="error")
        self.output_size = len(self.class_names) if self.target == "class" else outputs
        self.metric = "accuracy" if self.target == "class" else "rmse"

    def _build(self) -> Splits[ShardDataset]:
        made = {part: self._dataset(part) for part in _PARTS if self.sizes[part]}
        return Splits(made["train"], made.get("valid"), made["test"])

    def _dataset(self, part: str) -> ShardDataset:
        size, advice = self.sizes[part], "restore the file, or write all shards again"
        targets = (size,) if self.target == "class" else (size, self.output_size)
        arrays = []
        for key, shape in ("x", (size, self._steps, self.input_size)), ("y", targets):
            path = existing(self.path.parent / f"{part}.{key}.npy")
            digest, written = file_digest(path), self._parts[part][key]
            expected = f"{written}, as written"
            require(digest == written, f"sha256 of {path}", digest, expected, advice)
            array = np.load(path, mmap_mode="r")
            fits = array.shape == shape and array.dtype.kind in "iuf"
            came = f"{list(array.shape)}, {array.dtype}"
            require(fits, f"{path}", came, f"{list(shape)} of real numbers", advice)
            arrays.append(array)
        x, y = arrays
        fits = self.target == "value" or (
            y.dtype.kind in "iu" and 0 <= y.min() <= y.max() < self.output_size
        )
        require(fits, f"classes in {part}.y.npy", "others", "those of the index", advice)
        return ShardDataset(x, y, self.preprocessing)

    def _extent(self, parts: str) -> list[str]:
        return [f"{sum(self.sizes.values())} sequences ({parts})", f"{self._steps} steps"]

    def _train_batches(self, seed: int, epoch: int, batch_size: int) -> Batches[Batch]:
        if self._steps_per_epoch is None:
            return super()._train_batches(seed, epoch, batch_size)
        steps = self._steps_per_epoch
        whole = -(-self.sizes["train"] // batch_size)
        passes: dict[int, Batches[Batch]] = {}

        def make(number: int) -> Batch:
            turn, place = divmod(epoch * steps + number, whole)
            if turn not in passes:
                passes.clear()
                passes[turn] = super(ShardsTask, self)._train_batches(seed, turn, batch_size)
            return passes[turn][place]

        return Batches(steps, make)


def parquet_shards(
    path: str | Path, inputs: Iterable[str], target: str, rows: int = 65_536
) -> Iterator[Pair]:
    """Read a Parquet file in groups of rows, for `write_shards`.

    Args:
        path: The file.
        inputs: The columns of the channels, each with a list of T numbers per row (or one number
            for T = 1).
        target: The column of the target, or of lists of targets.
        rows: Number of rows per shard.

    Raises:
        ImportError: If pyarrow is missing (extra "train").

    Example:
        >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
        >>> path = Path(tempfile.mkdtemp()) / "a.parquet"
        >>> pq.write_table(pa.table({"x": [[0.0, 1.0], [2.0, 3.0]], "label": ["a", "b"]}), path)
        >>> [x.shape for x, _ in parquet_shards(path, ["x"], "label")]
        [(2, 2, 1)]
    """
    import pyarrow.parquet

    names = list(inputs)
    require(len(names) > 0, "inputs", names, "at least one column", "name the channels")
    file = pyarrow.parquet.ParquetFile(existing(path))
    for batch in file.iter_batches(rows, columns=[*names, target]):
        *channels, y = (_rows(batch, name) for name in (*names, target))
        try:
            x = np.stack(channels, axis=-1)
        except ValueError as error:
            raise _unequal("inputs", names) from error
        yield x.reshape(len(batch), -1, len(names)), y


def _rows(batch: Any, name: str) -> NDArray[Any]:
    try:
        return np.stack(batch.column(name).to_numpy(zero_copy_only=False))
    except ValueError as error:
        raise _unequal(f"column {name}", "others") from error


def _unequal(name: str, received: object) -> ValueError:
    advice = "cut or pad the sequences"
    return ValueError(message(f"{name} must hold lists of one length", f"{received}", advice))
