"""Folders of recordings: their files, and labels and groups from paths or `labels.csv`."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import flag, listed, message, require
from anharmonic.data.columns import GROUP_WORDS, NO_COLUMN, Columns, plain
from anharmonic.data.recordings.biosignals import read_edf, read_wfdb
from anharmonic.data.recordings.patterns import found_by
from anharmonic.data.recordings.signals import Signal, read_array, read_sound, resampled
from anharmonic.data.sequences import Sequences

SIGNALS: dict[str, Callable[[Path, str], Signal]] = {
    ".wav": read_sound,
    ".npy": read_array,
    ".edf": read_edf,
    ".bdf": read_edf,
    ".hea": read_wfdb,
}
"""Readers of recordings that are not tables, by ending; they take the file's name for messages."""
TABLES = (".csv", ".tsv", ".txt", ".parquet")
_LABELS = ("labels.csv", "labels.tsv", "labels.txt")
_PARTS = {
    "train": "train", "training": "train", "test": "test", "testing": "test", "valid": "valid",
    "val": "valid", "validation": "valid",
}  # fmt: skip
_REMARKS = re.compile(r"(readme|licen[cs]e|changelog|about)\b", re.IGNORECASE)
_BY_FOLDER = "label from the names of the folders"
_FIRST_FOLDER = "'^([^/]+)/'"
_SHOWN = 5
_MOST_SAMPLES = 10**8
"""Number of samples that resampling always allows."""


@dataclass(frozen=True)
class _Folder:
    """The files of one part of a folder; messages give their paths within `base`."""

    base: Path
    root: Path
    files: tuple[Path, ...]
    annotations: Mapping[Path, Path]
    labels: Path | None

    @property
    def where(self) -> str:
        return self.root.resolve().name

    @property
    def kind(self) -> str:
        return self.files[0].suffix.lower()

    @property
    def names(self) -> list[str]:
        """The path of every file within the folder."""
        return [path.relative_to(self.root).as_posix() for path in self.files]

    def place(self, path: Path) -> str:
        """The path of a file for messages."""
        return path.relative_to(self.base).as_posix()


def data_files(root: Path) -> list[Path]:
    """Return all relevant files of a folder, sorted by path.

    Links are followed; a folder with several links, such as a parent, counts once.
    """
    found, entered = [], set()
    for above, below, names in os.walk(root, followlinks=True):
        entered.add(os.path.realpath(above))
        places = {name: os.path.realpath(Path(above, name)) for name in sorted(below)}
        below[:] = [name for name in _visible(places) if places[name] not in entered]
        entered |= {places[name] for name in below}
        found += [path for name in _visible(names) if (path := Path(above, name)).is_file()]
    # What is not valid text has surrogates.
    odd = [ascii(str(path)) for path in found if re.search("[\ud800-\udfff]", str(path))]
    name, advice = f"names of files in {root.resolve().name}", "rename them"
    require(not odd, name, odd[:_SHOWN], "text, in UTF-8", advice)
    return sorted(found)


def _visible(names: Iterable[str]) -> list[str]:
    return [name for name in names if not name.startswith((".", "__"))]


def is_input(root: Path, path: Path) -> bool:
    """Whether a file is a recording of a folder, or describes recordings."""
    files = data_files(root)
    if not any(path.samefile(file) for file in files):
        return False
    signals = any(file.suffix.lower() in SIGNALS for file in files)
    named = path.name.lower() in _LABELS or path.name.endswith(Columns().annotations)
    return named or path.suffix.lower() in (SIGNALS if signals else TABLES)


def holds_recordings(root: Path) -> bool:
    """Whether a path is a folder with possible recordings."""
    kinds = (*SIGNALS, *TABLES)
    return root.is_dir() and any(path.suffix.lower() in kinds for path in data_files(root))


