"""Files in the form of the canonical sources, made small."""

import numpy as np
import pytest
import torch

from anharmonic_papers.tasks import mel
from anharmonic_papers.tasks.prepare_sensors import (
    HAR_SIGNALS,
    KEYWORDS,
    prepare_har,
    prepare_speech_commands,
    prepare_ts,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def har_files(rng):
    """As in UCI HAR: numbers in columns of fixed width, three train and two test windows."""
    values = {"train": rng.standard_normal((3, 4, 9)), "test": rng.standard_normal((2, 4, 9))}
    files = {"UCI HAR Dataset/README.txt": "no data", "__MACOSX/._y_train.txt": b"\xff"}
    for part, x in values.items():
        folder = f"UCI HAR Dataset/{part}"
        for place, signal in enumerate(HAR_SIGNALS):
            lines = ["".join(f"{value: 16.7e}" for value in row) for row in x[:, :, place]]
            files[f"{folder}/Inertial Signals/{signal}_{part}.txt"] = "\n".join(lines) + "\n"
        files[f"{folder}/y_{part}.txt"] = "\n".join(["5", "1", "6"][: len(x)]) + "\n"
        files[f"{folder}/subject_{part}.txt"] = "\n".join(["1", "27", "30"][: len(x)]) + "\n"
    return values, files


@pytest.mark.parametrize("nested", [False, True])
def test_har(rng, zipped, nested):
    values, files = har_files(rng)
    path = zipped("har.zip", files)
    if nested:
        inner = {"UCI HAR Dataset.zip": path.read_bytes(), "UCI HAR Dataset.names": "names"}
        path = zipped("outer.zip", inner)
    arrays = prepare_har([path])
    for part, x in values.items():
        np.testing.assert_allclose(arrays[f"x_{part}"], x, rtol=1e-6, atol=1e-7)
        assert arrays[f"x_{part}"].dtype == np.float32
    assert arrays["y_train"].tolist() == [4, 0, 5]
    assert arrays["subject_test"].tolist() == [1, 27]


TS = """# Worms
@problemName EigenWorms
@timeStamps false
@missing false
@univariate false
@dimensions 2
@equalLength true
@seriesLength 3
@classLabel true 1 2 5
@data
"""


def test_ts_of_classes(zipped):
    train = TS + "1,2,3:4,5,6:2\n7,8,9:0,0,1:1\n"
    test = TS + "0,1,0:1,0,1:5\n"
    path = zipped("E.zip", {"E_TRAIN.ts": train, "E_TEST.ts": test, "E.txt": "about"})
    arrays = prepare_ts([path], classes=True)
    assert arrays["x"].shape == (3, 3, 2) and arrays["x"].dtype == np.float32
    assert arrays["x"][0].tolist() == [[1, 4], [2, 5], [3, 6]]
    assert arrays["y"].tolist() == [1, 0, 2] and arrays["y"].dtype == np.uint8


def test_ts_of_values(zipped):
    head = TS.replace("@classLabel true 1 2 5", "@targetLabel true")
    parts = {"TRAIN": "1,2,3:4,5,6:81.5\n", "TEST": "0,1,0:1,0,1:60.25\n"}
    names = {f"BIDMC32HR/BIDMC32HR_{part}.ts": head + row for part, row in parts.items()}
    arrays = prepare_ts([zipped("B.zip", names)])
    assert arrays["y"].tolist() == [81.5, 60.25] and arrays["y"].dtype == np.float32


@pytest.fixture
def spoken(rng, sound):
    return lambda count=16_000, rate=16_000: sound(rng.integers(-9999, 9999, count), rate)


def test_speech_commands(spoken, tarred):
    files = {
        "./validation_list.txt": b"yes/a_nohash_0.wav\n",
        "./testing_list.txt": b"go/b_nohash_0.wav\nbird/b_nohash_0.wav\n",
        "./_background_noise_/pink.wav": spoken(40_000),
        "./README.md": b"about",
        "./yes/a_nohash_0.wav": spoken(),
        "./yes/c_nohash_0.wav": spoken(9000),
        "./go/b_nohash_0.wav": spoken(),
        "./bird/b_nohash_0.wav": spoken(),
    }
    arrays = prepare_speech_commands([tarred("speech.tar.gz", files)])
    assert arrays["x"].shape == (5, 126, 80) and arrays["x"].dtype == np.float16
    # By path: noise, bird, go, yes (a), yes (c).
    assert [KEYWORDS[k] for k in arrays["y"]] == ["silence", "unknown", "go", "yes", "yes"]
    assert arrays["part"].tolist() == [0, 2, 2, 1, 0]
    x = arrays["x"].astype(np.float64)
    np.testing.assert_allclose(x.mean((1, 2)), 0, atol=1e-3)
    np.testing.assert_allclose(x.std((1, 2)), 1, atol=1e-3)
    assert (x[4, 71:] == x[4].max()).all(), "a short word is filled with the largest value"


def test_mel_filters_have_unit_area_and_sum_neighbours():
    filters = mel.mel_filters()
    width = mel.RATE / mel.FFT
    wide = filters[40:]  # the narrow ones fall between few frequencies
    np.testing.assert_allclose(wide.sum(1) * width, 1, rtol=0.02)
    peaks = filters.argmax(1) * width
    assert (np.diff(peaks) >= 0).all() and 40 < peaks[0] < 100 and 7000 < peaks[-1] < 8000
    # Linear below 1000 Hz, logarithmic above: 6.4 times in 27 mels.
    assert mel._mels(500.0) == pytest.approx(7.5)
    assert mel._mels(6400.0) - mel._mels(1000.0) == pytest.approx(27)
    np.testing.assert_allclose(mel._hertz(np.array([7.5, 42.0])), [500.0, 6400.0])


def test_spectra_are_those_of_a_short_time_fourier_transform(rng):
    sound = rng.standard_normal(16_000)
    window = torch.hann_window(1024, dtype=torch.float64)
    spectrum = torch.stft(
        torch.from_numpy(sound), 1024, 128, window=window, pad_mode="reflect", return_complex=True
    ).abs()
    bands = torch.from_numpy(mel.mel_filters()) @ spectrum
    decibels = 10 * (bands / bands.max()).log10()
    wanted = ((decibels - decibels.mean()) / decibels.std(correction=0)).T
    np.testing.assert_allclose(mel.log_mel(sound), wanted.numpy(), rtol=1e-9, atol=1e-9)
