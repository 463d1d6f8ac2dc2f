"""Downloaded archives as arrays, from small archives of the same form."""

import gzip
import io
import struct
import tarfile
import wave
import zipfile

import numpy as np
import pytest

from anharmonic_papers.tasks.prepare import (
    prepare_beijing_air,
    prepare_cifar10,
    prepare_fsdd,
    prepare_mnist,
)


def zipped(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def sound(samples, rate=8000):
    """The bytes of a WAV file."""
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setparams((1, 2, rate, len(samples), "NONE", ""))
        file.writeframes(np.array(samples, "<i2").tobytes())
    return made.getvalue()


def write_idx(path, array):
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(gzip.compress(head + array.tobytes()))
    return path


def test_mnist(tmp_path):
    rng = np.random.default_rng(0)
    wanted = {
        "x_train": rng.integers(0, 256, (5, 3, 4), dtype=np.uint8),
        "y_train": np.arange(5, dtype=np.uint8),
        "x_test": rng.integers(0, 256, (2, 3, 4), dtype=np.uint8),
        "y_test": np.array([7, 9], np.uint8),
    }
    arrays = prepare_mnist([write_idx(tmp_path / key, value) for key, value in wanted.items()])
    np.testing.assert_equal(arrays, wanted)
    assert all(array.dtype == np.uint8 for array in arrays.values())


def test_cifar10(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (6, 2, 3, 32, 32), dtype=np.uint8)
    labels = rng.integers(0, 10, (6, 2), dtype=np.uint8)
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    files = {
        f"cifar-10-batches-bin/{name}": b"".join(
            bytes([b]) + a.tobytes() for a, b in zip(x, y, strict=True)
        )
        for name, x, y in reversed(list(zip(names, images, labels, strict=True)))
    }
    arrays = prepare_cifar10([tarred(tmp_path / "small.tar.gz", files)])
    np.testing.assert_array_equal(arrays["x_train"], images[:5].reshape(10, 3, 32, 32))
    np.testing.assert_array_equal(arrays["y_train"], labels[:5].reshape(10))
    np.testing.assert_array_equal(arrays["x_test"], images[5])
    np.testing.assert_array_equal(arrays["y_test"], labels[5])


def test_fsdd_is_sorted_by_speaker_digit_and_take(tmp_path):
    sounds = {"3_theo_10": [1, 2], "3_theo_2": [3], "0_theo_0": [-4, 5, 6], "9_anna_1": [7]}
    files = {f"set/recordings/{name}.wav": sound(samples) for name, samples in sounds.items()}
    files |= {"set/README.md": "text", "set/other/1_theo_1.wav": b"not a recording"}
    arrays = prepare_fsdd([zipped(tmp_path / "small.zip", files)])
    wanted = {
        "audio": np.array([7, -4, 5, 6, 3, 1, 2], np.int16),
        "offsets": np.array([0, 1, 4, 5, 7], np.int64),
        "label": np.array([9, 0, 3, 3], np.uint8),
        "speaker": np.array([0, 1, 1, 1], np.uint8),
        "take": np.array([1, 0, 2, 10], np.uint8),
        "speakers": np.array(["anna", "theo"]),
        "sample_rate": np.array(8000, np.int64),
    }
    np.testing.assert_equal(arrays, wanted)
    assert {k: v.dtype for k, v in arrays.items()} == {k: v.dtype for k, v in wanted.items()}


def test_beijing_air(tmp_path):
    """Archives inside the archive are opened; stations are sorted; NA is missing."""
    names = ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN")
    head = ",".join(("No", "year", "month", "day", "hour", *names, "wd", "WSPM", "station"))
    rows = [
        "1,2013,3,1,0,4,NA,3,4,300,77,-0.7,1023,-18.8,0,NNW,4.4,X",
        "2,2013,3,1,1,8,8,4,7,NA,77,-1.1,1023.2,-18.2,0,NA,4.7,X",
    ]
    tables = {
        f"folder/PRSA_Data_{station}_20130301-20170228.csv": "\n".join((head, *lines)) + "\n"
        for station, lines in (("B", rows), ("A", rows[::-1]))
    }
    inner = zipped(tmp_path / "inner.zip", tables).read_bytes()
    files = {"PRSA2017.zip": inner, "data.csv": "another table"}
    arrays = prepare_beijing_air([zipped(tmp_path / "outer.zip", files)])
    assert arrays["stations"].tolist() == ["A", "B"]
    assert arrays["columns"].tolist() == [*names, "WSPM"]
    assert arrays["values"].shape == (2, 2, 11) and arrays["values"].dtype == np.float32
    np.testing.assert_array_equal(arrays["values"][1, :, 4], [300, np.nan])
    np.testing.assert_array_equal(arrays["values"][0, :, 1], [8, np.nan])
    np.testing.assert_array_equal(arrays["values"][1, :, 10], np.float32([4.4, 4.7]))
    assert arrays["wind_dir_names"].tolist() == ["", "NNW"]
    assert arrays["wind_dir"].tolist() == [[0, 1], [1, 0]]
    assert str(arrays["time0"]) == "2013-03-01T01"


@pytest.mark.parametrize(
    ("prepare", "write", "files", "message"),
    [
        (prepare_cifar10, tarred, {"py/data_batch_1": b""},
         r"with data_batch_1.bin; got ..data_batch_1..; download"),
        (prepare_fsdd, zipped, {"set/recordings/0_a_0.wav": sound([0, 0], 16_000)},
         "mono, 16 bit, 8000 Hz; got .1 channels, 16 bit, 16000 Hz"),
        (prepare_beijing_air, zipped, {"data.csv": ""},
         r"with the tables PRSA_Data_\*.csv; got ..; down"),
    ],
)  # fmt: skip
def test_an_archive_of_another_form_is_refused(prepare, write, files, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        prepare([write(tmp_path / "archive", files)])
