"""Folders of recordings that are odd, damaged or unlike those of training."""

import os
import struct
import wave
from pathlib import Path

import numpy as np
import pytest

from anharmonic.data.recordings import data_files


def sound(path, samples=50):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(100)
        noise = np.random.default_rng(samples).integers(-999, 999, samples, dtype=np.int16)
        file.writeframes(noise.tobytes())


def table(path):
    path.write_text("time,a\n" + "".join(f"{k},{k % 3}\n" for k in range(20)))


def array(path):
    np.save(path, np.zeros((20, 2)))


def classes(write=sound, suffix="wav", names=("cat", "dog"), root="d", count=8):
    for name in names:
        Path(root, name).mkdir(parents=True)
        for number in range(count):
            write(Path(root, name, f"{number}.{suffix}"))


def listed(rows):
    Path("d").mkdir()
    for number in range(12):
        sound(f"d/{number}.wav")
    Path("d/labels.csv").write_text("file,label\n" + "".join(f"{row}\n" for row in rows))


ROWS = [f"{number}.wav,{'ab'[number % 2]}" for number in range(12)]


@pytest.fixture
def run(cli, tiny):
    """Trains on the folder d; gives the run folder."""

    def train(*flags):
        code, _, error = cli("train", "lem", "d", *tiny, *flags)
        assert code == 0, error
        return next(path for path in Path("runs").iterdir() if path.is_dir())

    return train


def without_rate():
    classes()
    path = Path("d/cat/0.wav")
    content = bytearray(path.read_bytes())
    content[24:28] = struct.pack("<I", 0)
    path.write_bytes(content)


def no_text():
    classes()
    sound("d/cat/a\udcffb.wav")


@pytest.mark.parametrize(
    "make, flags, names",
    [
        (lambda: listed([*ROWS, ROWS[3]]), (), "2 rows for 3.wav"),
        (lambda: listed([*ROWS, "./3.wav,b"]), (), "2 rows for 3.wav"),
        (lambda: listed([]), (), "rows in labels.csv"),
        (lambda: listed(ROWS), ("--static", "label"), "column of labels"),
        (lambda: classes(names=["cat"]), (), "one folder, 'cat'"),
        (without_rate, (), "0.wav"),
        (classes, ("--resample", 10**9), "resample"),
        (lambda: classes(table, "csv"), ("--resample", 50), "resample"),
        (lambda: classes(array, "npy"), ("--resample", 50), "resample"),
        (no_text, (), "udcff"),
    ],
)
def test_folders_that_are_refused(make, flags, names, refused_by_command):
    make()
    refused_by_command("train", "lem", "d", *flags, names=names)


def test_links_are_followed_once():
    classes(root="real", count=2)
    Path("d").mkdir()
    Path("d/cat").symlink_to(Path("real/cat").absolute())
    Path("d/dog").symlink_to(Path("real/dog").absolute())
    Path("real/cat/above").symlink_to("..")
    Path("real/cat/self.wav").symlink_to("self.wav")
    found = [path.as_posix() for path in data_files(Path("d"))]
    assert [path for path in found if "above" not in path] == [
        f"d/{name}/{number}.wav" for name in ("cat", "dog") for number in range(2)
    ]
    assert len({os.path.realpath(path) for path in found}) == len(found)


@pytest.mark.parametrize("claimed, warns", [(100, True), (2**32 - 16, False)])
@pytest.mark.filterwarnings("default:.*should be whole")
def test_a_sound_that_was_cut(claimed, warns, cli, tiny):
    # Who streams a sound claims the most there can be.
    classes()
    content = bytearray(Path("d/cat/0.wav").read_bytes()[:-40])
    content[40:44] = struct.pack("<I", claimed)
    Path("d/cat/x.wav").write_bytes(content)
    code, _, error = cli("train", "lem", "d", *tiny)
    assert code == 0
    assert ("30 of 50 samples" in error) == warns


def test_a_table_where_training_had_sounds(run, refused_by_command):
    classes()
    folder = run()
    Path("one.csv").write_text("time,a\n0,1\n1,2\n")
    refused_by_command("predict", folder, "one.csv", names="one.csv")


@pytest.mark.parametrize("output", ["d/cat/0.csv", "d/0.wav", "d/labels.csv"])
def test_predictions_do_not_replace_a_recording(output, run, refused_by_command):
    classes(table, "csv") if output == "d/cat/0.csv" else listed(ROWS)
    folder, before = run(), Path(output).read_bytes()
    refused_by_command("predict", folder, "d", "--output", output, names="--output")
    assert Path(output).read_bytes() == before


def test_predictions_beside_recordings_are_replaced(run, cli):
    classes()
    folder = run()
    for word in ("wrote", "replaced"):
        code, out, error = cli("predict", folder, "d", "--output", "d/predictions.csv")
        assert code == 0 and word in out, error