def read_folder(root: Path, given: Columns, targets: bool) -> dict[str, Sequences]:
    """Read a folder with one file per recording, by part: "all", or "train", "test" and "valid".

    Subfolders with these names are the parts. Errors name the files, or the flags that decide.
    """
    parts: dict[str, Sequences] = {}
    for name, folder in _parts(root).items():
        parts[name] = _read(_found(root, folder, given), given, targets)
        given = parts[name].columns or given  # read all parts in the same way
    return parts


def read_one(path: Path, given: Columns) -> Sequences:
    """Read a file with one recording that is not a table, like those of training."""
    folder = _Folder(path.parent, path.parent, (path,), {}, None)
    return _signals(folder, given, False)[0].with_targets(None)


def _parts(root: Path) -> dict[str, Path]:
    """Return the folders of the parts; "all" for an undivided folder."""
    below = [root / name for name in _visible(os.listdir(root)) if (root / name).is_dir()]
    named = {_PARTS[path.name.lower()]: path for path in below if path.name.lower() in _PARTS}
    own = len(named) == len(below) and {"train", "test"} <= set(named)
    return {n: named[n] for n in ("train", "valid", "test") if n in named} if own else {"all": root}


def _found(base: Path, root: Path, given: Columns) -> _Folder:
    """Return the recordings of one part of a folder, all of one kind."""
    files = data_files(root)
    labels = next((path for path in files if path.name.lower() in _LABELS), None)
    marked = [path for path in files if path.name.endswith(given.annotations)]
    rest = [path for path in files if path != labels and path not in marked]
    rest = [path for path in rest if not _REMARKS.match(path.name)]
    kinds = Counter(path.suffix.lower() for path in rest)
    signals = [kind for kind in SIGNALS if kinds[kind]]
    tables = [kind for kind in TABLES if kinds[kind]]
    # Text files beside sounds and arrays are remarks.
    known = signals or tables
    if len(known) != 1:
        expected = f"{root.resolve().name} must hold recordings of one kind, "
        expected += listed([*SIGNALS, *TABLES], "or")
        came = listed([f"{kinds[kind]} {kind}" for kind in known]) or "none"
        raise ValueError(message(expected, came, "move the others elsewhere, or check the path"))
    chosen = tuple(path for path in rest if path.suffix.lower() == known[0])
    if known[0] == ".hea":
        chosen = _whole_records(chosen)
    stems = {str(path)[: -len(given.annotations)]: path for path in marked}
    annotations = {
        path: stems.pop(key) for path in chosen if (key := str(path.with_suffix(""))) in stems
    }
    lonely = [path.relative_to(base).as_posix() for path in stems.values()]
    advice = "name an annotation as its recording, or say their ending with --annotations"
    name = f"annotations of {root.resolve().name} without a recording"
    require(not lonely, name, lonely[:_SHOWN], "none", advice)
    return _Folder(base, root, chosen, annotations, labels)


def _whole_records(headers: Sequence[Path]) -> tuple[Path, ...]:
    """Leave out the headers of segments, which a record NAME/SEGMENTS among the others joins."""
    segments: set[Path] = set()
    for path in headers:
        lines = path.read_text(errors="replace").splitlines()
        words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
        if words and "/" in words[0][0]:
            segments |= {path.with_name(f"{first}.hea") for first, *_ in words[1:]}
    return tuple(path for path in headers if path not in segments)


