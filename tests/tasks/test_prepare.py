import gzip
import io
import struct
import tarfile
import wave
import zipfile
from pathlib import Path

import numpy as np
import pytest

from anharmonic.tasks.prepare import prepare_cifar10, prepare_fsdd, prepare_mnist


def write_idx(path: Path, array: np.ndarray) -> Path:
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(gzip.compress(head + array.tobytes()))
    return path


def write_wav(samples: np.ndarray, rate: int = 8000) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(samples.astype("<i2").tobytes())
    return out.getvalue()


def test_mnist(tmp_path: Path) -> None:
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


def test_cifar10(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "small.tar.gz"
    images = rng.integers(0, 256, (6, 2, 3, 32, 32), dtype=np.uint8)
    labels = rng.integers(0, 10, (6, 2), dtype=np.uint8)
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    with tarfile.open(path, "w:gz") as archive:
        for name, x, y in reversed(list(zip(names, images, labels, strict=True))):
            content = b"".join(bytes([b]) + a.tobytes() for a, b in zip(x, y, strict=True))
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    arrays = prepare_cifar10([path])
    np.testing.assert_array_equal(arrays["x_train"], images[:5].reshape(10, 3, 32, 32))
    np.testing.assert_array_equal(arrays["y_train"], labels[:5].reshape(10))
    np.testing.assert_array_equal(arrays["x_test"], images[5])
    np.testing.assert_array_equal(arrays["y_test"], labels[5])


def test_cifar10_of_another_form(tmp_path: Path) -> None:
    path = tmp_path / "python.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("cifar-10-batches-py/data_batch_1"))
    with pytest.raises(ValueError, match=r"must hold data_batch_1.bin; got data_batch_1; download"):
        prepare_cifar10([path])


def test_fsdd(tmp_path: Path) -> None:
    path = tmp_path / "small.zip"
    sounds = {
        "3_theo_10": [1, 2],
        "3_theo_2": [3],
        "0_theo_0": [-4, 5, 6],
        "9_anna_1": [7],
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("set-26eb9aaf/README.md", "text")
        archive.writestr("set-26eb9aaf/other/1_theo_1.wav", b"not a recording")
        for name, samples in sounds.items():
            archive.writestr(f"set-26eb9aaf/recordings/{name}.wav", write_wav(np.array(samples)))
    arrays = prepare_fsdd([path])
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


def test_fsdd_of_another_rate(tmp_path: Path) -> None:
    path = tmp_path / "small.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("set/recordings/0_a_0.wav", write_wav(np.zeros(3), rate=16000))
    with pytest.raises(
        ValueError, match=r"mono, 16 bit, 8000 Hz; got 1 channels, 16 bit, 16000 Hz"
    ):
        prepare_fsdd([path])
