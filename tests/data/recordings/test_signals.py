"""Sounds and arrays, one recording a file."""

import struct
import sys

import numpy as np
import pytest

from anharmonic.data.recordings.signals import Signal, read_array, read_sound, resampled

WAVE = np.array([0.0, 0.5, -0.5, 0.25, -1.0], np.float32)


def float_sound(samples, rate=8000):
    data = np.asarray(samples, "<f4").tobytes()
    form = struct.pack("<HHIIHH", 3, 1, rate, rate * 4, 4, 32)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form
    body += b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_whole_numbers_of_every_width_and_several_channels(sound, tmp_path, width):
    samples = np.stack([WAVE, -WAVE / 2], 1)
    sound("a.wav", samples, width=width, rate=44100)
    found = read_sound(tmp_path / "a.wav", "a.wav")
    assert found.rate == 44100 and found.x.dtype == np.float32
    np.testing.assert_allclose(found.x, samples, atol=0.002)
    assert np.array_equal(found.x[:, 0], WAVE)


def test_floats_need_scipy(tmp_path, monkeypatch):
    (tmp_path / "a.wav").write_bytes(float_sound(WAVE))
    pytest.importorskip("scipy")
    assert np.array_equal(read_sound(tmp_path / "a.wav", "a.wav").x[:, 0], WAVE)
    monkeypatch.setitem(sys.modules, "scipy.io.wavfile", None)
    with pytest.raises(ImportError, match=r"a.wav .*floats; install scipy"):
        read_sound(tmp_path / "a.wav", "a.wav")


@pytest.mark.parametrize("raw", [b"", b"no sound at all, but some text", float_sound(WAVE)[:40]])
def test_damaged_sounds_are_named(sound, tmp_path, raw):
    (tmp_path / "bad.wav").write_bytes(raw)
    with pytest.raises(ValueError, match=r"bad\.wav must .*; got .*; "):
        read_sound(tmp_path / "bad.wav", "bad.wav")
    sound("a.wav", np.zeros((0, 1)))
    with pytest.raises(ValueError, match=r"a.wav must hold samples; got none"):
        read_sound(tmp_path / "a.wav", "a.wav")


def test_arrays(tmp_path):
    def read(array, end=None):
        np.save(tmp_path / "a.npy", array, allow_pickle=True)
        (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:end])
        return read_array(tmp_path / "a.npy", "a.npy").x

    assert read(np.arange(4)).tolist() == [[0], [1], [2], [3]]
    assert read(np.ones((4, 2))).shape == (4, 2)
    with pytest.raises(ValueError, match=r"a.npy .*; got ValueError"):
        read(np.ones((4, 2)), -8)
    with pytest.raises(ValueError, match=r"a.npy must hold .*\[T, F\]; got float64 \[4, 2, 2\]"):
        read(np.ones((4, 2, 2)))
    with pytest.raises(ValueError, match=r"a.npy .*without Python objects"):
        read(np.array([1, "a"], object))


def test_resampling_keeps_what_both_rates_hold_and_gaps():
    def made(x, rate, other):
        found = resampled(Signal(np.float32(x).reshape(len(x), -1), rate), other)
        assert found.rate == other
        return found.x

    quick, wave = np.resize([1, -1], 8), np.cos(np.pi / 2 * np.arange(8))
    assert np.allclose(made(quick, 8, 16)[::2, 0], quick, atol=1e-6)
    assert np.allclose(made(wave, 8, 4)[:, 0], wave[::2], atol=1e-6)  # 2 Hz, the most of 4 a second
    time = np.arange(1000) / 1000
    low, high = np.sin(2 * np.pi * 20 * time), np.sin(2 * np.pi * 400 * time)
    assert np.allclose(made(low + high, 1000, 200)[:, 0], low[::5], atol=1e-5)
    assert np.allclose(made(low, 1000, 2000)[::2, 0], low, atol=1e-5)
    level = np.full((100, 2), 80.0)
    level[40:50, 0] = level[:, 1] = np.nan
    x = made(level, 100, 50)
    assert np.flatnonzero(np.isnan(x[:, 0])).tolist() == list(range(20, 25))
    assert np.isnan(x[:, 1]).all() and np.allclose(x[~np.isnan(x)], 80, atol=1e-3)


@pytest.mark.parametrize("rate, labels", [(5, [*"aabbb"]), (20, ["a"] * 8 + ["b"] * 12)])
def test_labels_follow_another_rate(rate, labels):
    signal = Signal(np.zeros((10, 1), "f4"), 10, labels=np.array(["a"] * 4 + ["b"] * 6))
    assert resampled(signal, rate).labels.tolist() == labels
