import math
from pathlib import Path

import pytest
import torch

from anharmonic.data.base import Batches
from anharmonic.data.digits import Digits
from anharmonic.train import machine
from anharmonic.train.training_state import TrainingState


def state(**circumstances):
    circumstances = {"device": "cpu", "threads": "1", **circumstances}
    return TrainingState(Batches(0, lambda i: None), Digits(), Path("resume.ckpt"), circumstances)


def test_state_is_plain_and_comes_back(tmp_path):
    first = state()
    assert math.isnan(first.best_valid)
    first.curve = {"epoch": [1, 2], "train_loss": [2.0, 1.0], "valid": [50.0, 40.0]}
    first.best_epoch, first.best_weights = 1, {"a": torch.ones(2)}
    first.commit, first.versions = "abc", {"torch": "0"}
    torch.save(first.state_dict(), tmp_path / "state")
    second = state()
    second.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    assert second.best_valid == 50.0 and second.higher_is_better
    assert (second.curve, second.started) == (first.curve, first.started)
    assert (second.commit, second.versions) == ("abc", {"torch": "0"})
    assert torch.equal(second.best_weights["a"], torch.ones(2))
    assert second.seconds >= first._seconds_before


def test_other_circumstances_are_told():
    text = "not end with the same bits.*threads was 1, is 4; torch was 2, is None"
    with pytest.warns(UserWarning, match=text):
        state(threads="4").load_state_dict(state(torch="2").state_dict())


def test_state_of_the_first_releases():
    saved = state().state_dict()
    del saved["commit"], saved["versions"]
    now = state()
    now.load_state_dict(saved)
    assert now.versions == machine.versions()
    assert now.commit == machine.commit()
