"""Splitting of data into training, validation and test parts without leakage."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import choice, listed, message, require
from anharmonic.data.base import seeded_rng
from anharmonic.data.options import DataOptions
from anharmonic.data.sequences import Sequences, joined

Indices = NDArray[np.int64]
TEST_SHARE = VALID_SHARE = 0.15
FEW_RECORDINGS = 10


def split_way(options: DataOptions, part: Sequences) -> str:
    """Return the kind of split: "random", "groups", "time" or, inside recordings, "steps"."""
    by, window, known = options.split, options.window, part.groups is not None
    if options.horizon is not None:
        named = options.group_column or options.group_pattern or options.test_groups
        if by == "time" or (by == "auto" and not (known and named)):
            return "steps"
        by = "groups"
    if window is not None and by == "time":
        return "steps"
    if by == "auto":
        few = window is not None and len(part) < FEW_RECORDINGS
        apart = "time" if follow_each_other(part) else "random"
        # Every split between recordings keeps groups of one recording whole.
        return "groups" if known and (few or not _own_groups(part)) else "steps" if few else apart
    advice = _advice_of_groups(part, "split='groups'")
    require(
        known or by != "groups", f"groups in {part.where}", None, "known for split='groups'", advice
    )
    return by


def _own_groups(part: Sequences) -> bool:
    """Whether one column of a table names both the recordings and the groups."""
    columns = part.columns
    return columns is not None and columns.id is not None and columns.id == columns.group


def _advice_of_groups(part: Sequences, option: str) -> str:
    if part.columns is None:
        return f"store groups, one per sequence, or leave out {option}"
    advice = "name their column with --group-column (group_column), "
    if part.columns.folder:
        advice += "find them in the paths with --group-pattern (group_pattern), "
    return f"{advice}or leave out {option}"


def can_fold(options: DataOptions, parts: Mapping[str, Sequences], folds: int) -> bool:
    """Whether the data outside the test part can be cross-validated: not split by time."""
    part = parts.get("all", parts.get("train"))
    way = "time" if part is None else split_way(options, part)
    if part is None or way in ("time", "steps"):
        return False
    tested = (len(options.test_groups) or 1) if "all" in parts else 0
    count = len(part) if way == "random" else len(np.unique(np.asarray(part.groups)))
    return count - tested >= folds


def describe_split(options: DataOptions, part: Sequences) -> str:
    """Describe the split in words.

    Example:
        >>> part = Sequences("here", np.zeros((2, 1), np.float32), np.array([0, 1, 2]))
        >>> describe_split(DataOptions(), part)
        'at random'
    """
    way, groups = split_way(options, part), options.test_groups
    if way == "groups" or groups:
        named = f", {listed(groups)} for test" if groups else ""
        return f"by groups ({len(np.unique(np.asarray(part.groups)))}{named})"
    if way == "time" and options.split == "auto":
        return "by time, as sequences are parts of one recording"
    order = "" if part.times is not None or way == "steps" else ", as the file is ordered"
    return "at random" if way == "random" else f"by time{order}"


def follow_each_other(part: Sequences) -> bool:
    """Whether sequences are blocks of one recording, each starting a step after another ends.

    Adjacent blocks are similar, so a random split would leak training data into the test.
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
    parts: Mapping[str, Sequences], options: DataOptions, class_names: tuple[str, ...]
) -> dict[str, Sequences]:
    """Return "train", "test" and perhaps "valid" sequences; parts in the file are kept.

    `class_names` is empty unless there is one class per sequence, by which to stratify.
    """
    rng = seeded_rng("file split", options.split_seed)
    own_valid = options.valid_share is None and options.folds is None
    if "all" in parts:
        whole, total = parts["all"], len(parts["all"])
        names = ("train", "valid", "test") if _valid_size(options, total) else ("train", "test")
        way, at_will = split_way(options, whole), not options.test_groups
        if way in ("random", "steps") and at_will and options.folds is None:
            return _divide(whole, names, options, class_names, rng)
        if way == "groups" and at_will:
            _check_groups(whole, 1 + options.folds if options.folds else len(names), options)
        made = _test_part(whole, options, class_names, rng)
    else:
        advice = "leave it out, or store x, y and groups without parts"
        came, name = list(options.test_groups), f"test_groups for {parts['test'].where}"
        require(not came, name, came, "empty: the file has a test part", advice)
        made = {name: parts[name] for name in ("train", "test")}
        if "valid" in parts and own_valid:
            return dict(parts)
        if "valid" in parts:
            made["train"] = joined(made["train"], parts["valid"])
        total = len(made["train"])
    if options.folds is not None:
        return made | _fold(made["train"], options, class_names)
    if not _valid_size(options, total):
        return made
    return made | _divide(made["train"], ("train", "valid"), options, class_names, rng, total)


