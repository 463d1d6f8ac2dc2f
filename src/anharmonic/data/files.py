"""The user's own data: `.npz` archives and `.ts` files."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import boolean, choice, listed, message, natural, require
from anharmonic.data.base import Readout, SequenceDataset, Splits, Task, seeded_rng
from anharmonic.data.npz import existing, read_npz
from anharmonic.data.readers import file_digest, read_parts
from anharmonic.data.sequences import Preprocessing, Sequences, check_finite
from anharmonic.data.splits import split_indices
from anharmonic.data.targets import encode_classes, float_targets, output_width, target_kind
from anharmonic.data.ts import read_ts

__all__ = ["FileTask", "file_digest", "read_inputs", "read_npz", "read_parts", "read_ts"]


class FileTask(Task):
    """Your own sequences, from an `.npz` archive or a `.ts` file: classes or numbers to predict.

    Whole numbers and strings as targets are classes; numbers with a point are values. The metric
    is accuracy in percent for classes, root mean squared error in units of `y` for values.

    Args:
        path: An `.npz` archive (keys as in `read_npz`) or a `.ts` file (as in `read_ts`). Given
            `NAME_TRAIN.ts` or `NAME_TEST.ts`, the other one is read too.
        sha256: `file_digest(path)`: another file is refused. Not checked if None.
        target: "class" or "value" to decide what `y` means; "auto" by its type.
        standardise: Whether every input channel gets mean 0 and standard deviation 1, measured on
            the training data. Targets stay as they are: bring values to the size of about 1
            yourself.
        missing: "error" refuses NaN in the inputs; "mean" puts the channel's training mean there.
        split_seed: Decides the split, in `[0, 2**32)`.

    Shape:
        x `[B, T, F]` zero-padded to the longest of the batch, y `[B]`, `[B, O]` or `[B, T, O]`,
        lengths `[B]` where sequences differ in length.

    Split: the file's own where it has one (validation, if it has none, is 15 % of the training
    part), else 70 % training, 15 % validation, 15 % test; every class in its share.

    A class with fewer sequences than there are parts to cut is warned of: it cannot be in all.

    Attributes:
        preprocessing: What was done to the inputs; `read_inputs` does the same to new data.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the file is damaged, its content does not fit together, or it is not the
            file of `sha256`. The messages say what and where.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "mine.npz"
        >>> x = np.random.default_rng(0).random((20, 50))
        >>> np.savez(path, x=x, y=np.where(x.mean(1) > x.mean(), "high", "low"))
        >>> task = FileTask(path)
        >>> task.sizes, task.class_names, task.input_size
        ({'train': 14, 'valid': 3, 'test': 3}, ('high', 'low'), 1)
    """

    name = "file"
    licence = "yours"

    def __init__(
        self,
        path: Path | str,
        sha256: str | None = None,
        target: Literal["auto", "class", "value"] = "auto",
        standardise: bool = True,
        missing: Literal["error", "mean"] = "error",
        split_seed: int = 1234,
    ) -> None:
        choice("target", target, ("auto", "class", "value"))
        boolean("standardise", standardise)
        choice("missing", missing, ("error", "mean"))
        natural("split_seed", split_seed)
        self.path = existing(path)
        self.source = self.path.name
        if sha256 is not None:
            digest = file_digest(self.path)
            advice = "give the file of the run, or start a new run with this one"
            require(digest == sha256, f"sha256 of {self.path.name}", digest, sha256, advice)
        parts = read_parts(self.path)
        meant = {target_kind(part, target) for part in parts.values()}
        name = self.path.name
        came = {
            key: f"{y.dtype} {list(y.shape)}"
            for key, part in parts.items()
            if (y := part.y) is not None
        }
        fits = len(meant) == len({part.per_step for part in parts.values()}) == 1
        require(fits, f"y in {name}", came, "of one kind in all parts", "store it alike")
        (self.target,) = meant
        for part in parts.values():
            check_finite(
                part, part.x, missing == "mean"
            )  # before the cut: it names the file's places
        self.readout = "all" if parts["train" if "train" in parts else "all"].per_step else "last"
        self.metric = "accuracy" if self.target == "class" else "rmse"
        codes: Mapping[str, NDArray[Any]]
        if self.target == "class":
            self.class_names, codes = encode_classes(parts, self.path.name)
            self.output_size = len(self.class_names)
        else:
            codes = {name: float_targets(part) for name, part in parts.items()}
            self.output_size = output_width(codes, self.path.name)
            if target == "auto":
                self.hint = _maybe_classes(list(codes.values()), self.path.name, self.readout)
        numbered = {name: replace(part, y=codes[name]) for name, part in parts.items()}
        cuts = _cut(numbered, self.class_names, seeded_rng("file split", split_seed))
        self.sizes = {name: len(part) for name, part in cuts.items()}
        self.input_size = cuts["train"].x.shape[1]
        self.preprocessing = Preprocessing.fit(cuts["train"], standardise, missing)
        self._splits = Splits(
            *(part.dataset(self.preprocessing.transform(part)) for part in cuts.values())
        )

    def _build(self) -> Splits[SequenceDataset]:
        raise NotImplementedError("the data were read when the task was made")


def read_inputs(path: Path | str, preprocessing: Preprocessing) -> SequenceDataset:
    """Reads only the inputs of a file, to predict from them; `y` may be there or not.

    Args:
        path: An `.npz` archive with `x`, or one `.ts` file (no partner is looked for).
        preprocessing: Of the training data: `FileTask(...).preprocessing`.

    Returns:
        The sequences in their order; `y` has no columns.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is damaged, or its channels are not those of training.
    """
    parts = read_parts(path, targets=False)
    keys = [f"x_{name}" for name in parts]
    advice = "store the sequences to predict from as x"
    require("all" in parts, f"keys of {Path(path).name}", keys, "x", advice)
    bare = replace(parts["all"], y=None, per_step=False)
    return bare.dataset(preprocessing.transform(bare))


def _cut(
    parts: Mapping[str, Sequences], class_names: tuple[str, ...], rng: np.random.Generator
) -> dict[str, Sequences]:
    """Training, validation and test sequences, cut where the file is not."""
    made = dict(parts)
    if "all" in made:
        made = _divide(made["all"], ("train", "valid", "test"), class_names, rng)
    elif "valid" not in made:
        made |= _divide(made["train"], ("train", "valid"), class_names, rng)
    return {name: made[name] for name in ("train", "valid", "test")}


def _divide(
    part: Sequences,
    names: tuple[str, ...],
    class_names: tuple[str, ...],
    rng: np.random.Generator,
) -> dict[str, Sequences]:
    """Cuts sequences into a training part and further parts of 15 % each."""
    expected = f"at least {len(names)}, to be cut into {', '.join(names)}"
    advice = "add sequences, or store x_train, x_valid and x_test"
    require(len(part) >= len(names), f"sequences in {part.where}", len(part), expected, advice)
    if class_names:
        _warn_of_rare_classes(part, names, class_names)
    size = max(1, round(0.15 * len(part)))
    sizes = [len(part) - size * (len(names) - 1), *[size] * (len(names) - 1)]
    chosen = split_indices(len(part), sizes, rng, part.y if class_names else None)
    return {name: part.select(rows) for name, rows in zip(names, chosen, strict=True)}


def _maybe_classes(y: list[NDArray[np.float32]], where: str, readout: Readout) -> str:
    """The hint for numbers with a point that look like classes; empty where they do not."""
    if readout == "all" or y[0].shape[1] != 1:
        return ""
    numbers = np.concatenate(y)[:, 0]
    distinct = np.unique(numbers)
    if not 2 <= len(distinct) <= min(20, len(numbers) // 2) or (distinct % 1 != 0).any():
        return ""
    return (
        f"y in {where} is taken as values, but holds only {len(distinct)} distinct whole numbers; "
        "target=class makes them classes."
    )


def _warn_of_rare_classes(
    part: Sequences, names: tuple[str, ...], class_names: tuple[str, ...]
) -> None:
    """Names the classes that have fewer sequences than there are parts."""
    counts = np.bincount(np.asarray(part.y), minlength=len(class_names))
    rare = np.flatnonzero(counts < len(names))
    if not len(rare):
        return
    lacking = [f"{counts[i]} of class {class_names[i]!r}" for i in rare[:5]]
    if len(rare) > 5:
        lacking.append(f"few of {len(rare) - 5} more classes")
    warnings.warn(
        message(
            f"every class in {part.where} must have at least {len(names)} sequences to be in "
            + listed(names),
            ", ".join(lacking),
            "add sequences of these classes, or the accuracy says little of them",
        ),
        stacklevel=2,
    )