def _read(folder: _Folder, given: Columns, targets: bool) -> Sequences:
    table = _listed(folder) if targets or given.inputs or given.forecast else None
    labels, source = (None, "") if not targets else _labels_outside(folder, given, table)
    inside = _without_listed(folder, given, table)
    if folder.kind in SIGNALS:
        needed = targets and labels is None and not folder.annotations
        part, clocks = _signals(folder, inside, needed)
        if part.y is not None and targets:
            source = source or "labels of steps from annotations in the files"
        if not targets:
            part = part.with_targets(None)
    else:
        part, clocks, own = _tables(folder, inside, targets, labels is not None)
        if own and source == _BY_FOLDER and not given.found:
            _refuse_two(folder, own)
        source = source or (f"label from the column {own!r}" if own else "")
    if table is not None:
        from anharmonic.data.recordings.listed import listed_inputs  # needs pyarrow

        part = listed_inputs(table, part, given)
    if labels is not None:
        part = part.with_targets(labels)
    elif targets and folder.annotations:
        part, source = _annotated(folder, part, clocks), "labels of steps from annotations"
    if targets and part.y is None:
        _refuse_none(folder, trained=bool(given.folder))
    groups, by = None, ""
    if targets or given.forecast:  # a forecast has no targets, but a split
        groups, by = _groups(folder, given, table, targets)
    columns = part.columns
    assert columns is not None
    if labels is not None and columns.target is not None and not given.found:
        # Labels from outside take its place, also for predictions and evaluations.
        ignore = (*columns.ignore, columns.target)
        columns = replace(columns, target=None, ignore=ignore)
    said = [f"a folder of {len(folder.files)} {folder.kind} files"]
    said += [f"{columns.rate:.9g} samples per second"] if columns.rate else []
    columns = replace(columns, folder=", ".join([*said, *filter(None, [source, by])]))
    return replace(
        part,
        groups=part.groups if groups is None else groups,
        ids=np.array(folder.names),
        columns=columns,
    )


def _without_listed(folder: _Folder, given: Columns, table: Any) -> Columns:
    """Return the roles for the files themselves, without the inputs from `labels.csv`."""
    names = () if table is None else tuple(table.names)
    static = tuple(name for name in given.static if name not in names)
    categorical = tuple(name for name in given.categorical if name not in names)
    kinds = tuple(one for one in given.categories if one[0] not in names)
    if folder.kind in SIGNALS and (lacking := (*static, *categorical)):
        came = listed([repr(name) for name in names]) or "no such file"
        expected = f"labels.csv of {folder.where} must have the column {lacking[0]!r}"
        raise ValueError(message(expected, came, "add it, with a row for every file"))
    return replace(given, static=static, categorical=categorical, categories=kinds)


def _signals(folder: _Folder, given: Columns, needed: bool) -> tuple[Sequences, list[NDArray[Any]]]:
    """Read sounds or arrays, and the times of their steps: seconds, or indices.

    Recordings with and without annotations are refused together if labels are needed.
    """
    signals: list[Signal] = []
    errors: list[tuple[str, Exception]] = []
    for path in folder.files:
        try:
            signals.append(SIGNALS[folder.kind](path, folder.place(path)))
        except ValueError as error:
            errors.append((folder.place(path), error))
    if errors:
        others = f" (also {listed([n for n, _ in errors[1:_SHOWN]])})" if len(errors) > 1 else ""
        raise ValueError(f"{str(errors[0][1]).rstrip('.')}{others}.")
    rate = _rate(folder, signals, given)
    if rate is not None:
        signals = [resampled(signal, rate) for signal in signals]
    named, *rest = [list(signal.channels) or signal.x.shape[1] for signal in signals]
    for path, came in zip(folder.files[1:], rest, strict=True):
        expected = f"{named}, as in {folder.place(folder.files[0])}"
        advice = "give all files the same channels in the same order; arrays are [T] or [T, F]"
        require(came == named, f"channels of {folder.place(path)}", came, expected, advice)
    labels = [signal.labels for signal in signals if signal.labels is not None]
    if needed and labels:
        _check_annotated(folder, [signal.labels is not None for signal in signals])
    y = np.concatenate(labels)[:, None] if len(labels) == len(signals) else None
    offsets = np.cumsum([0, *(len(signal.x) for signal in signals)], dtype=np.int64)
    part = Sequences(
        folder.where,
        np.concatenate([signal.x for signal in signals]),
        offsets,
        y,
        per_step=y is not None,
        channels=signals[0].channels,
        interval=None if rate is None else 1 / rate,
        columns=replace(given, found=True, rate=rate),
    )
    return part, [np.arange(len(signal.x)) / (rate or 1) for signal in signals]


