"""Data larger than memory: sequences in shards on disk, mapped into memory where they are read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anharmonic._checks import boolean, message, positive_int, require
from anharmonic.data.base import Batch, Batches, Splits, Task
from anharmonic.data.dataset import Dataset, as_target
from anharmonic.data.npz import existing
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.data.readers import checked_digest

INDEX = "shards.json"
"""Name of the file that says what is in the shards beside it."""
_PARTS = ("train", "valid", "test")
# Rows that are looked at or summed at a time.
_ROWS = 4096
Pair = tuple[NDArray[Any], NDArray[Any]]


def write_shards(
    folder: str | Path,
    parts: Mapping[str, Iterable[Pair]],
    class_names: Iterable[str] = (),
) -> Path:
    """Writes sequences of one length as shards, one at a time: only one is ever in memory.

    Args:
        folder: Where to; it is made, and must hold no shards yet.
        parts: "train", "test" and perhaps "valid", each an iterable of shards: inputs, real numbers
            `[n, T, F]`, kept in their dtype (float64 as float32), and targets, whole numbers
            `[n]` (classes from 0) or numbers with a point `[n]` or `[n, O]` (values).
        class_names: Names of the classes; empty for their numbers.

    Returns:
        The path of the index, which `anharmonic train MODEL PATH` takes.

    Raises:
        ValueError: If a part is missing or empty, shards do not fit together, or inputs or targets
            are not finite.
        FileExistsError: If the folder holds shards.

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
    require(
        not (folder / INDEX).exists(), "folder", folder, "without shards", advice, FileExistsError
    )
    known = {"train", "test"} <= set(parts) <= set(_PARTS)
    advice = "give training and test shards"
    require(known, "parts", sorted(parts), "train, test and perhaps valid", advice)
    folder.mkdir(parents=True, exist_ok=True)
    index: dict[str, Any] = {"parts": {}}
    sums = _Sums()
    for part in _PARTS:
        listed = index["parts"][part] = []
        for number, (x, y) in enumerate(parts.get(part, ())):
            name = f"{part}-{number:05d}"
            x, y = _checked(f"shard {name}", np.asarray(x), np.asarray(y), index)
            if part == "train":
                sums.add(x)
            files = {"x": _saved(folder / f"{name}.x.npy", x)}
            files["y"] = _saved(folder / f"{name}.y.npy", y)
            listed.append({"name": name, "size": len(x), "sha256": files})
        wanted = bool(listed) or part == "valid"
        require(wanted, f"shards of {part}", 0, "at least one", "give it one")
    index |= sums.moments()
    names = [str(name) for name in class_names]
    if index["target"] == "class":
        names = names or [str(number) for number in range(index.pop("largest") + 1)]
    index["class_names"] = names
    path = folder / INDEX
    path.write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    return path


def _checked(where: str, x: NDArray[Any], y: NDArray[Any], index: dict[str, Any]) -> Pair:
    """The arrays as they are written; the index learns their form from the first."""
    x = x.astype(np.float32) if x.dtype == np.float64 else x
    form = f"x in {where}"
    require(x.ndim == 3 and x.size > 0, form, list(x.shape), "[n, T, F]", "give it three axes")
    whole = np.issubdtype(y.dtype, np.integer)
    y = y if whole else y.astype(np.float32).reshape(len(y), -1)
    found = {
        "steps": x.shape[1],
        "channels": x.shape[2],
        "target": "class" if whole else "value",
        "outputs": 1 if whole else y.shape[1],
    }
    first = {name: index.setdefault(name, value) for name, value in found.items()}
    require(found == first, where, found, f"as the first one, {first}", "write them alike")
    fits = len(x) == len(y) and (not whole or y.ndim == 1)
    advice = "give one target per sequence"
    require(fits, f"y in {where}", list(y.shape), f"of {len(x)} rows", advice)
    if whole:
        require(y.min() >= 0, f"y in {where}", int(y.min()), "classes from 0", "number them so")
        index["largest"] = max(index.get("largest", 0), int(y.max()))
    for name, values in (("x", x), ("y", y)):
        finite = all(
            np.isfinite(part).all() for part in np.split(values, range(_ROWS, len(x), _ROWS))
        )
        advice = "fill what is missing before"
        require(finite, f"{name} in {where}", "NaN or infinite", "finite", advice)
    return x, y


def _saved(path: Path, array: NDArray[Any]) -> str:
    array = np.ascontiguousarray(array)
    np.save(path, array)
    return hashlib.sha256(array.data).hexdigest()


class _Sums:
    """Moments of the channels, shard by shard."""

    def __init__(self) -> None:
        self._count = 0
        self._sum: Any = 0.0
        self._squares: Any = 0.0

    def add(self, x: NDArray[Any]) -> None:
        for start in range(0, len(x), _ROWS):
            rows = x[start : start + _ROWS].reshape(-1, x.shape[2]).astype(np.float64)
            self._count += len(rows)
            self._sum = self._sum + rows.sum(0)
            self._squares = self._squares + (rows**2).sum(0)

    def moments(self) -> dict[str, list[float]]:
        mean = self._sum / self._count
        std = np.sqrt(np.maximum(self._squares / self._count - mean**2, 0.0))
        return {"mean": mean.tolist(), "std": np.where(std > 0, std, 1.0).tolist()}