def _valid_share(options: DataOptions) -> float:
    return VALID_SHARE if options.valid_share is None else options.valid_share


def _valid_size(options: DataOptions, total: int) -> int:
    share = _valid_share(options)
    return max(1, round(share * total)) if share else 0


def _test_part(
    whole: Sequences, options: DataOptions, class_names: tuple[str, ...], rng: np.random.Generator
) -> dict[str, Sequences]:
    """Split a file into training and test part."""
    if not options.test_groups:
        return _divide(whole, ("train", "test"), options, class_names, rng)
    if whole.groups is None:
        advice, got = _advice_of_groups(whole, "test_groups"), "none"
        raise ValueError(message(f"{whole.where} must hold groups for test_groups", got, advice))
    groups = whole.groups.astype(str)
    known = sorted(set(groups.tolist()))
    for name in options.test_groups:
        choice(f"a group of test_groups in {whole.where}", name, known)
    chosen = np.isin(groups, options.test_groups)
    advice = "leave some groups for training"
    require(
        not chosen.all(), "test_groups", list(options.test_groups), "some of the groups", advice
    )
    rows = {"train": np.flatnonzero(~chosen), "test": np.flatnonzero(chosen)}
    return {name: whole.select(mine) for name, mine in rows.items()}


def _divide(
    part: Sequences,
    names: tuple[str, ...],
    options: DataOptions,
    class_names: tuple[str, ...],
    rng: np.random.Generator,
    total: int | None = None,
) -> dict[str, Sequences]:
    """Split sequences into a training part and further parts with given shares of `total`."""
    if split_way(options, part) == "steps":
        return _along_steps(part, names, options)
    expected = f"at least {len(names)}, to be cut into {', '.join(names)}"
    advice = "add sequences, cut long ones with --window 128 (window=128), or store x_train, "
    advice += "x_valid and x_test"
    require(len(part) >= len(names), f"sequences in {part.where}", len(part), expected, advice)
    total = len(part) if total is None else total
    wanted = {"valid": _valid_size(options, total), "test": max(1, round(TEST_SHARE * total))}
    sizes = [wanted[name] for name in names[1:]]
    sizes = [len(part) - sum(sizes), *sizes]
    expected, advice = "less, so that some sequences train", "lower valid_share"
    require(sizes[0] > 0, f"sequences not to train on in {part.where}", sizes[1:], expected, advice)
    if class_names and split_way(options, part) == "random":
        _warn_of_rare_classes(part, names, class_names)
    chosen = _rows(part, sizes, options, class_names, rng)
    return {name: part.select(rows) for name, rows in zip(names, chosen, strict=True)}


def _along_steps(
    part: Sequences, names: tuple[str, ...], options: DataOptions
) -> dict[str, Sequences]:
    """Split every recording into its beginning for training, and later parts."""
    shares = {"valid": _valid_share(options), "test": TEST_SHARE}
    lengths, rows = part.lengths, np.arange(len(part))
    sizes = [np.round(shares[name] * lengths).astype(np.int64) for name in names[1:]]
    stops = np.cumsum([lengths - sum(sizes), *sizes], axis=0)
    window, horizon = options.window or 1, options.horizon or 0
    made = {}
    for place, name in enumerate(names):
        starts = stops[place - 1] if place else np.zeros_like(rows)
        if horizon:  # the past is known when a forecast is made
            starts = np.maximum(starts - window, 0)
        shortest, needed = int((stops[place] - starts).min()), window + horizon
        if place and 0 < (most := int(sizes[place - 1].min())) < horizon:
            came = f"{horizon}, and a recording of {int(lengths.min())} steps"
            expected = f"--horizon (horizon) must be at most {most}, the steps for {name}"
            advice = "choose a smaller horizon, or join recordings that follow one another in time"
            raise ValueError(message(expected, came, advice))
        if shortest < needed:
            expected = f"every recording in {part.where}, cut into {listed(names)} by time, must "
            expected += f"have at least {needed} steps in each"
            came = f"{shortest} for {name} of a recording of {int(lengths.min())}"
            advice = "choose a smaller window or horizon, or give longer recordings"
            raise ValueError(message(expected, came, advice))
        made[name] = part.slices(rows, starts, stops[place])
    return made