def _rate(folder: _Folder, signals: Sequence[Signal], given: Columns) -> float | None:
    """Return the samples per second of all recordings; None if unknown."""
    if given.resample is not None:
        _check_resampled(folder, signals, given.resample)  # before memory is allocated
        return given.resample
    rates = Counter(signal.rate for signal in signals)
    usual = given.rate or rates.most_common(1)[0][0]
    for path, signal in zip(folder.files, signals, strict=True):
        if signal.rate != usual:
            came = f"{signal.rate} in {folder.place(path)}"
            known = ", as in training" if given.rate else ""
            expected = f"samples per second of {folder.where} must be {usual}{known}"
            advice = "resample it, or have all resampled in training with "
            advice += f"--resample {max(1, round(usual or 1))}"
            raise ValueError(message(expected, came, advice))
    return usual


def _check_resampled(folder: _Folder, signals: Sequence[Signal], rate: int) -> None:
    """Refuse a rate for recordings without one, such as tables, and an unreasonable one."""
    if not signals or any(signal.rate is None for signal in signals):
        expected = "resample needs recordings that say their samples per second, such as .wav"
        came = f"resample={rate} for {folder.kind} files"
        raise ValueError(message(expected, came, "leave out --resample (resample)"))
    size = sum(signal.x.size * rate / (signal.rate or rate) for signal in signals)
    most = max(_MOST_SAMPLES, 100 * sum(signal.x.size for signal in signals))
    if size > most:
        expected = f"resample must make at most {most:.3g} samples"
        came = f"--resample {rate}, which makes {size:.3g} samples of {folder.where}"
        raise ValueError(message(expected, came, "choose a lower rate"))


def _tables(
    folder: _Folder, given: Columns, targets: bool, labelled: bool
) -> tuple[Sequences, list[NDArray[Any]], str | None]:
    """Read recordings from tables, with the times of their steps and their target column."""
    labelled = labelled or bool(folder.annotations)
    from anharmonic.data.tables.recordings import read_recordings  # needs pyarrow

    if given.resample is not None:
        _check_resampled(folder, [], given.resample)
    files = {folder.place(path): path for path in folder.files}
    part, clocks = read_recordings(files, folder.where, given, False, targets and labelled)
    assert part.columns is not None
    own = part.columns.target
    if targets and not labelled and own is not None:
        part, clocks = read_recordings(files, folder.where, given, True)
    return part, clocks, own


# Labels and groups.


def _labels_outside(folder: _Folder, given: Columns, table: Any) -> tuple[NDArray[Any] | None, str]:
    """Return the label of every file and its source: the path or `labels.csv`."""
    inside = given.target not in (None, NO_COLUMN)
    if inside and (table is None or given.target not in table.names):
        return None, ""
    if (found := _by_pattern(folder, given, "label_pattern")) is not None:
        return found, f"label from the path by '{given.label_pattern}'"
    if folder.annotations:
        return None, ""
    if table is not None:
        from anharmonic.data.recordings.listed import listed_labels

        labels, _, column = listed_labels(table, given)
        return labels, f"label from the column {column!r} of {table.where}"
    above = [Path(name).parent.as_posix() for name in folder.names]
    known = _BY_FOLDER in given.folder  # a run knows its classes, so one folder is enough
    if "." in above or (len(set(above)) < 2 and not known):
        return None, ""
    expected = f"labels of {folder.where} must be clear"
    advice = f"say which with label_pattern (--label-pattern {_FIRST_FOLDER} for the first folder)"
    if any("/" in name for name in above):
        raise ValueError(message(expected, f"{above[0]!r}, folders in folders", advice))
    words = filter(None, (re.fullmatch(r"(.*?)[ _-]?\d+", name) for name in above))
    grouped = next((found[0] for found in words if plain(found[1]) in GROUP_WORDS), None)
    if grouped is None:
        return np.array(above), _BY_FOLDER
    if given.group_pattern is None:
        came = f"folders such as {grouped!r}, which may be groups"
        advice += f" or group_pattern (--group-pattern {_FIRST_FOLDER})"
        raise ValueError(message(expected, came, advice))
    return None, ""


