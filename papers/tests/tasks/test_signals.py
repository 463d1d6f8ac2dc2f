"""Signals of speech and of sensors: what the archives hold, in the parts that are stated."""

import numpy as np
import pytest
import torch

from anharmonic_papers.tasks.sensors import Worms
from anharmonic_papers.tasks.signals import SPEAKERS, SpokenDigits


@pytest.fixture
def fsdd(real_data):
    return real_data("fsdd.npz")


def recordings(part):
    """Each recording of a part, on its own."""
    return [part.x[a:b] for a, b in zip(part.offsets[:-1], part.offsets[1:], strict=True)]


def test_samples_are_those_of_the_archive_with_equal_shares_of_the_digits(fsdd):
    archive = dict(np.load(fsdd / "sequence" / "fsdd.npz"))
    assert tuple(archive["speakers"]) == SPEAKERS
    task = SpokenDigits(data_dir=fsdd)
    batch = task.loaders(0, 4).test[0]
    for i, row in enumerate(np.flatnonzero(archive["take"] < 5)[:4]):
        audio = archive["audio"][archive["offsets"][row] : archive["offsets"][row + 1]]
        assert int(batch.lengths[i]) == len(audio)
        np.testing.assert_array_equal(batch.x[i, : len(audio), 0].numpy() * 32768, audio)
        assert (batch.x[i, len(audio) :] == 0).all()
        assert int(batch.y[i]) == archive["label"][row]
    _, valid, test = task.splits()
    assert torch.bincount(valid.y).tolist() == [27] * 10
    assert torch.bincount(test.y).tolist() == [30] * 10


def test_parts_may_be_of_different_speakers(fsdd):
    archive = dict(np.load(fsdd / "sequence" / "fsdd.npz"))
    whose, ends = archive["speakers"][archive["speaker"]], archive["offsets"]
    speakers = {"valid_speaker": "lucas", "test_speaker": "george"}
    _, valid, test = SpokenDigits("speaker", **speakers, data_dir=fsdd).splits()
    for part, name in ((valid, "lucas"), (test, "george")):
        wanted = {
            archive["audio"][ends[r] : ends[r + 1]].tobytes() for r in np.where(whose == name)[0]
        }
        found = {(one * 32768).short().numpy().tobytes() for one in recordings(part)}
        assert found == wanted


def test_max_length_comes_before_subsample(fsdd):
    whole = SpokenDigits(data_dir=fsdd).splits().test
    short = SpokenDigits(max_length=2000, subsample=3, train_size=7, data_dir=fsdd).splits()
    assert len(short.train) == 7 and int(short.test.lengths.max()) == 667
    for long, one in zip(recordings(whole), recordings(short.test), strict=True):
        assert torch.equal(long[:2000][::3], one)


def test_recordings_of_unit_power(fsdd):
    raw = SpokenDigits(max_length=50, data_dir=fsdd).splits().test
    scaled = SpokenDigits(max_length=50, unit_rms=True, data_dir=fsdd).splits().test
    for one, other in zip(recordings(raw), recordings(scaled), strict=True):
        rms = one.square().mean().sqrt()
        assert torch.allclose(other, one / rms) if rms > 0 else other.eq(0).all()


def test_several_samples_a_step_are_the_same_samples(fsdd):
    single = SpokenDigits(data_dir=fsdd, train_size=3).splits().test
    task = SpokenDigits(samples_per_step=20, data_dir=fsdd, train_size=3)
    framed = task.splits().test
    assert task.input_size == framed.x.shape[1] == 20
    for samples, steps in zip(recordings(single), recordings(framed), strict=True):
        rest = steps.flatten()[len(samples) :]
        assert torch.equal(steps.flatten()[: len(samples)], samples[:, 0])
        assert len(rest) < 20 and not rest.any()


def test_worms(tiny_archive, monkeypatch):
    monkeypatch.setattr(Worms, "steps", 9)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((258, 9)).astype(np.float32), rng.integers(1, 6, 258)
    arrays = {"x_train": x[:181], "y_train": y[:181], "x_test": x[181:], "y_test": y[181:]}
    data = tiny_archive(Worms, arrays)
    whole = Worms(data_dir=data).splits()
    assert [len(part) for part in whole] == [180, 39, 39] and whole.test.x.shape[1:] == (9, 1)
    strain = {row.tobytes(): label - 1 for row, label in zip(x, y, strict=True)}
    for part in whole:
        found = [strain.pop(row[:, 0].numpy().tobytes()) for row in part.x]
        assert found == part.y.tolist()
    assert not strain
    assert torch.equal(Worms(last=4, data_dir=data).splits().test.x, whole.test.x[:, -4:])
    drawn, again = (Worms(random=7, data_dir=data).splits() for _ in range(2))
    assert torch.equal(drawn.valid.x, again.valid.x) and drawn.train.x.shape == (180, 7, 1)
    found = [(whole.test.x[0] == step).nonzero()[0, 0] for step in drawn.test.x[0, :, 0]]
    assert found == sorted(found)
