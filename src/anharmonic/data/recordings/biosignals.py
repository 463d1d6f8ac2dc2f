"""EDF, BDF and WFDB recordings with annotations, read through their libraries."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anharmonic._checks import message, missing_extra
from anharmonic.data.recordings.signals import (
    Signal,
    bad_file,
    checked_signal,
    labels_of_spans,
    of_length,
)


def read_edf(path: Path, where: str) -> Signal:
    """Read an `.edf` or `.bdf` file, `where` in messages; all signals get the highest rate."""
    try:
        import edfio
    except ModuleNotFoundError as error:
        raise missing_extra("edfio", "edf", f"reading {path.suffix} files") from error
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            file = (edfio.read_bdf if path.suffix.lower() == ".bdf" else edfio.read_edf)(path)
            found = [(s.data, s.sampling_frequency, s.label) for s in file.signals]
            marks = [(a.onset, a.duration or 0.0, a.text) for a in file.annotations]
            pauses = file.reserved[3:5] == "+D" and not file.is_continuous
    except (ValueError, OSError, IndexError, KeyError, TypeError, MemoryError) as error:
        raise bad_file(where, f"an {path.suffix[1:].upper()} file", error) from error
    if not found:
        came, advice = "annotations alone", "write them beside it, as NAME.labels.csv"
        raise ValueError(message(f"{where} must hold signals", came, advice))
    if lost := [str(one.message) for one in caught if "data record" in str(one.message)]:
        text = message(f"{where} should be whole", lost[-1].rstrip("."), "copy it again")
        warnings.warn(text, stacklevel=2)
    if pauses:
        came, advice = "pauses between its data records (EDF+D)", "cut it into files without pauses"
        raise ValueError(message(f"{where} must be one continuous recording", came, advice))
    # All signals last equally long, but some have less than one sample per second.
    longest = max(len(data) for data, *_ in found)
    columns = [of_length(np.asarray(data, np.float32)[:, None], longest) for data, *_ in found]
    hertz = max(hertz for _, hertz, _ in found)
    names = [label for *_, label in found]
    return _with_marks(where, np.concatenate(columns, axis=1), hertz, names, marks)


def read_wfdb(path: Path, where: str) -> Signal:
    """Read a record of WFDB (PhysioNet): `.hea`, and its signals and `.atr` beside it.

    Messages call the header `where`.
    """
    try:
        import wfdb
    except ModuleNotFoundError as error:
        raise missing_extra("wfdb", "wfdb", "reading .hea files") from error
    name, marks = str(path.with_suffix("")), []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            record = wfdb.rdrecord(name)
            there = path.with_suffix(".atr").is_file()
            notes = wfdb.rdann(name, "atr") if there else None
        x, names = np.asarray(record.p_signal, np.float32), list(record.sig_name)
        if notes is not None:
            hertz = notes.fs or record.fs  # annotations may have a finer clock
            pairs = zip(notes.sample, notes.symbol, strict=True)
            marks = [(at / hertz, 0.0, symbol) for at, symbol in pairs]
    except (ValueError, OSError, IndexError, KeyError, TypeError, AttributeError) as error:
        raise bad_file(where, "the header of a WFDB record", error) from error
    return _with_marks(where, x, record.fs, names, marks)


def _with_marks(
    where: str, x: Any, hertz: float, names: Sequence[str], marks: list[tuple[float, float, str]]
) -> Signal:
    """Return a recording, with a label per step if it has annotations in seconds."""
    labels = None
    if marks:
        starts, spans, texts = (np.array(part) for part in zip(*marks, strict=True))
        ends = starts + spans if spans.any() else None
        clock = np.arange(len(x)) / hertz
        labels = labels_of_spans(starts, ends, texts, clock, where)
    rate = float(f"{hertz:.9g}")  # equal for all files, however their headers write it
    return checked_signal(where, x, rate, tuple(str(name) for name in names), labels)
