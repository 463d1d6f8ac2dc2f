"""The user's own sequences, as a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import boolean, choice, require
from anharmonic.data.base import Readout, SequenceDataset, Splits, Task, counted
from anharmonic.data.forecast import Windows
from anharmonic.data.parts import Cut, SplitBy, cut_parts, warn_of_absent_classes
from anharmonic.data.preprocessing import Elapsed, Missing, Preprocessing, spread_of_sizes
from anharmonic.data.sequences import Integers, Sequences, check_finite
from anharmonic.data.targets import (
    classes_by_step,
    encode_classes,
    float_targets,
    output_width,
    target_kind,
)

__all__ = ["Inputs", "SequencesTask", "inputs_of"]


class SequencesTask(Task):
    """Your own sequences, in memory: classes or numbers to predict.

    Whole numbers and strings as targets are classes; numbers with a point are values. The metric
    is accuracy in percent for classes, root mean squared error in units of `y` for values.

    Args:
        parts: "all", to be cut, or "train", "test" and perhaps "valid", as `sequences_from` makes
            them.
        source: What messages call the data.
        class_weights: Factors on the classes in the loss, as `class_names`; None for 1.

    The other options, the shapes and the split are those of `FileTask`.

    Attributes:
        preprocessing: What was done to the inputs; the same is done to new data.
        columns: What the columns of a table were taken for; None if the data are no table.
        has_times: Whether the data say the time between samples.

    Raises:
        ValueError: If the content does not fit together. The messages say what and where.

    Example:
        >>> from anharmonic.data.arrays import sequences_from
        >>> x = np.random.default_rng(0).random((20, 50))
        >>> part = sequences_from(x, np.where(x.mean(1) > x.mean(), "high", "low"))
        >>> task = SequencesTask({"all": part})
        >>> task.sizes, task.class_names, task.input_size
        ({'train': 14, 'valid': 3, 'test': 3}, ('high', 'low'), 1)
    """

    name = "file"
    licence = "yours"

    def __init__(
        self,
        parts: Mapping[str, Sequences],
        *,
        target: Literal["auto", "class", "value"] = "auto",
        standardise: bool = True,
        missing: Missing = "error",
        split_seed: int = 1234,
        split: SplitBy = "auto",
        test_groups: Sequence[str] = (),
        valid_share: float | None = None,
        folds: int | None = None,
        fold: int = 0,
        difference: bool = False,
        elapsed: Elapsed = "ignore",
        scale_target: bool = False,
        scale_each: bool = False,
        window: int | None = None,
        stride: int | None = None,
        horizon: int | None = None,
        forecast: Sequence[str] = (),
        source: str = "memory",
        class_weights: Sequence[float] | None = None,
    ) -> None:
        choice("target", target, ("auto", "class", "value"))
        boolean("standardise", standardise)
        boolean("difference", difference)
        boolean("scale_target", scale_target)
        boolean("scale_each", scale_each)
        advice = "leave one of them out"
        fits = horizon is None or not scale_each
        require(fits, "scale_each with horizon", horizon, "None", advice)
        choice("elapsed", elapsed, get_args(Elapsed))
        choice("missing", missing, get_args(Missing))
        self.windows = Windows(window, stride, horizon, tuple(str(name) for name in forecast))
        groups = tuple(str(group) for group in test_groups)
        cut = Cut(split, groups, valid_share, folds, fold, split_seed, window, horizon)
        self.source = source
        self.columns = next(iter(parts.values())).columns
        self.has_times = any(part.elapsed is not None for part in parts.values())
        if horizon is None:
            parts = self._labelled(parts, target)
        else:
            parts = {name: part.with_targets(None) for name, part in parts.items()}
            self.target, self.readout, self.metric = "value", "last", "rmse"
            cut = replace(cut, window=self.windows.length(parts))
        for part in parts.values():
            # Before the cut: it names the file's places.
            check_finite(part, part.x, missing != "error")
        labels = self.class_names if self.readout == "last" else ()
        cuts = cut_parts(parts, cut, labels)
        self._facts = self._understood(parts, cuts, missing)
        if set(parts) != set(cuts):
            cut_by = cut.describe(parts["all" if "all" in parts else "train"])
            self._facts.append(f"split {cut_by}")
        warn_of_absent_classes(cuts["train"], self.class_names)
        self.preprocessing = Preprocessing.fit(
            cuts["train"],
            standardise,
            missing,
            difference=difference,
            elapsed=elapsed,
            scale_target=scale_target and self.target == "value" and horizon is None,
            scale_each=scale_each,
        )
        self.spread_of_sizes = spread_of_sizes(cuts["train"])
        if cut.window is not None:
            count = sum(len(part) for part in parts.values())
            self._facts.insert(0, f"windows of {cut.window} steps of {counted(count, 'recording')}")
            self.preprocessing, cuts = self.windows.cut(self.preprocessing, cuts, cut.window)
        if horizon is not None:
            self.output_size = np.asarray(cuts["train"].y).shape[1]
        self.sizes = {name: len(cuts.get(name, ())) for name in ("train", "valid", "test")}
        self.input_size = self.preprocessing.size
        made = {name: self.preprocessing.dataset(part) for name, part in cuts.items()}
        self._splits = Splits(made["train"], made.get("valid"), made["test"])
        if class_weights is not None:
            came = len(class_weights) if self.target == "class" else self.target
            fits, expected = came == self.output_size, f"{self.output_size} numbers, one per class"
            advice = "give one for every class, in the order of class_names"
            require(fits, "class_weights", list(class_weights), expected, advice)
            self.class_weights = tuple(float(weight) for weight in class_weights)

    def _labelled(self, parts: Mapping[str, Sequences], target: str) -> dict[str, Sequences]:
        """The sequences with numbers as targets; what they are is now known of the task."""
        parts = {name: classes_by_step(part, target) for name, part in parts.items()}
        meant = {target_kind(part, target) for part in parts.values()}
        came = {
            key: f"{y.dtype} {list(y.shape)}"
            for key, part in parts.items()
            if (y := part.y) is not None
        }
        fits = len(meant) == len({part.per_step for part in parts.values()}) == 1
        name, advice = f"y in {self.source}", "store it alike"
        require(fits, name, came, "of one kind in all parts", advice)
        (self.target,) = meant
        self.readout = "all" if parts["train" if "train" in parts else "all"].per_step else "last"
        self.metric = "accuracy" if self.target == "class" else "rmse"
        codes: Mapping[str, NDArray[Any]]
        if self.target == "class":
            self.class_names, codes = encode_classes(parts, self.source)
            self.output_size = len(self.class_names)
        else:
            codes = {name: float_targets(part) for name, part in parts.items()}
            self.output_size = output_width(codes, self.source)
            if target == "auto":
                self.hint = _maybe_classes(list(codes.values()), self.source, self.readout)
        return {name: replace(part, y=codes[name]) for name, part in parts.items()}

    def _understood(
        self, parts: Mapping[str, Sequences], cuts: Mapping[str, Sequences], missing: Missing
    ) -> list[str]:
        """What a user wants to see of the data at once, in words."""
        facts = []
        if self.readout == "last" and 0 < len(self.class_names) <= 10:
            y = np.concatenate([np.asarray(part.y) for part in cuts.values()])
            counts = np.bincount(y, minlength=len(self.class_names))
            named = zip(self.class_names, counts, strict=True)
            facts.append("classes " + ", ".join(f"{name} {count}" for name, count in named))
        gaps = sum(int(np.isnan(part.x).sum()) for part in parts.values())
        if gaps:
            share = 100 * gaps / sum(part.x.size for part in parts.values())
            facts.append(f"{share:.2g} % of the inputs missing ({missing})")
        return facts

    @property
    def output(self) -> str:
        """What is predicted, in words."""
        if self.windows.horizon is None:
            return super().output
        channels = counted(len(self.preprocessing.forecast), "channel")
        return f"the next {counted(self.windows.horizon, 'step')} of {channels}"

    def _inputs(self, noun: str) -> str:
        own = len(self.preprocessing.mean)
        said = counted(own, noun)
        if own == self.input_size:
            return said
        return f"{said} ({self.input_size} inputs with differences, marks of gaps, times or levels)"

    def summary(self) -> str:
        """Says how the data were understood; of a table also what its columns were taken for."""
        facts = [] if self.columns is None else [self.columns.describe()]
        return "\n".join([super().summary(), *facts, *filter(None, ["; ".join(self._facts)])])

    def _build(self) -> Splits[SequenceDataset]:
        raise NotImplementedError("the data were read when the task was made")


class Inputs(NamedTuple):
    """What is predicted from."""

    dataset: SequenceDataset
    """The sequences in their order, or their windows; `y` has no columns."""
    owners: Integers
    """The sequence every entry of the data set is of."""
    fresh: Integers
    """Steps at the end of every entry that are in none before it."""
    ids: NDArray[Any] | None
    """What the data call their sequences; None if they have no names for them."""


def inputs_of(part: Sequences, preprocessing: Preprocessing) -> Inputs:
    """Prepares sequences as those of training were, to predict from them.

    Args:
        part: The sequences; targets are not looked at.
        preprocessing: Of the training data: `SequencesTask(...).preprocessing`.

    Raises:
        ValueError: If the channels are not those of training.
    """
    pieces = preprocessing.pieces(part.with_targets(None))
    return Inputs(preprocessing.dataset(pieces.part), pieces.owners, pieces.fresh, part.ids)


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
