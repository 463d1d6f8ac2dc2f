import gzip
import struct

import numpy as np

from anharmonic_papers.tasks.prepare import (
    prepare_beijing_air,
    prepare_cifar10,
    prepare_fsdd,
    prepare_mnist,
)


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
    assert arrays.keys() == wanted.keys()
    for key, value in wanted.items():
        np.testing.assert_array_equal(arrays[key], value)
        assert arrays[key].dtype == np.uint8


def test_cifar10(tarred):
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
    arrays = prepare_cifar10([tarred("small.tar.gz", files)])
    np.testing.assert_array_equal(arrays["x_train"], images[:5].reshape(10, 3, 32, 32))
    np.testing.assert_array_equal(arrays["y_train"], labels[:5].reshape(10))
    np.testing.assert_array_equal(arrays["x_test"], images[5])
    np.testing.assert_array_equal(arrays["y_test"], labels[5])


def test_fsdd(zipped, sound):
    sounds = {"3_theo_10": [1, 2], "3_theo_2": [3], "0_theo_0": [-4, 5, 6], "9_anna_1": [7]}
    files = {
        "set-26eb9aaf/README.md": "text",
        "set-26eb9aaf/other/1_theo_1.wav": b"not a recording",
    } | {
        f"set-26eb9aaf/recordings/{name}.wav": sound(np.array(samples), 8000)
        for name, samples in sounds.items()
    }
    arrays = prepare_fsdd([zipped("small.zip", files)])
    # Sorted by speaker, digit, take.
    assert arrays["audio"].tolist() == [7, -4, 5, 6, 3, 1, 2]
    assert arrays["offsets"].tolist() == [0, 1, 4, 5, 7]
    assert arrays["label"].tolist() == [9, 0, 3, 3]
    assert arrays["speaker"].tolist() == [0, 1, 1, 1]
    assert arrays["take"].tolist() == [1, 0, 2, 10]
    assert arrays["speakers"].tolist() == ["anna", "theo"]
    assert arrays["sample_rate"] == 8000
    dtypes = {"audio": "<i2", "offsets": "<i8", "label": "|u1", "speaker": "|u1", "take": "|u1"}
    assert {key: arrays[key].dtype.str for key in dtypes} == dtypes


def test_beijing_air(zipped):
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
    inner = zipped("inner.zip", tables).read_bytes()
    outer = zipped("outer.zip", {"PRSA2017.zip": inner, "data.csv": "another table"})
    arrays = prepare_beijing_air([outer])
    assert arrays["stations"].tolist() == ["A", "B"]
    assert arrays["columns"].tolist() == [*names, "WSPM"]
    assert arrays["values"].shape == (2, 2, 11) and arrays["values"].dtype == np.float32
    np.testing.assert_array_equal(arrays["values"][1, :, 4], [300, np.nan])
    np.testing.assert_array_equal(arrays["values"][0, :, 1], [8, np.nan])
    np.testing.assert_array_equal(arrays["values"][1, :, 10], np.float32([4.4, 4.7]))
    assert arrays["wind_dir_names"].tolist() == ["", "NNW"]
    assert arrays["wind_dir"].tolist() == [[0, 1], [1, 0]]
    assert str(arrays["time0"]) == "2013-03-01T01"
