import itertools

import numpy as np
import pytest
import torch

from anharmonic_papers.tasks.signals import SPEAKERS, SpokenDigits


@pytest.fixture
def fsdd(real_data):
    return real_data("fsdd.npz")


def recordings(part):
    x, offsets = part.x.numpy(), part.offsets.numpy()
    return {x[a:b].tobytes() for a, b in itertools.pairwise(offsets)}


def test_official_split(fsdd):
    task = SpokenDigits(data_dir=fsdd)
    train, valid, test = task.splits()
    assert [len(train), len(valid), len(test)] == list(task.sizes.values()) == [2430, 270, 300]
    assert torch.bincount(test.y).tolist() == [30] * 10
    assert torch.bincount(valid.y).tolist() == [27] * 10
    parts = [recordings(part) for part in (train, valid, test)]
    assert not parts[0] & parts[1]
    assert not parts[0] & parts[2]
    assert not parts[1] & parts[2]


def test_samples_are_those_of_the_archive(fsdd):
    archive = dict(np.load(fsdd / "sequence" / "fsdd.npz"))
    assert tuple(archive["speakers"]) == SPEAKERS
    batch = SpokenDigits(data_dir=fsdd).loaders(0, 4).test[0]
    rows = np.flatnonzero(archive["take"] < 5)[:4]
    for i, row in enumerate(rows):
        audio = archive["audio"][archive["offsets"][row] : archive["offsets"][row + 1]]
        assert int(batch.lengths[i]) == len(audio)
        np.testing.assert_array_equal(batch.x[i, : len(audio), 0].numpy() * 32768, audio)
        assert (batch.x[i, len(audio) :] == 0).all()
        assert int(batch.y[i]) == archive["label"][row]


def test_speakers_are_disjoint(fsdd):
    task = SpokenDigits(
        split="speaker", valid_speaker="lucas", test_speaker="george", data_dir=fsdd
    )
    train, valid, test = task.splits()
    assert [len(train), len(valid), len(test)] == list(task.sizes.values()) == [2000, 500, 500]
    archive = dict(np.load(fsdd / "sequence" / "fsdd.npz"))
    for part, names in ((valid, {"lucas"}), (test, {"george"})):
        rows = np.flatnonzero(np.isin(archive["speakers"][archive["speaker"]], list(names)))
        ends = archive["offsets"]
        wanted = {
            (archive["audio"][ends[r] : ends[r + 1]].astype(np.float32) / 32768)[:, None].tobytes()
            for r in rows
        }
        assert recordings(part) == wanted
    assert not recordings(train) & (recordings(valid) | recordings(test))


def test_max_length_comes_before_subsample(fsdd):
    whole = SpokenDigits(data_dir=fsdd).splits().test
    short = SpokenDigits(max_length=2000, subsample=3, train_size=7, data_dir=fsdd).splits()
    assert len(short.train) == 7
    for i in (0, 99):
        a, b = whole.offsets[i], whole.offsets[i + 1]
        c, d = short.test.offsets[i], short.test.offsets[i + 1]
        assert torch.equal(whole.x[a:b][:2000][::3], short.test.x[c:d])
    lengths = short.test.lengths
    assert int(lengths.max()) == 667


def test_recordings_of_unit_power(fsdd):
    raw = SpokenDigits(max_length=50, data_dir=fsdd).splits().test
    scaled = SpokenDigits(max_length=50, unit_rms=True, data_dir=fsdd).splits().test
    for start, end in zip(raw.offsets[:-1], raw.offsets[1:], strict=True):
        one, other = raw.x[start:end], scaled.x[start:end]
        rms = one.square().mean().sqrt()
        assert torch.allclose(other, one / rms) if rms > 0 else other.eq(0).all()


def test_several_samples_a_step_are_the_same_samples(fsdd):
    single = SpokenDigits(data_dir=fsdd, train_size=3).splits().test
    task = SpokenDigits(samples_per_step=20, data_dir=fsdd, train_size=3)
    framed = task.splits().test
    assert task.input_size == framed.x.shape[1] == 20
    for i in (0, 7, 299):
        samples = single.x[single.offsets[i] : single.offsets[i + 1], 0]
        steps = framed.x[framed.offsets[i] : framed.offsets[i + 1]].flatten()
        assert torch.equal(steps[: len(samples)], samples)
        assert len(steps) - len(samples) < 20 and not steps[len(samples) :].any()