def _groups(
    folder: _Folder, given: Columns, table: Any, targets: bool
) -> tuple[NDArray[Any] | None, str]:
    """Return the group of every file and its source."""
    if (found := _by_pattern(folder, given, "group_pattern")) is not None:
        return found, f"group from the path by '{given.group_pattern}'"
    if table is not None:
        from anharmonic.data.recordings.listed import listed_groups, listed_labels

        apart = bool(folder.annotations) or given.label_pattern is not None or not targets
        groups = listed_groups(table, given) if apart else listed_labels(table, given)[1]
        return groups, "" if groups is None else f"group from {table.where}"
    return None, ""


def _by_pattern(folder: _Folder, given: Columns, option: str) -> NDArray[Any] | None:
    """Return the matches of a pattern in the paths; None without a pattern.

    A pattern of training need not fit new files, whose labels may be elsewhere.
    """
    pattern = getattr(given, option)
    if pattern is None:
        return None
    found = found_by(pattern, folder.names, option)
    if "" not in found:
        return np.array(found)
    if given.found:
        return None
    advice = f"correct {option} ({flag(option)}); its first group, in brackets, is taken"
    expected = f"{option} {pattern!r} must fit all files of {folder.where}"
    came = f"{folder.names[found.index('')]}, where it finds nothing"
    raise ValueError(message(expected, came, advice))


def _listed(folder: _Folder) -> Any:
    """Return `labels.csv` as a table with a row per recording, or None."""
    if folder.labels is None:
        return None
    from anharmonic.data.recordings.listed import listed as read  # needs pyarrow

    return read(folder.labels, folder.names)


def _annotated(folder: _Folder, part: Sequences, clocks: Sequence[NDArray[Any]]) -> Sequences:
    """Return the recordings with a label per step."""
    from anharmonic.data.recordings.annotations import step_labels  # needs pyarrow

    _check_annotated(folder, [path in folder.annotations for path in folder.files])
    found = [
        step_labels(note := folder.annotations[path], folder.place(note), clock)
        for path, clock in zip(folder.files, clocks, strict=True)
    ]
    return replace(part, y=np.concatenate(found)[:, None], per_step=True)


def _check_annotated(folder: _Folder, annotated: Sequence[bool]) -> None:
    pairs = zip(folder.files, annotated, strict=True)
    lacking = [folder.place(path) for path, has_annotations in pairs if not has_annotations]
    advice = "add them, or move these recordings elsewhere"
    name = f"recordings of {folder.where} without annotations"
    require(not lacking, name, lacking[:_SHOWN], "none", advice)


def _refuse_two(folder: _Folder, column: str) -> None:
    expected = f"labels of {folder.where} must come from one place"
    came = f"folders of several names and the column {column!r}"
    advice = f"say --target-column {column!r}, or --label-pattern {_FIRST_FOLDER} for the folders, "
    advice += "which leaves the column out; --target-column none makes it an input"
    raise ValueError(message(expected, came, advice))


def _refuse_none(folder: _Folder, trained: bool) -> None:
    expected = f"recordings of {folder.where} must have labels"
    above = {Path(name).parent.as_posix() for name in folder.names}
    if len(above) == 1 and "." not in above:
        came, advice = f"one folder, {above.pop()!r}", "add a folder for each other class"
        raise ValueError(message(f"{folder.where} must have a folder for each class", came, advice))
    advice = "put each class into a folder of its name, or add labels.csv (file,label)"
    if not trained:  # a trained model reads labels as in training
        mark = "_" if "_" in folder.files[0].stem else "-"
        advice += f", or take them from the names with --label-pattern '^([^{mark}]+){mark}'"
    raise ValueError(message(expected, f"files such as {folder.names[0]}", advice))
