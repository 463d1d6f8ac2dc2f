"""Signals of sensors: their parts and targets, on stand-ins of the full count and few steps."""

import numpy as np
import pytest
import torch

from anharmonic.testing import task_checks
from anharmonic_papers.tasks.sensors import (
    HeartRate,
    RespiratoryRate,
    SmartphoneActivity,
    SpeechCommands,
    UCRWorms,
    WatchActivity,
    Worms,
)

# Windows by volunteer of the official training set.
VOLUNTEERS = {
    1: 347, 3: 341, 5: 302, 6: 325, 7: 308, 8: 281, 11: 316, 14: 323, 15: 328, 16: 366, 17: 368,
    19: 360, 21: 408, 22: 321, 23: 372, 25: 409, 26: 392, 27: 376, 28: 382, 29: 344, 30: 383,
}  # fmt: skip


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_smartphone(tiny_archive, rng):
    subject = np.repeat(list(VOLUNTEERS), list(VOLUNTEERS.values())).astype(np.uint8)
    activity = rng.integers(0, 6, len(subject)).astype(np.uint8)
    x = rng.standard_normal((len(subject), 2, 9)).astype(np.float32)
    train = {"x_train": x, "y_train": activity, "subject_train": subject}
    test = {"x_test": x[:2947] + 9, "y_test": activity[:2947], "subject_test": subject[:2947]}
    task = SmartphoneActivity(data_dir=tiny_archive(SmartphoneActivity, train | test))
    train, valid, test = task.splits()
    assert [len(part) for part in (train, valid, test)] == list(task.sizes.values())
    assert torch.equal(valid.x, torch.from_numpy(x[subject >= 27]))
    # Walking, upstairs, downstairs, sitting, standing, laying.
    names = [("standing", "sitting")[k in (1, 3, 5)] for k in activity[subject < 27]]
    assert [task.class_names[k].split(",")[0] for k in train.y.tolist()] == names


def test_worms(tiny_archive, rng, monkeypatch):
    monkeypatch.setattr(Worms, "steps", 50)
    x = rng.standard_normal((259, 50, 6)).astype(np.float32)
    data = tiny_archive(Worms, {"x": x, "y": rng.integers(0, 5, 259).astype(np.uint8)})
    whole = Worms(data_dir=data).splits()
    rows = [{row.numpy().tobytes() for row in part.x} for part in whole]
    assert [len(part) for part in rows] == [181, 39, 39]
    assert len(set.union(*rows)) == 259
    assert torch.equal(Worms(last=7, data_dir=data).splits().test.x, whole.test.x[:, -7:])
    drawn, again = (Worms(random=7, data_dir=data).splits() for _ in range(2))
    assert torch.equal(drawn.valid.x, again.valid.x) and drawn.train.x.shape == (181, 7, 6)
    found = [(whole.test.x[0] == step).all(1).nonzero()[0, 0] for step in drawn.test.x[0]]
    assert found == sorted(found)


def test_worms_of_the_ucr_archive(tiny_archive, rng, monkeypatch):
    monkeypatch.setattr(UCRWorms, "steps", 9)
    x, y = rng.standard_normal((258, 9)).astype(np.float32), rng.integers(1, 6, 258)
    arrays = {"x_train": x[:181], "y_train": y[:181], "x_test": x[181:], "y_test": y[181:]}
    data = tiny_archive(UCRWorms, arrays)
    splits = UCRWorms(data_dir=data).splits()
    assert [len(part) for part in splits] == [180, 39, 39] and splits.test.x.shape[1:] == (9, 1)
    strain = {row.tobytes(): label - 1 for row, label in zip(x, y, strict=True)}
    for part in splits:
        found = [strain.pop(row[:, 0].numpy().tobytes()) for row in part.x]
        assert found == part.y.tolist()
    assert not strain
    assert torch.equal(UCRWorms(last=4, data_dir=data).splits().test.x, splits.test.x[:, -4:])


@pytest.mark.parametrize("kind", [HeartRate, RespiratoryRate])
def test_vital_signs(kind, tiny_archive, rng):
    x = rng.standard_normal((7949, 3, 2)).astype(np.float32)
    y = rng.uniform(40, 120, 7949).astype(np.float32)
    task = kind(data_dir=tiny_archive(kind, {"x": x, "y": y}))
    train, valid, test = task.splits()
    generator = torch.Generator().manual_seed(123_456)
    first, rest = torch.utils.data.random_split(range(7949), [5565, 2384], generator)
    generator = torch.Generator().manual_seed(123_456)
    tested, validated = torch.utils.data.random_split(rest, [1192, 1192], generator)
    for part, rows in ((train, first), (valid, validated), (test, tested)):
        assert torch.equal(part.x, torch.from_numpy(x[list(rows)]))
        assert torch.equal(part.y[:, 0], torch.from_numpy(y[list(rows)]))


def test_speech(tiny_archive, rng):
    part = np.repeat([0, 1, 2], [84_849, 9981, 11_005]).astype(np.uint8)
    rng.shuffle(part)
    x = rng.standard_normal((len(part), 1, 80)).astype(np.float16)
    y = rng.integers(0, 12, len(part)).astype(np.uint8)
    task = SpeechCommands(data_dir=tiny_archive(SpeechCommands, {"x": x, "y": y, "part": part}))
    assert [len(one) for one in task.splits()] == list(task.sizes.values())
    batch = task.loaders(0, 4).test[0]
    assert batch.x.dtype == torch.float32
    assert torch.equal(batch.x, torch.from_numpy(x[part == 2][:4]).float())


@pytest.mark.parametrize("check", list(dict(task_checks(lambda: None))))
def test_watch(check, real_data):
    folder = real_data("watch_imu.npz")
    dict(task_checks(lambda: WatchActivity(folder)))[check]()


def test_what_was_made_first_is_what_must_come_later(tiny_archive, rng):
    x = rng.standard_normal((259, 4, 6)).astype(np.float32)
    data = tiny_archive(Worms, {"x": x, "y": np.zeros(259, np.uint8)})
    (data / "sequence" / "eigenworms.sha256").write_text("0" * 64)
    with pytest.raises(
        ValueError, match=r"digest of .* as at first use; .*delete eigenworms.sha256"
    ):
        Worms(data_dir=data).splits()
