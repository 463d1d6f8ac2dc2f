import json
import os
import stat
from pathlib import Path

import pytest
import torch

import anharmonic as ah
from anharmonic.nn.registry import list_models, model_class
from anharmonic.nn.store import CONFIG, WEIGHTS, stored_class


@pytest.fixture
def saved(tmp_path):
    torch.manual_seed(0)
    ah.save_pretrained(ah.LEM(3, 4, dt=0.5, dtype=torch.float64), tmp_path / "lem")
    return tmp_path / "lem"


def test_a_folder_holds_two_plain_files_that_saving_again_replaces(saved):
    assert sorted(os.listdir(saved)) == [CONFIG, WEIGHTS]
    config = json.loads((saved / CONFIG).read_text())
    assert config["model"] == "LEM" and config["anharmonic"] == ah.__version__
    assert config["arguments"]["dt"] == 0.5 and "dtype" not in config["arguments"]
    assert ah.LEM.from_pretrained(saved).weight_ih_l0.dtype == torch.float64
    ah.save_pretrained(ah.CoRNN(3, 4), saved)
    assert isinstance(ah.from_pretrained(saved), ah.CoRNN)
    assert os.listdir(saved.parent) == ["lem"]


@pytest.mark.parametrize("failing", ["write", "exchange"])
def test_a_failed_save_leaves_the_old_model(saved, monkeypatch, failing):
    before, rename = (saved / WEIGHTS).read_bytes(), Path.rename

    def full(*_args, **_words):
        raise OSError(28, "No space left on device")

    def fail_to_place(self, target):
        if target == saved and not self.name.endswith("-old"):
            full()
        return rename(self, target)

    if failing == "write":
        monkeypatch.setattr(os, "fsync", full)
    else:
        monkeypatch.setattr(Path, "rename", fail_to_place)
    with pytest.raises(OSError, match="No space left"):
        ah.save_pretrained(ah.CoRNN(3, 4), saved)
    assert (saved / WEIGHTS).read_bytes() == before
    assert os.listdir(saved.parent) == ["lem"]


def test_every_stored_class_is_found_by_its_name():
    for kind in ("sequence", "graph", "tabular"):
        for model in map(model_class, list_models(kind)):
            assert stored_class(model.__name__) is model


@pytest.mark.parametrize("mask", [0o077, 0o022])
def test_saved_models_follow_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        ah.save_pretrained(ah.LEM(2, 3), tmp_path / "lem")
    finally:
        os.umask(before)
    modes = [(tmp_path / "lem" / name).stat().st_mode for name in ("", CONFIG, WEIGHTS)]
    assert [stat.S_IMODE(mode) for mode in modes] == [0o777 & ~mask, *[0o666 & ~mask] * 2]