class ShardDataset(Dataset[Batch]):
    """Sequences in memory-mapped shards: a batch reads its own rows only.

    Args:
        folder: Where the shards are.
        shards: Name and size of every shard, as in the index.
        mean: Is taken from every channel.
        std: Divides every channel.
    """

    lengths = None

    def __init__(
        self, folder: Path, shards: list[dict[str, Any]], mean: list[float], std: list[float]
    ) -> None:
        self._x, self._y = (
            [self._mapped(folder / f"{shard['name']}.{key}.npy", shard) for shard in shards]
            for key in ("x", "y")
        )
        self._starts = np.concatenate([[0], np.cumsum([shard["size"] for shard in shards])])
        self._mean, self._std = torch.tensor(mean), torch.tensor(std)

    @staticmethod
    def _mapped(path: Path, shard: dict[str, Any]) -> NDArray[Any]:
        array: NDArray[Any] = np.load(existing(path), mmap_mode="r")
        advice = "write the shards again"
        require(len(array) == shard["size"], path.name, len(array), f"{shard['size']} rows", advice)
        return array

    def __len__(self) -> int:
        return int(self._starts[-1])

    def take(self, indices: Tensor) -> Batch:
        """Makes one batch of the sequences `indices`."""
        rows = indices.numpy()
        owners = np.searchsorted(self._starts, rows, side="right") - 1
        x = np.empty((len(rows), *self._x[0].shape[1:]), np.float32)
        y = np.empty((len(rows), *self._y[0].shape[1:]), self._y[0].dtype)
        for owner in np.unique(owners):
            places = np.flatnonzero(owners == owner)
            inside = rows[places] - self._starts[owner]
            x[places], y[places] = self._x[owner][inside], self._y[owner][inside]
        prepared = torch.from_numpy(x).sub_(self._mean).div_(self._std)
        return Batch(prepared, as_target(torch.from_numpy(y)), None)


class ShardsTask(Task):
    """Your own sequences, of one length, in shards that need not fit into memory.

    The metric is accuracy in percent for classes, root mean squared error for values.

    Args:
        path: The index that `write_shards` wrote, or its folder.
        sha256: `file_digest` of the index, which holds the digests of the shards; another one is
            refused. Not checked if None.
        standardise: Whether every input channel gets mean 0 and standard deviation 1, measured on
            the training data.
        steps_per_epoch: Batches of an epoch: after so many it is validated, and saved to go on
            from. One epoch begins where the one before stopped. None for a pass over all data.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the index is damaged, or not that of the run.
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
        self.path = existing(path / INDEX if path.is_dir() else path)
        self.digest = checked_digest(self.path, sha256)
        self.source = str(self.path.parent)
        self._steps_per_epoch = steps_per_epoch
        try:
            index = json.loads(self.path.read_text(encoding="utf-8"))
            self._shards: dict[str, list[dict[str, Any]]] = index["parts"]
            sizes = {part: sum(s["size"] for s in self._shards[part]) for part in _PARTS}
            self.sizes, self.target = sizes, index["target"]
            self.class_names = tuple(index["class_names"])
            self.input_size, outputs = index["channels"], index["outputs"]
            moments = tuple(index["mean"]), tuple(index["std"])
        except (ValueError, KeyError, TypeError) as error:
            text = message(f"{self.path} must be an index of shards", str(error), "write it again")
            raise ValueError(text) from error
        self.output_size = len(self.class_names) if self.target == "class" else outputs
        self.metric = "accuracy" if self.target == "class" else "rmse"
        self.preprocessing = Preprocessing(*moments, standardise=standardise, missing="error")

    def _build(self) -> Splits[ShardDataset]:
        prepared, zeros = self.preprocessing, [0.0] * self.input_size
        mean = list(prepared.mean) if prepared.standardise else zeros
        std = list(prepared.std) if prepared.standardise else [1.0] * self.input_size
        made = {
            part: ShardDataset(self.path.parent, shards, mean, std)
            for part, shards in self._shards.items()
            if shards
        }
        return Splits(made["train"], made.get("valid"), made["test"])

    def _extent(self, parts: str) -> list[str]:
        steps = self.splits().test.take(torch.tensor([0])).x.shape[1]
        shards = sum(map(len, self._shards.values()))
        return [
            f"{sum(self.sizes.values())} sequences in {shards} shards ({parts})",
            f"{steps} steps",
        ]

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
    """Reads a Parquet file so many rows at a time, as `write_shards` takes them.

    Args:
        path: The file.
        inputs: The columns of the channels, each a list of T numbers per row (or one number: T is
            then 1).
        target: The column of the target, or of a list of targets per row.
        rows: Rows of a shard.

    Raises:
        ImportError: If pyarrow is missing (extra "train").
    """
    import pyarrow.parquet

    names = list(inputs)
    file = pyarrow.parquet.ParquetFile(existing(path))
    for batch in file.iter_batches(rows, columns=[*names, target]):
        channels = [np.stack(_rows(batch.column(name))) for name in names]
        yield (
            np.stack(channels, axis=-1).reshape(len(batch), -1, len(names)),
            np.stack(_rows(batch.column(target))),
        )


def _rows(column: Any) -> Any:
    return column.to_numpy(zero_copy_only=False)