def _fold(
    part: Sequences, options: DataOptions, class_names: tuple[str, ...]
) -> dict[str, Sequences]:
    folds, way = options.folds, split_way(options, part)
    assert folds is not None
    advice = "use --valid-share 0.15 (valid_share), or keep recordings whole with --group-column: "
    advice += "the past must not be predicted from the future"
    require(
        way not in ("time", "steps"), "--folds (folds)", folds, "None with --split time", advice
    )
    enough, advice = len(part) >= folds, "choose fewer folds"
    name = f"sequences to fold in {part.where}"
    require(enough, name, len(part), f"at least folds={folds}", advice)
    sizes = np.diff(np.linspace(0, len(part), folds + 1).round().astype(int)).tolist()
    chosen = _rows(part, sizes, options, class_names, seeded_rng("file folds", options.split_seed))
    rest = np.concatenate([rows for i, rows in enumerate(chosen) if i != options.fold])
    return {"train": part.select(rest), "valid": part.select(chosen[options.fold])}


def _rows(
    part: Sequences,
    sizes: list[int],
    options: DataOptions,
    class_names: tuple[str, ...],
    rng: np.random.Generator,
) -> list[Indices]:
    way, labels = split_way(options, part), part.y if class_names else None
    if way == "time":
        # Without times, the file's order is the time order.
        order = np.arange(len(part))
        if part.times is not None:
            order = np.argsort(part.times, kind="stable")
        return np.split(order, np.cumsum(sizes)[:-1])
    if way == "random" or part.groups is None:
        return split_indices(len(part), sizes, rng, labels)
    _check_groups(part, len(sizes), options)
    return split_groups(part.groups, sizes, rng, labels)


def _check_groups(part: Sequences, parts: int, options: DataOptions) -> None:
    kinds = len(np.unique(np.asarray(part.groups)))
    expected = f"at least {parts}, one per part"
    advice = "add groups, or pass --split random (split='random') if sequences of one group are "
    advice += "independent"
    if options.window is not None or options.horizon is not None:
        advice = "add groups, or test on the end of each recording with --split time (split='time')"
    require(kinds >= parts, f"number of groups in {part.where}", kinds, expected, advice)


def warn_of_absent_classes(train: Sequences, class_names: tuple[str, ...]) -> None:
    """Warn about classes missing from a training part; refuse one with a single class."""
    held = np.unique(train.known_y)
    absent = [name for i, name in enumerate(class_names) if i not in held]
    if class_names and len(held) < 2:
        came = f"only {class_names[int(held[0])]!r}, none of {listed(absent[:5])}"
        advice = "cut it otherwise: name the recordings or their groups (--id-column, "
        advice += "--group-column), or use --split random if sequences are independent"
        if len(train) == 1:
            advice = "add recordings with the other classes: this one has them in its end alone"
        expected = f"{train.where} must have two classes or more in its training part"
        raise ValueError(message(expected, came, advice))
    if absent:
        expected = f"every class in {train.where} must have sequences to train on"
        advice = "split otherwise, or it is never predicted"
        warnings.warn(message(expected, f"none of {listed(absent[:5])}", advice), stacklevel=2)


def warn_of_one_class(test: Sequences, class_names: tuple[str, ...]) -> None:
    """Warn of a test part in which all of ten sequences or more have the same class."""
    held, counts = np.unique(test.known_y, return_counts=True)
    if len(held) == 1 and len(class_names) > 1 and counts[0] >= 10:  # of fewer it may be chance
        expected = f"the test part of {test.where} must have sequences of several classes"
        came = f"only {class_names[int(held[0])]!r}"
        advice = "its score says little; give more groups, or choose the parts yourself"
        warnings.warn(message(expected, came, advice), stacklevel=2)


def _warn_of_rare_classes(
    part: Sequences, names: tuple[str, ...], class_names: tuple[str, ...]
) -> None:
    """Warn about classes with fewer sequences than parts."""
    counts = np.bincount(np.asarray(part.y), minlength=len(class_names))
    rare = np.flatnonzero(counts < len(names))
    if not len(rare):
        return
    came = ", ".join(f"{counts[i]} of class {class_names[i]!r}" for i in rare[:5])
    if len(rare) > 5:
        came += f", few of {len(rare) - 5} more classes"
    expected = f"every class in {part.where} must have at least {len(names)} sequences to be in "
    advice = "add sequences of these classes, or the accuracy says little of them"
    warnings.warn(message(expected + listed(names), came, advice), stacklevel=2)


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

    Of many random orders of the groups, each assigned to the part that lacks most samples, the one
    counts whose parts are closest to the wanted sizes and, with labels, to the class shares.
    """
    count = len(groups)
    names, group = np.unique(groups, return_inverse=True)
    kinds = np.zeros(count, np.int64)
    if labels is not None:
        kinds = np.unique(labels, return_inverse=True)[1]
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
