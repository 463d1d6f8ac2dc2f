"""Convert files of the canonical sources of sensor data to arrays."""

from __future__ import annotations

import io
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import require
from anharmonic.data import Arrays, read_parts
from anharmonic_papers.tasks.mel import log_mel
from anharmonic_papers.tasks.prepare import samples_of, texts_in

HAR_SIGNALS = tuple(
    f"{kind}_{axis}" for kind in ("body_acc", "body_gyro", "total_acc") for axis in "xyz"
)
KEYWORDS = (
    "unknown", "silence", "yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go",
)  # fmt: skip
_NOISE = "_background_noise_"


def prepare_har(files: Sequence[Path]) -> Arrays:
    """Convert UCI HAR: raw signals `[N, 128, 9]`, activities 0 to 5 and volunteers 1 to 30.

    The source is an archive inside which a second archive holds the files.
    """
    texts = texts_in(files[0].read_bytes(), "*_train.txt", "*_test.txt")
    arrays: Arrays = {}
    for part in ("train", "test"):
        names = [f"{signal}_{part}.txt" for signal in HAR_SIGNALS]
        wanted = [*names, f"y_{part}.txt", f"subject_{part}.txt"]
        missing = [name for name in wanted if name not in texts]
        advice = "download the data set again"
        require(not missing, f"files missing in {files[0].name}", missing, "none", advice)
        signals = [np.loadtxt(io.StringIO(texts[name]), np.float32, ndmin=2) for name in names]
        arrays[f"x_{part}"] = np.stack(signals, axis=2)
        arrays[f"y_{part}"] = (_whole(texts[f"y_{part}.txt"]) - 1).astype(np.uint8)
        arrays[f"subject_{part}"] = _whole(texts[f"subject_{part}.txt"]).astype(np.uint8)
    return arrays


def _whole(text: str) -> NDArray[np.int64]:
    return np.array(text.split(), dtype=np.int64)


def prepare_ts(files: Sequence[Path], classes: bool = False) -> Arrays:
    """Convert a data set of the UEA or TSER archive: training sequences, then test sequences.

    The archive holds `NAME_TRAIN.ts` and `NAME_TEST.ts`. Classes are numbered in their order.
    Values are not changed.
    """
    with zipfile.ZipFile(files[0]) as archive, tempfile.TemporaryDirectory() as folder:
        places = {Path(name).name: name for name in archive.namelist()}
        pairs = [
            (name, name.replace("_TRAIN", "_TEST"))
            for name in places
            if name.endswith("_TRAIN.ts") and "Dimension" not in name
        ]
        advice, expected = "download it again", "with NAME_TRAIN.ts and NAME_TEST.ts"
        found = [pair for pair in pairs if pair[1] in places]
        require(bool(found), files[0].name, sorted(places), expected, advice)
        for name in found[0]:
            (Path(folder) / name).write_bytes(archive.read(places[name]))
        path = Path(folder) / found[0][0]
        parts = read_parts(path)
    train, test = parts["train"], parts["test"]
    assert train.y is not None and test.y is not None
    lengths = np.concatenate([train.lengths, test.lengths])
    expected, advice = "of one length", "take the release whose sequences have equal lengths"
    ends = [int(lengths.min()), int(lengths.max())]
    require(ends[0] == ends[1], f"lengths in {files[0].name}", ends, expected, advice)
    x = np.concatenate([train.x, test.x]).reshape(len(lengths), ends[0], -1)
    y = np.concatenate([train.y, test.y])
    if classes:
        return {"x": x, "y": np.unique(y, return_inverse=True)[1].astype(np.uint8)}
    return {"x": x, "y": y.astype(np.float32)}


def prepare_speech_commands(files: Sequence[Path]) -> Arrays:
    """Compute log-mel features of Speech Commands, float16 `[N, 126, 80]`, in order of the paths.

    Labels are indices into `KEYWORDS`. Parts 0, 1 and 2 are training, validation and test,
    following the lists in the archive. The long recordings of noise are silence, for training.
    """
    lists: dict[str, set[str]] = {"validation_list.txt": set(), "testing_list.txt": set()}
    found: list[tuple[str, NDArray[np.float16]]] = []
    with tarfile.open(files[0]) as archive:
        for member in archive:
            name = member.name.removeprefix("./")
            opened = archive.extractfile(member) if member.isfile() else None
            if opened is None:
                continue
            if name in lists:
                lists[name] = set(opened.read().decode().split())
            elif name.endswith(".wav"):
                samples = samples_of(opened.read(), name, 16_000, "use version 2 of the data set")
                found.append((name, log_mel(samples / 32768).astype(np.float16)))
    advice = "download version 2 of the data set"
    empty = [name for name, paths in lists.items() if not paths]
    require(not empty, f"lists missing in {files[0].name}", empty, "none", advice)
    found.sort(key=lambda item: item[0])
    names = [name for name, _ in found]
    parts = [
        2 if name in lists["testing_list.txt"] else int(name in lists["validation_list.txt"])
        for name in names
    ]
    return {
        "x": np.stack([features for _, features in found]),
        "y": np.array([_keyword(name) for name in names], np.uint8),
        "part": np.array(parts, np.uint8),
    }


def _keyword(name: str) -> int:
    word = name.split("/")[0]
    if word == _NOISE:
        return KEYWORDS.index("silence")
    return KEYWORDS.index(word) if word in KEYWORDS[2:] else KEYWORDS.index("unknown")


def windows(values: NDArray[np.float32], width: int, stride: int) -> Iterator[NDArray[np.float32]]:
    """Yield the windows of one recording `[T, F]`, each `[width, F]`."""
    for start in range(0, len(values) - width + 1, stride):
        yield values[start : start + width]
