"""Convert files of the canonical sources to arrays."""

import csv
import gzip
import io
import tarfile
import wave
import zipfile
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from anharmonic._checks import require
from anharmonic.data import Arrays


def prepare_mnist(files: Sequence[Path]) -> Arrays:
    """Convert the four IDX files of MNIST: images and labels of training, then of test."""
    keys = ("x_train", "y_train", "x_test", "y_test")
    arrays: Arrays = {}
    for key, file in zip(keys, files, strict=True):
        content = gzip.decompress(file.read_bytes())
        sizes = np.frombuffer(content, ">u4", content[3], 4)
        values = np.frombuffer(content, np.uint8, offset=4 + 4 * content[3])
        arrays[key] = values.reshape(sizes).copy()
    return arrays


def prepare_cifar10(files: Sequence[Path]) -> Arrays:
    """Convert the binary CIFAR-10 archive: images `[N, 3, 32, 32]`, in the order of its batches."""
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    parts = []
    with tarfile.open(files[0]) as archive:
        members = {Path(member.name).name: member for member in archive.getmembers()}
        for name in names:
            advice = "download the binary version of CIFAR-10"
            found = sorted(members)
            require(name in members, files[0].name, found, f"an archive with {name}", advice)
            opened = archive.extractfile(members[name])
            assert opened is not None
            parts.append(np.frombuffer(opened.read(), np.uint8).reshape(-1, 3073))
    train, test = np.concatenate(parts[:5]), parts[5]
    arrays: Arrays = {}
    for key, rows in (("train", train), ("test", test)):
        arrays[f"x_{key}"] = np.ascontiguousarray(rows[:, 1:]).reshape(-1, 3, 32, 32)
        arrays[f"y_{key}"] = np.ascontiguousarray(rows[:, 0])
    return arrays


def prepare_fsdd(files: Sequence[Path]) -> Arrays:
    """Convert the Free Spoken Digit Dataset: recordings sorted by speaker, digit and take."""
    found = []
    with zipfile.ZipFile(files[0]) as archive:
        for name in archive.namelist():
            if not name.endswith(".wav") or "/recordings/" not in name:
                continue
            digit, speaker, take = Path(name).stem.split("_")
            advice = "use the revision named in the documentation"
            with wave.open(io.BytesIO(archive.read(name))) as sound:
                form = sound.getnchannels(), 8 * sound.getsampwidth(), sound.getframerate()
                came = "{} channels, {} bit, {} Hz".format(*form)
                require(form == (1, 16, 8000), name, came, "mono, 16 bit, 8000 Hz", advice)
                samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
            found.append((speaker, int(digit), int(take), samples))
    found.sort(key=lambda item: item[:3])
    speakers = sorted({item[0] for item in found})
    lengths = [len(item[3]) for item in found]
    return {
        "audio": np.concatenate([item[3] for item in found]),
        "offsets": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        "label": np.array([item[1] for item in found], np.uint8),
        "speaker": np.array([speakers.index(item[0]) for item in found], np.uint8),
        "take": np.array([item[2] for item in found], np.uint8),
        "speakers": np.array(speakers),
        "sample_rate": np.array(8000, np.int64),
    }


AIR_COLUMNS = ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")


def prepare_beijing_air(files: Sequence[Path]) -> Arrays:
    """Convert the hourly tables of the 12 stations, in alphabetical order; NaN for missing values.

    The source is an archive inside which a second archive holds the tables.
    """
    texts = texts_in(files[0].read_bytes(), "PRSA_Data_*.csv")
    expected = "an archive with the tables PRSA_Data_*.csv"
    require(bool(texts), files[0].name, list(texts), expected, "download it again")
    tables = dict(sorted((name.split("_")[2], text) for name, text in texts.items()))
    rows = {station: list(csv.DictReader(io.StringIO(t))) for station, t in tables.items()}
    values = [
        [[float(row[name].replace("NA", "") or "nan") for name in AIR_COLUMNS] for row in station]
        for station in rows.values()
    ]
    winds = [[row["wd"].replace("NA", "") for row in station] for station in rows.values()]
    names = sorted({wind for station in winds for wind in station} | {""})
    first = next(iter(rows.values()))[0]
    start = f"{first['year']}-{int(first['month']):02}-{int(first['day']):02}"
    return {
        "values": np.array(values, np.float32),
        "columns": np.array(AIR_COLUMNS),
        "stations": np.array(list(rows)),
        "wind_dir": np.array([[names.index(w) for w in station] for station in winds], np.uint8),
        "wind_dir_names": np.array(names),
        "time0": np.array(f"{start}T{int(first['hour']):02}"),
    }


def texts_in(content: bytes, *kinds: str) -> dict[str, str]:
    """Return the texts in an archive and its nested archives whose names fit, by file name."""
    found: dict[str, str] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            if "__MACOSX" in name:
                continue
            if name.endswith(".zip"):
                found |= texts_in(archive.read(name), *kinds)
            elif any(fnmatch(Path(name).name, kind) for kind in kinds):
                found[Path(name).name] = archive.read(name).decode()
    return found
