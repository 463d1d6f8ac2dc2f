"""Splitting of data into training, validation and test parts without leakage."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import choice, listed, message, natural, number, require
from anharmonic.data.base import seeded_rng
from anharmonic.data.sequences import Sequences, joined

Indices = NDArray[np.int64]
SplitBy = Literal["auto", "random", "groups", "time"]
TEST_SHARE = VALID_SHARE = 0.15
FEW_RECORDINGS = 10


@dataclass(frozen=True)
class Cut:
    """How to split a file into parts.

    Attributes:
        by: "random" (stratified by class), "groups" (no group in two parts), "time" (train on the
            earliest sequences, test on the latest), or "auto". "auto" uses groups if the file has
            them. It uses time for blocks of one recording, for windows of fewer than 10 recordings
            and for forecasts. Otherwise it is random.
        test_groups: The groups of the test part; empty for a random choice.
        valid_share: Share of the validation part in the sequences (in the training part, if the
            file has a test part), in [0, 1); 0 for no validation. None: the file's own validation
            part, or 0.15.
        folds: Number of cross-validation folds, at least 2, of the data outside the test part; None
            for a single validation part.
        fold: Index of the validation fold, 0 to folds - 1.
        seed: Seed of the split, in `[0, 2**32)`. The test part depends on nothing else.
        window: Length of a window in steps, if recordings will be cut into windows. "time" then
            trains on the beginning of every recording and tests on its end.
        horizon: Number of forecast steps after a window. The first windows of a part may then reach
            back into the previous part. None for no forecast.

    Raises:
        ValueError: If a value is out of range, or two exclude each other.
        TypeError: If a number has the wrong type.
    """

    by: str = "auto"
    test_groups: tuple[str, ...] = ()
    valid_share: float | None = None
    folds: int | None = None
    fold: int = 0
    seed: int = 1234
    window: int | None = None
    horizon: int | None = None

    def __post_init__(self) -> None:
        choice("split", self.by, ("auto", "random", "groups", "time"))
        natural("split_seed", self.seed)
        if self.valid_share is not None:
            number("valid_share", self.valid_share, low=0.0, high=1.0, high_open=True)
        fold = natural("fold", self.fold)
        if self.folds is None:
            require(fold == 0, "fold", fold, "0 without folds", "pass folds too")
            return
        folds, advice = natural("folds", self.folds), "choose for example 5"
        require(folds >= 2, "folds", folds, "at least 2", advice)
        require(fold < folds, "fold", fold, f"below folds={folds}", "count from 0")
        alone = self.valid_share is None
        advice = "leave it out: one fold validates"
        require(alone, "valid_share", self.valid_share, "None with folds", advice)

    def way(self, part: Sequences) -> str:
        """Return the kind of split: "random", "groups", "time" or, inside recordings, "steps"."""
        if self.horizon is not None or (self.window is not None and self.by == "time"):
            return "steps"
        if self.by == "auto":
            few = self.window is not None and len(part) < FEW_RECORDINGS
            apart = "time" if follow_each_other(part) else "random"
            return "groups" if part.groups is not None else "steps" if few else apart
        known = self.by != "groups" or part.groups is not None
        advice = "store groups, one per sequence, or leave out split='groups'"
        require(known, f"groups in {part.where}", None, "known for split='groups'", advice)
        return self.by

    def describe(self, part: Sequences) -> str:
        """Describe the split in words.

        Example:
            >>> part = Sequences("here", np.zeros((2, 1), np.float32), np.array([0, 1, 2]))
            >>> Cut().describe(part)
            'at random'
        """
        way = self.way(part)
        if way == "groups" or self.test_groups:
            named = f", {listed(self.test_groups)} for test" if self.test_groups else ""
            return f"by groups ({len(np.unique(np.asarray(part.groups)))}{named})"
        if way == "time" and self.by == "auto":
            return "by time, as sequences are parts of one recording"
        order = "" if part.times is not None or way == "steps" else ", as the file is ordered"
        return "at random" if way == "random" else f"by time{order}"


def follow_each_other(part: Sequences) -> bool:
    """Whether sequences are blocks of one recording, each starting a step after another ends.

    Adjacent blocks are similar, so a random split would leak training data into the test.

    Args:
        part: The sequences.

    Example:
        >>> x, offsets = np.zeros((6, 1), np.float32), np.array([0, 2, 4, 6])
        >>> begins = np.array([0.0, 2.0, 4.0])
        >>> follow_each_other(Sequences("here", x, offsets, times=begins, interval=1.0))
        True
        >>> follow_each_other(Sequences("here", x, offsets, times=0 * begins, interval=1.0))
        False
    """
    times, step = part.times, part.interval
    if times is None or times.dtype.kind not in "iufM" or not step or len(part) < 3:
        return False
    order = np.argsort(times, kind="stable")
    begins = times[order]
    gaps = np.diff(begins) / (np.timedelta64(1, "s") if begins.dtype.kind == "M" else 1)
    spans = (part.lengths - 1) * step
    if part.elapsed is not None:
        spans = np.add.reduceat(part.elapsed.astype(np.float64), part.offsets[:-1])
    between = gaps - spans[order][:-1]
    return bool((np.abs(between - step) <= 0.5 * step).mean() >= 0.9)


def cut_parts(
    parts: Mapping[str, Sequences], cut: Cut, class_names: tuple[str, ...]
) -> dict[str, Sequences]:
    """Return training, validation and test sequences; parts in the file are kept.

    Args:
        parts: "all", or "train", "test" and optionally "valid", with numeric `y`.
        cut: How to make the missing parts.
        class_names: Name of every class, if there is one class per sequence; otherwise empty.

    Returns:
        "train", "valid" and "test"; no "valid" without validation.

    Raises:
        ValueError: If there are too few sequences or groups, or unknown groups.
    """
    rng = seeded_rng("file split", cut.seed)
    own_valid = cut.valid_share is None and cut.folds is None
    if "all" in parts:
        whole = parts["all"]
        apart = cut.way(whole) in ("random", "steps")
        if apart and not cut.test_groups and cut.folds is None:
            names = (
                ("train", "valid", "test") if _valid_size(cut, len(whole)) else ("train", "test")
            )
            return _divide(whole, names, cut, class_names, rng)
        if cut.way(whole) == "groups" and not cut.test_groups:
            _check_groups(whole, 1 + (cut.folds or 1 + bool(_valid_size(cut, len(whole)))))
        made = _test_part(whole, cut, class_names, rng)
        total = len(whole)
    else:
        advice = "leave it out, or store x, y and groups without parts"
        came, name = list(cut.test_groups), f"test_groups for {parts['test'].where}"
        require(not came, name, came, "empty: the file has a test part", advice)
        made = {name: parts[name] for name in ("train", "test")}
        if "valid" in parts and own_valid:
            return dict(parts)
        if "valid" in parts:
            made["train"] = joined(made["train"], parts["valid"])
        total = len(made["train"])
    if cut.folds is not None:
        return made | _fold(made["train"], cut, class_names)
    if not _valid_size(cut, total):
        return made
    return made | _divide(made["train"], ("train", "valid"), cut, class_names, rng, total)


def _valid_size(cut: Cut, total: int) -> int:
    share = VALID_SHARE if cut.valid_share is None else cut.valid_share
    return max(1, round(share * total)) if share else 0


def _test_part(
    whole: Sequences, cut: Cut, class_names: tuple[str, ...], rng: np.random.Generator
) -> dict[str, Sequences]:
    """Split a file into training and test part."""
    advice, came = "leave it out: the last steps of every series test", list(cut.test_groups)
    require(not came or cut.horizon is None, "test_groups", came, "empty with horizon", advice)
    if not cut.test_groups:
        return _divide(whole, ("train", "test"), cut, class_names, rng)
    if whole.groups is None:
        advice = "store groups, one per sequence, or leave out test_groups"
        got = "none"
        raise ValueError(message(f"{whole.where} must hold groups for test_groups", got, advice))
    groups = whole.groups.astype(str)
    known = sorted(set(groups.tolist()))
    for name in cut.test_groups:
        choice(f"a group of test_groups in {whole.where}", name, known)
    chosen = np.isin(groups, cut.test_groups)
    advice = "leave some groups for training"
    require(not chosen.all(), "test_groups", list(cut.test_groups), "some of the groups", advice)
    rows = {"train": np.flatnonzero(~chosen), "test": np.flatnonzero(chosen)}
    return {name: whole.select(mine) for name, mine in rows.items()}


def _divide(
    part: Sequences,
    names: tuple[str, ...],
    cut: Cut,
    class_names: tuple[str, ...],
    rng: np.random.Generator,
    total: int | None = None,
) -> dict[str, Sequences]:
    """Split sequences into a training part and further parts with given shares of `total`."""
    if cut.way(part) == "steps":
        return _along_steps(part, names, cut)
    expected = f"at least {len(names)}, to be cut into {', '.join(names)}"
    advice = "add sequences, cut long ones with window=128 (--window 128), or store x_train, "
    advice += "x_valid and x_test"
    require(len(part) >= len(names), f"sequences in {part.where}", len(part), expected, advice)
    total = len(part) if total is None else total
    wanted = {"valid": _valid_size(cut, total), "test": max(1, round(TEST_SHARE * total))}
    sizes = [wanted[name] for name in names[1:]]
    sizes = [len(part) - sum(sizes), *sizes]
    expected, advice = "less, so that some sequences train", "lower valid_share"
    require(sizes[0] > 0, f"sequences not to train on in {part.where}", sizes[1:], expected, advice)
    if class_names and cut.way(part) == "random":
        _warn_of_rare_classes(part, names, class_names)
    chosen = _rows(part, sizes, cut, class_names, rng)
    return {name: part.select(rows) for name, rows in zip(names, chosen, strict=True)}


def _along_steps(part: Sequences, names: tuple[str, ...], cut: Cut) -> dict[str, Sequences]:
    """Split every recording into its beginning for training, and later parts."""
    valid = VALID_SHARE if cut.valid_share is None else cut.valid_share
    shares = {"valid": valid, "test": TEST_SHARE}
    lengths, rows = part.lengths, np.arange(len(part))
    sizes = [np.round(shares[name] * lengths).astype(np.int64) for name in names[1:]]
    stops = np.cumsum([lengths - sum(sizes), *sizes], axis=0)
    window, horizon = cut.window or 1, cut.horizon or 0
    made = {}
    for place, name in enumerate(names):
        starts = stops[place - 1] if place else np.zeros_like(rows)
        if horizon:  # the past is known when a forecast is made
            starts = np.maximum(starts - window, 0)
        shortest, needed = int((stops[place] - starts).min()), window + horizon
        if shortest < needed:
            raise ValueError(
                message(
                    f"every recording in {part.where}, cut into {listed(names)} by time, must have "
                    f"at least {needed} steps in each",
                    f"{shortest} for {name} of a recording of {int(lengths.min())}",
                    "choose a smaller window or horizon, or give longer recordings",
                )
            )
        made[name] = part.slices(rows, starts, stops[place])
    return made


def _fold(part: Sequences, cut: Cut, class_names: tuple[str, ...]) -> dict[str, Sequences]:
    folds, way = cut.folds or 2, cut.way(part)
    advice = "use valid_share: the past must not be predicted from the future"
    require(way not in ("time", "steps"), "folds", folds, "None with split='time'", advice)
    enough, advice = len(part) >= folds, "choose fewer folds"
    name = f"sequences to fold in {part.where}"
    require(enough, name, len(part), f"at least folds={folds}", advice)
    sizes = np.diff(np.linspace(0, len(part), folds + 1).round().astype(int)).tolist()
    chosen = _rows(part, sizes, cut, class_names, seeded_rng("file folds", cut.seed))
    rest = np.concatenate([rows for i, rows in enumerate(chosen) if i != cut.fold])
    return {"train": part.select(rest), "valid": part.select(chosen[cut.fold])}


def _rows(
    part: Sequences,
    sizes: list[int],
    cut: Cut,
    class_names: tuple[str, ...],
    rng: np.random.Generator,
) -> list[Indices]:
    way, labels = cut.way(part), part.y if class_names else None
    if way == "time":
        # Without times, the file's order is the time order.
        order = (
            np.arange(len(part)) if part.times is None else np.argsort(part.times, kind="stable")
        )
        return np.split(order, np.cumsum(sizes)[:-1])
    if way == "random" or part.groups is None:
        return split_indices(len(part), sizes, rng, labels)
    _check_groups(part, len(sizes))
    return split_groups(part.groups, sizes, rng, labels)


def _check_groups(part: Sequences, parts: int) -> None:
    kinds = len(np.unique(np.asarray(part.groups)))
    expected = f"at least {parts}, one per part"
    advice = "add groups, or pass split='random' if sequences of one group are independent"
    require(kinds >= parts, f"number of groups in {part.where}", kinds, expected, advice)


def warn_of_absent_classes(train: Sequences, class_names: tuple[str, ...]) -> None:
    """Warn about classes missing from a training part split by groups or time.

    Args:
        train: The training part; `y` holds class indices.
        class_names: Name of every class.

    Raises:
        ValueError: If the training part has only one class.
    """
    y = np.asarray(train.y)
    held = np.unique(y if train.known is None else y[train.known])
    absent = [name for i, name in enumerate(class_names) if i not in held]
    if class_names and len(held) < 2:
        came = f"only {class_names[int(held[0])]!r}, none of {listed(absent[:5])}"
        advice = "cut it otherwise: name the recordings or their groups (--id-column, "
        advice += "--group-column), or use --split random if sequences are independent"
        if len(train) == 1:
            advice = (
                "add recordings that hold the other classes: this one has them in its end alone"
            )
        expected = f"{train.where} must have two classes or more in its training part"
        raise ValueError(message(expected, came, advice))
    if absent:
        expected = f"every class in {train.where} must have sequences to train on"
        advice = "split otherwise, or it is never predicted"
        warnings.warn(message(expected, f"none of {listed(absent[:5])}", advice), stacklevel=2)


def _warn_of_rare_classes(
    part: Sequences, names: tuple[str, ...], class_names: tuple[str, ...]
) -> None:
    """Warn about classes with fewer sequences than parts."""
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


def split_indices(
    count: int,
    sizes: Sequence[int],
    rng: np.random.Generator,
    labels: NDArray[Any] | None = None,
) -> list[Indices]:
    """Draw disjoint parts of `count` samples.

    With labels, the parts are stratified up to one sample. The samples of a class of size n, in
    random order, get the places (k + 1/2) / n. All samples sorted by place are then cut into the
    parts. So the first part contains every class if it is at least half of the data.

    Args:
        count: Number of samples.
        sizes: Size of each part; their sum is at most `count`.
        rng: Generator of the order.
        labels: The class of every sample, `[count]`; None for no stratification.

    Returns:
        Indices of each part, in random order.

    Raises:
        ValueError: If the parts are larger than the data set.

    Example:
        >>> labels = np.array([0] * 8 + [1] * 4)
        >>> parts = split_indices(12, [6, 3, 3], np.random.default_rng(0), labels)
        >>> [np.bincount(labels[part]).tolist() for part in parts]
        [[4, 2], [2, 1], [2, 1]]
    """
    expected = f"of at most {count} samples together"
    require(sum(sizes) <= count, "sizes", list(sizes), expected, "make the parts smaller")
    order = rng.permutation(count)
    if labels is not None:
        places = np.empty(count)
        for label in np.unique(labels):
            mine = np.flatnonzero(labels[order] == label)
            places[mine] = (np.arange(len(mine)) + 0.5) / len(mine)
        order = order[np.argsort(places, kind="stable")]
    ends = np.cumsum([0, *sizes])
    return [rng.permutation(order[a:b]) for a, b in itertools.pairwise(ends)]


def split_groups(
    groups: NDArray[Any],
    sizes: Sequence[int],
    rng: np.random.Generator,
    labels: NDArray[Any] | None = None,
) -> list[Indices]:
    """Draw disjoint parts of all samples, with no group in two of them.

    The function tries many random orders of the groups and assigns each group to the part that
    lacks most samples. It returns the parts closest to the wanted sizes and, with labels, to the
    class shares.

    Args:
        groups: The group of every sample, `[N]`.
        sizes: Wanted size of each part, with sum N; every part gets at least one group.
        rng: Generator of the orders.
        labels: The class of every sample, `[N]`, or None.

    Returns:
        Indices of each part, in random order.

    Raises:
        ValueError: If the sizes do not add up, or there are fewer groups than parts.

    Example:
        >>> groups = np.repeat(["ann", "bob", "eve"], [2, 6, 2])
        >>> parts = split_groups(groups, [6, 2, 2], np.random.default_rng(0))
        >>> [len(part) for part in parts], sorted(set(groups[parts[0]].tolist()))
        ([6, 2, 2], ['bob'])
    """
    count = len(groups)
    require(sum(sizes) == count, "sizes", list(sizes), f"of {count} samples together", "use all")
    names, group = np.unique(groups, return_inverse=True)
    expected, advice = f"at least {len(sizes)}, one per part", "add groups or make fewer parts"
    require(len(names) >= len(sizes), "number of groups", len(names), expected, advice)
    kinds = (
        np.zeros(count, np.int64) if labels is None else np.unique(labels, return_inverse=True)[1]
    )
    amount = np.zeros((len(names), int(kinds.max()) + 1))
    np.add.at(amount, (group, kinds), 1.0)
    wanted = np.outer(np.array(sizes) / count, amount.sum(axis=0))
    deals = [_deal(amount, wanted, rng) for _ in range(max(1, min(100, 10_000 // len(names))))]
    _, best = min(deals, key=lambda deal: deal[0])
    return [rng.permutation(np.flatnonzero(best[group] == part)) for part in range(len(sizes))]


def _deal(
    amount: NDArray[Any], wanted: NDArray[Any], rng: np.random.Generator
) -> tuple[float, Indices]:
    """Assign groups in random order; return the distance from `wanted` and each group's part."""
    parts = np.empty(len(amount), np.int64)
    held = np.zeros_like(wanted)
    for left, group in zip(range(len(amount), 0, -1), rng.permutation(len(amount)), strict=True):
        empty = held.sum(axis=1) == 0
        excess = np.maximum(held + amount[group] - wanted, 0.0).sum(axis=1) / amount[group].sum()
        # Prefer the part that is emptiest relative to its size.
        score = excess + 1e-3 * held.sum(axis=1) / wanted.sum(axis=1)
        if left == empty.sum():
            score = np.where(empty, score, np.inf)
        parts[group] = np.argmin(score)
        held[parts[group]] += amount[group]
    return float(np.abs(held - wanted).sum()), parts
