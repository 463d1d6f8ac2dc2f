import wave

import numpy as np
import pytest

from anharmonic.data import Columns
from anharmonic.data.readers import read_parts

pytest.importorskip("pyarrow")
# All of them are exact in 8 bits.
WAVE = np.array([0.0, 0.5, -0.5, 0.25, -1.0], np.float32)


def write_sound(path, samples=WAVE, *, width=2, rate=8000):
    x = np.atleast_2d(np.asarray(samples, np.float64).T).T
    most = 2 ** (8 * width - 1)
    whole = np.clip(np.round(x * most), -most, most - 1).astype("<i8")
    if width == 1:
        whole += 128  # bytes have no sign
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((x.shape[1], width, rate, len(x), "NONE", ""))
        file.writeframes(whole.reshape(-1, 1).view(np.uint8)[:, :width].tobytes())


@pytest.fixture
def sound(tmp_path):
    """Writes a sound in the test's folder."""
    return lambda name, *samples, **how: write_sound(tmp_path / name, *samples, **how)


@pytest.fixture
def sounds(sound):
    """Writes sounds that differ in their length: twice the samples of `WAVE`, three times ..."""

    def write(*names, **how):
        for number, name in enumerate(names):
            sound(name, np.tile(WAVE, number + 2), **how)

    return write


@pytest.fixture
def put(tmp_path):
    """Writes files by name, of text or of an array."""

    def write(files):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content) if isinstance(content, str) else np.save(path, content)

    return write


@pytest.fixture
def read(tmp_path):
    """Reads the test's folder, or what of it is named; `known` are the columns of training."""

    def whole(name=".", targets=True, known=None, **given):
        columns = known or Columns(**given)
        return read_parts(tmp_path / name, targets=targets, columns=columns)["all"]

    return whole
