"""Signals of sensors: their parts and targets."""

import numpy as np
import pytest
import torch

from anharmonic.testing import task_checks
from anharmonic_papers.tasks.sensors import WatchActivity, Worms


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


@pytest.mark.parametrize("check", list(dict(task_checks(lambda: None))))
def test_watch(check, real_data):
    folder = real_data("watch_imu.npz")
    dict(task_checks(lambda: WatchActivity(folder)))[check]()
