"""Sequences from arrays, lists of arrays and frames, and writing them as an archive."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import require
from anharmonic._files import replacing
from anharmonic.data.columns import Columns
from anharmonic.data.sequences import Sequences, in_float32


def sequences_from(
    x: Any,
    y: Any = None,
    *,
    channels_first: bool = False,
    elapsed: Any = None,
    groups: Any = None,
    times: Any = None,
    columns: Columns | None = None,
    targets: bool = True,
) -> Sequences:
    """Make sequences from arrays, lists, frames or data sets in memory.

    Args:
        x: An array `[N, T]` or `[N, T, F]`, a list of N arrays `[T]` or `[T, F]` of unequal
            lengths, or a table: a pandas or polars DataFrame, an Arrow table, a Hugging Face
            Dataset, with a row per sequence or a row per step.
        y: One target per sequence, `[N]` or `[N, O]`, or one per step, `[N, T, O]`; for a list of
            sequences a list of arrays `[T]` or `[T, O]`. For a table it is a column.
        channels_first: Whether x is `[N, F, T]` and its sequences are `[F, T]`, as in aeon.
        elapsed: Time since the previous sample for uneven sampling, as `[N, T]` or a list of arrays
            `[T]`. A table has a time column instead.
        groups: Subject or recording of every sequence `[N]`. For a table it is a column.
        times: Start time of every sequence, `[N]`. For a table it is a column.
        columns: Roles of a table's columns; open roles are inferred from the names.
        targets: Whether a table must have a target column.

    Raises:
        ValueError: If arrays do not fit together, or the roles of columns are ambiguous.
        ImportError: If a table is passed without pyarrow (extra "train").

    Example:
        >>> rng = np.random.default_rng(0)
        >>> part = sequences_from([rng.random((30, 2)), rng.random((20, 2))], ["up", "down"])
        >>> part.lengths.tolist(), part.x.shape
        ([30, 20], (50, 2))
        >>> sequences_from(rng.random((4, 3, 50)), channels_first=True).x.shape
        (200, 3)
    """
    advice = "give one part at a time, as in save_npz(path, {'train': ..., 'test': ...})"
    parts = list(x) if isinstance(x, Mapping) else None
    require(parts is None, "x", parts, "one array, list or table", advice)
    if is_frame(x):
        apart = {"y": y, "elapsed": elapsed, "groups": groups, "times": times}
        came = [name for name, values in apart.items() if values is not None]
        advice = "make them columns, and name those with columns=Columns(target=...)"
        require(not came, "what is given beside a table", came, "none", advice)
        return _from_table(x, columns or Columns(), targets)
    require(columns is None, "columns of arrays", columns, "None", "leave it out, or give a table")
    sequences = _sequences(x, channels_first)
    sizes = [len(sequence) for sequence in sequences]
    offsets = np.cumsum([0, *sizes], dtype=np.int64)
    advice = "give sequences"
    require(bool(sizes), "x", "no sequence", "one sequence or more", advice)
    flat = in_float32(np.concatenate(sequences), "x")
    per_step = False
    if y is not None:
        y, per_step = _targets(y, sizes, isinstance(x, list | tuple))
    if elapsed is not None:
        elapsed = _per_step("elapsed", elapsed, sizes)[:, 0].astype(np.float32)
    groups, times = _known("groups", groups), _known("times", times)
    return Sequences("x", flat, offsets, y, per_step, elapsed=elapsed, groups=groups, times=times)


def is_frame(x: Any) -> bool:
    """Whether x is a table of pandas, polars, Arrow or Hugging Face."""
    return any(hasattr(x, name) for name in ("__arrow_c_stream__", "reset_index", "with_format"))


def is_dated(x: Any) -> bool:
    """Whether x is a pandas frame with dates or periods as its index, so that rows are steps."""
    kind = getattr(getattr(x, "index", None), "dtype", None)
    return getattr(kind, "kind", "") == "M" or str(kind).startswith("period")


def _from_table(x: Any, columns: Columns, targets: bool) -> Sequences:
    from anharmonic.data.tables import frame_table, sequences_of

    dated = is_dated(x) and (columns.forecast or columns.time == "index")
    table = frame_table(x, "the table", dated)
    return sequences_of(table, columns, targets)


def _sequences(x: Any, channels_first: bool) -> list[NDArray[Any]]:
    """Return every sequence as `[T, F]`."""
    if not isinstance(x, list | tuple):
        x = without_mask(x)
        expected, advice = "[N, T] or [N, T, F], or a list of arrays", "reshape it"
        fits = x.ndim in (2, 3) or (x.dtype == object and x.ndim > 0)
        require(fits, "shape of x", list(x.shape), expected, advice)
    made: list[NDArray[Any]] = []
    for number, values in enumerate(x):
        sequence = without_mask(values)
        name = f"sequence {number} of x"
        if sequence.ndim not in (1, 2) or sequence.dtype.kind not in "biuf":
            came = f"{sequence.dtype} {list(sequence.shape)}"
            expected = "an array of numbers, [T] or [T, F]"
            require(False, name, came, expected, "convert or reshape it")
        if sequence.ndim == 1:
            sequence = sequence[:, None]
        elif channels_first:
            sequence = sequence.T
        width, first = sequence.shape[1], made[0].shape[1] if made else sequence.shape[1]
        axes = "channels_first=True is for [F, T]"
        if channels_first:
            axes = "their axes are [F, T], so transpose an array of [T, F]"
        advice = f"give all the same channels; {axes}"
        require(width == first, f"channels of {name}", width, f"{first}, as in the first", advice)
        made.append(sequence)
    return made


def without_mask(values: Any) -> NDArray[Any]:
    """Return an array of numbers with NaN for masked entries.

    Example:
        >>> without_mask(np.ma.array([1, 2], mask=[False, True])).tolist()
        [1.0, nan]
    """
    array: NDArray[Any] = np.asarray(values)
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(values)
        if hidden.any():
            return np.where(hidden, np.nan, array.astype(np.float64))
    return array


def _targets(y: Any, sizes: list[int], listed: bool) -> tuple[NDArray[Any], bool]:
    """Return targets and whether there is one per step, given whether x is a list."""
    if isinstance(y, list | tuple) and any(np.ndim(part) for part in y):
        shapes = [np.shape(part) for part in y]
        alike = listed and shapes == [(size,) for size in sizes]
        unequal = len({shape for shape in shapes if len(shape) == 1}) > 1
        if alike or unequal or any(len(shape) == 2 for shape in shapes):
            return _per_step("y", y, sizes), True
    values = _plain("y", y)
    if values.ndim == 3:
        return _per_step("y", values, sizes), True
    return values, False


def _per_step(name: str, values: Any, sizes: list[int]) -> NDArray[Any]:
    """Return values per step, `[sum of lengths, O]`."""
    parts = [_plain(name, part) for part in values]
    came = [len(part) for part in parts]
    advice = "give one entry for every step of x"
    require(came == sizes, f"steps of {name}", came[:5], f"{sizes[:5]}, as x", advice)
    flat: NDArray[Any] = np.concatenate(
        [part[:, None] if part.ndim == 1 else part for part in parts]
    )
    return flat


def _plain(name: str, values: Any) -> NDArray[Any]:
    """Return an array of numbers, text or dates; text objects become text."""
    hidden = isinstance(values, np.ma.MaskedArray) and bool(values.mask.any())
    advice = "leave out these sequences"
    require(not hidden, f"masked entries of {name}", "some", "none", advice)
    array: NDArray[Any] = np.asarray(values)
    if array.dtype == object and all(isinstance(value, str) for value in array.flat):
        array = array.astype(np.str_)
    fits = array.ndim > 0 and array.dtype.kind in "biufUSM"
    came = f"{array.dtype} {list(array.shape)}"
    require(fits, name, came, "an array of numbers or text", "convert it, e.g. with .astype(str)")
    return array


def _known(name: str, values: Any) -> NDArray[Any] | None:
    if values is None:
        return None
    array = _plain(name, values)
    unknown = array.dtype.kind in "fM" and bool(np.isnan(array).any())
    require(not unknown, name, "NaN", "known everywhere", "fill or remove it")
    return array


def save_npz(path: Path | str, data: Sequences | Mapping[str, Sequences]) -> Path:
    """Write sequences as an archive for `anharmonic train MODEL FILE.npz`.

    Args:
        path: The file, ending in .npz; an existing file is replaced.
        data: Sequences, or your own split of them: "train", "test" and optionally "valid".

    Returns:
        The path.

    Raises:
        ValueError: If the path or the names of the parts are invalid.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> x = np.random.default_rng(0).random((20, 50))
        >>> save_npz(Path(folder) / "mine.npz", sequences_from(x, x.mean(1) > 0.5)).name
        'mine.npz'
    """
    path = Path(path).expanduser()
    advice = "name it so"
    require(path.suffix.lower() == ".npz", "path", str(path), "a name that ends in .npz", advice)
    parts = {"all": data} if isinstance(data, Sequences) else dict(data)
    own = {"train", "test"} <= set(parts) <= {"train", "valid", "test"}
    advice = "name the parts so, or give sequences alone to have them cut"
    fits = own or set(parts) == {"all"}
    require(fits, "parts", list(parts), "train, test and perhaps valid", advice)
    channels = {part.channels for part in parts.values()}
    advice = "give the same channels in the same order"
    require(len(channels) == 1, "channels of the parts", sorted(channels), "alike", advice)
    arrays: dict[str, NDArray[Any]] = {}
    for name, part in parts.items():
        end = "" if name == "all" else f"_{name}"
        values = {
            "x": part.x,
            "y": _with_gaps(part),
            "offsets": part.offsets,
            "elapsed": part.elapsed,
            "groups": part.groups,
            "times": part.times,
            "interval": None if part.interval is None else np.array(part.interval),
        }
        arrays |= {f"{key}{end}": value for key, value in values.items() if value is not None}
    (named,) = channels
    if named:
        arrays["channels"] = np.array(named)
    objects = [key for key, value in arrays.items() if value.dtype.hasobject]
    require(not objects, "arrays of objects", objects, "none", "convert them to numbers or text")
    with replacing(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # no array is named allow_pickle
    return path


def _with_gaps(part: Sequences) -> NDArray[Any] | None:
    """Return the targets with NaN or empty text for unknown ones; classes then become text."""
    if part.y is None or part.known is None:
        return part.y
    y, known = part.y, part.known.reshape(-1, *[1] * (part.y.ndim - 1))
    return np.where(known, y, np.nan) if y.dtype.kind == "f" else np.where(known, y.astype(str), "")
