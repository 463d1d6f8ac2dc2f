"""Sounds and arrays, one recording a file."""

import struct
import sys
import wave

import numpy as np
import pytest

from anharmonic.data.recordings.signals import Signal, read_array, read_sound, resampled

WAVE = np.array([0.0, 0.5, -0.5, 0.25, -1.0], np.float32)


def write_sound(path, samples, *, width=2, rate=8000):
    x = np.atleast_2d(np.asarray(samples, np.float64).T).T
    whole = np.round(x * 2 ** (8 * width - 1)).astype(np.int64)
    whole = np.clip(whole, -(2 ** (8 * width - 1)), 2 ** (8 * width - 1) - 1)
    if width == 1:
        raw = (whole + 128).astype(np.uint8).tobytes()
    else:
        raw = b"".join(
            int(v).to_bytes(width, "little", signed=True) for v in whole.reshape(-1).tolist()
        )
    with wave.open(str(path), "wb") as file:
        file.setnchannels(x.shape[1])
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(raw)


def float_sound(samples, rate=8000):
    data = np.asarray(samples, "<f4").tobytes()
    form = struct.pack("<HHIIHH", 3, 1, rate, rate * 4, 4, 32)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form
    body += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_whole_numbers_of_every_width(tmp_path, width):
    write_sound(tmp_path / "a.wav", WAVE, width=width, rate=44100)
    found = read_sound(tmp_path / "a.wav")
    assert found.rate == 44100
    assert found.x.shape == (5, 1) and found.x.dtype == np.float32
    assert np.array_equal(found.x[:, 0], WAVE)  # all of them are exact in 8 bits


def test_channels_of_a_sound(tmp_path):
    write_sound(tmp_path / "a.wav", np.stack([WAVE, -WAVE / 2], 1))
    assert np.array_equal(read_sound(tmp_path / "a.wav").x, np.stack([WAVE, -WAVE / 2], 1))


def test_floats_need_scipy(tmp_path, monkeypatch):
    (tmp_path / "a.wav").write_bytes(float_sound(WAVE))
    pytest.importorskip("scipy")
    assert np.array_equal(read_sound(tmp_path / "a.wav").x[:, 0], WAVE)
    monkeypatch.setitem(sys.modules, "scipy.io.wavfile", None)
    with pytest.raises(ImportError, match=r"a.wav .*floats; install scipy"):
        read_sound(tmp_path / "a.wav")


@pytest.mark.parametrize(
    "raw", [b"", b"RIFF", b"no sound at all, but some text", float_sound(WAVE)[:40]]
)
def test_damaged_sounds_are_named(tmp_path, raw):
    (tmp_path / "bad.wav").write_bytes(raw)
    with pytest.raises(ValueError, match=r"bad\.wav must .*; got .*; "):
        read_sound(tmp_path / "bad.wav")


def test_a_sound_without_samples(tmp_path):
    write_sound(tmp_path / "a.wav", np.zeros((0, 1)))
    with pytest.raises(ValueError, match=r"a.wav must hold samples; got none"):
        read_sound(tmp_path / "a.wav")


def test_arrays(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(4))
    np.save(tmp_path / "b.npy", np.ones((4, 2)))
    assert read_array(tmp_path / "a.npy").x.tolist() == [[0], [1], [2], [3]]
    assert read_array(tmp_path / "b.npy").x.shape == (4, 2)
    np.save(tmp_path / "c.npy", np.ones((4, 2, 2)))
    with pytest.raises(ValueError, match=r"c.npy must hold .*\[T, F\]; got float64 \[4, 2, 2\]"):
        read_array(tmp_path / "c.npy")
    np.save(tmp_path / "d.npy", np.array([1, "a"], object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"d.npy .*without Python objects"):
        read_array(tmp_path / "d.npy")
    raw = (tmp_path / "b.npy").read_bytes()
    (tmp_path / "e.npy").write_bytes(raw[:-8])
    with pytest.raises(ValueError, match=r"e.npy .*; got ValueError"):
        read_array(tmp_path / "e.npy")


def test_resampling_keeps_what_both_rates_hold_and_drops_the_rest():
    time = np.arange(1000) / 1000
    low, high = np.sin(2 * np.pi * 20 * time), np.sin(2 * np.pi * 400 * time)
    made = resampled(Signal((low + high)[:, None].astype(np.float32), 1000), 200)
    assert made.rate == 200
    assert np.allclose(made.x[:, 0], low[::5], atol=1e-5)
    up = resampled(Signal(low[:, None].astype(np.float32), 1000), 2000)
    assert np.allclose(up.x[::2, 0], low, atol=1e-5)
