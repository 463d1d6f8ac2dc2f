"""The user's own sequences, as a task."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import require
from anharmonic.data.base import Readout, SequenceDataset, Splits, Task, counted
from anharmonic.data.options import DataOptions
from anharmonic.data.parts import cut_parts, warn_of_absent_classes
from anharmonic.data.preprocessing import Missing, Preprocessing, spread_of_sizes
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
        options: Fields of `DataOptions`.

    The shapes and the split are those of `FileTask`.

    Attributes:
        options: The `DataOptions`.
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
    options_class = DataOptions
    _newest: Self | None = None

    def __init__(
        self,
        parts: Mapping[str, Sequences],
        *,
        source: str = "memory",
        class_weights: Sequence[float] | None = None,
        **options: Any,
    ) -> None:
        self.source = source
        self._parts = dict(parts)
        self.columns = next(iter(parts.values())).columns
        self.has_times = any(part.elapsed is not None for part in parts.values())
        self._prepare(DataOptions(**options))
        if class_weights is not None:
            came = len(class_weights) if self.target == "class" else self.target
            fits, expected = came == self.output_size, f"{self.output_size} numbers, one per class"
            advice = "give one for every class, in the order of class_names"
            require(fits, "class_weights", list(class_weights), expected, advice)
            self.class_weights = tuple(float(weight) for weight in class_weights)

    def with_options(self, options: Mapping[str, Any]) -> Self:
        """The same data, cut and prepared in another way; nothing is read again.

        The newest is kept, and returned again for the same options.

        Args:
            options: Fields of `DataOptions`; those left out have their defaults.

        Raises:
            ValueError: If they say that other columns are to be read.

        Example:
            >>> from anharmonic.data.arrays import sequences_from
            >>> part = sequences_from(np.random.default_rng(0).random((20, 50)), ["a", "b"] * 10)
            >>> SequencesTask({"all": part}).with_options({"valid_share": 0.0}).sizes
            {'train': 17, 'valid': 0, 'test': 3}
        """
        changed = DataOptions(**options)
        if self._newest is not None and self._newest.options == changed:
            return self._newest
        read, wanted = self.options.columns, changed.columns
        advice = "read the data again"
        require(wanted == read, "columns of data that were read", wanted, f"{read}", advice)
        made = copy.copy(self)
        self._newest = made._newest = None
        made._prepare(changed)
        self._newest = made
        return made

    def _prepare(self, options: DataOptions) -> None:
        """Cuts the data into parts and prepares them."""
        parts: Mapping[str, Sequences] = self._parts
        self.options, self.windows, cut = options, options.windows, options.cut
        self.class_names, self.hint = (), ""
        if options.horizon is None:
            parts = self._labelled(parts, options.target)
        else:
            parts = {name: part.with_targets(None) for name, part in parts.items()}
            self.target, self.readout, self.metric = "value", "last", "rmse"
            cut = replace(cut, window=self.windows.length(parts))
        for part in parts.values():
            # Before the cut: it names the file's places.
            check_finite(part, part.x, options.missing != "error")
        labels = self.class_names if self.readout == "last" else ()
        cuts = cut_parts(parts, cut, labels)
        self._facts = self._understood(parts, cuts, options.missing)
        if set(parts) != set(cuts):
            cut_by = cut.describe(parts["all" if "all" in parts else "train"])
            self._facts.append(f"split {cut_by}")
        warn_of_absent_classes(cuts["train"], self.class_names)
        self.preprocessing = Preprocessing.fit(
            cuts["train"],
            options.standardise,
            options.missing,
            difference=options.difference,
            elapsed=options.elapsed,
            scale_target=options.scale_target and self.target == "value" and not options.horizon,
            scale_each=options.scale_each,
        )
        self.spread_of_sizes = spread_of_sizes(cuts["train"])
        if cut.window is not None:
            count = sum(len(part) for part in parts.values())
            self._facts.insert(0, f"windows of {cut.window} steps of {counted(count, 'recording')}")
            self.preprocessing, cuts = self.windows.cut(self.preprocessing, cuts, cut.window)
        if options.horizon is not None:
            self.output_size = np.asarray(cuts["train"].y).shape[1]
        self.sizes = {name: len(cuts.get(name, ())) for name in ("train", "valid", "test")}
        self.input_size = self.preprocessing.size
        made = {name: self.preprocessing.dataset(part) for name, part in cuts.items()}
        self._splits = Splits(made["train"], made.get("valid"), made["test"])

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
