import json
import os
import stat
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import anharmonic as ah
from anharmonic.nn.registry import list_models, model_class
from anharmonic.nn.store import CONFIG, WEIGHTS, stored_class


@pytest.fixture
def saved(tmp_path):
    torch.manual_seed(0)
    ah.save_pretrained(ah.LEM(3, 4, dt=0.5, dtype=torch.float64), tmp_path / "lem")
    return tmp_path / "lem"


def test_folder_holds_two_plain_files(saved):
    assert sorted(os.listdir(saved)) == [CONFIG, WEIGHTS]
    config = json.loads((saved / CONFIG).read_text())
    assert config["model"] == "LEM" and config["anharmonic"] == ah.__version__
    assert config["arguments"]["dt"] == 0.5 and "dtype" not in config["arguments"]


def test_others_may_read(saved):
    assert saved.stat().st_mode & 0o055 == 0o055
    assert all((saved / name).stat().st_mode & 0o044 == 0o044 for name in (CONFIG, WEIGHTS))


def test_dtype_comes_back(saved):
    assert ah.from_pretrained(saved).weight_ih_l0.dtype == torch.float64


@pytest.mark.parametrize("cls", [ah.CoRNNCell, ah.UnICORNNCell, ah.LEMCell])
def test_cells_come_back(cls, tmp_path):
    cell = cls(3, 4, bias=False, dt=0.3)
    ah.save_pretrained(cell, tmp_path / "cell")
    again = ah.from_pretrained(tmp_path / "cell")
    assert type(again) is cls and again.config() == cell.config() and again.bias is None
    x = torch.ones(2, 3)
    assert torch.equal(again(x).y, cell(x).y)


def test_saving_again_replaces(saved):
    ah.save_pretrained(ah.CoRNN(3, 4), saved)
    assert isinstance(ah.from_pretrained(saved), ah.CoRNN)
    assert os.listdir(saved.parent) == ["lem"]


def test_a_failed_save_leaves_the_old_model(saved, monkeypatch):
    before = (saved / WEIGHTS).read_bytes()

    def full(*_args, **_words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        ah.save_pretrained(ah.CoRNN(3, 4), saved)
    assert (saved / WEIGHTS).read_bytes() == before
    assert os.listdir(saved.parent) == ["lem"]


def test_a_failed_exchange_brings_the_old_model_back(saved, monkeypatch):
    before = (saved / WEIGHTS).read_bytes()
    rename = Path.rename

    def fail_to_place(self, target):
        if target == saved and not self.name.endswith("-old"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_to_place)
    with pytest.raises(OSError, match="Input/output error"):
        ah.save_pretrained(ah.CoRNN(3, 4), saved)
    assert (saved / WEIGHTS).read_bytes() == before
    assert os.listdir(saved.parent) == ["lem"]


def test_every_stored_class_is_found_by_its_name():
    for kind in ("sequence", "graph", "tabular"):
        for model in map(model_class, list_models(kind)):
            assert stored_class(model.__name__) is model


def test_refuses_what_is_not_ours(tmp_path):
    with pytest.raises(TypeError, match=r"model must be made of classes.*\.Linear; save"):
        ah.save_pretrained(torch.nn.Linear(1, 1), tmp_path / "x")

    class LEM(ah.LEM):
        """Its name is known, but it is not the class that loading would build."""

    with pytest.raises(TypeError, match=r"classes of this package.*got .*\.LEM; save"):
        ah.save_pretrained(LEM(1, 1), tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_refuses_folders_with_other_files(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"holds other files \(notes.txt\)"):
        ah.save_pretrained(ah.LEM(1, 1), tmp_path)
    with pytest.raises(ValueError, match=r"notes.txt, which is a file"):
        ah.save_pretrained(ah.LEM(1, 1), tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_missing_files(saved, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must hold config.json .* no config.json there"):
        ah.from_pretrained(tmp_path / "nowhere")
    ah.save_pretrained(ah.LEM(1, 1), tmp_path / "run" / "best")
    with pytest.raises(FileNotFoundError, match=r"pass .*run.best"):
        ah.from_pretrained(tmp_path / "run")
    (saved / WEIGHTS).unlink()
    with pytest.raises(FileNotFoundError, match=r"no model.safetensors there"):
        ah.from_pretrained(saved)


def test_corrupt_config(saved):
    (saved / CONFIG).write_text("{")
    with pytest.raises(ValueError, match=r"must be JSON with the keys model and arguments"):
        ah.from_pretrained(saved)
    (saved / CONFIG).write_text('{"model": "LEMM", "arguments": {}}')
    with pytest.raises(ValueError, match="did you mean 'LEM'"):
        ah.from_pretrained(saved)


def test_truncated_weights(saved):
    whole = (saved / WEIGHTS).read_bytes()
    (saved / WEIGHTS).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"must be a whole safetensors file"):
        ah.from_pretrained(saved)


def test_arguments_and_weights_that_disagree(saved):
    config = json.loads((saved / CONFIG).read_text())
    config["arguments"]["hidden_size"] = 5
    (saved / CONFIG).write_text(json.dumps(config))
    with pytest.raises(
        ValueError,
        match=r"arguments and weights of one LEM; got bias_l0 is .*\[20\] by the arguments",
    ):
        ah.from_pretrained(saved)
    config["arguments"]["colour"] = "red"
    (saved / CONFIG).write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"arguments and weights of one LEM; got .*colour"):
        ah.from_pretrained(saved)


def test_class_method_checks_the_class(saved):
    assert isinstance(ah.LEM.from_pretrained(saved), ah.LEM)
    with pytest.raises(ValueError, match=r"must hold a CoRNN; got a LEM"):
        ah.CoRNN.from_pretrained(saved)


def test_one_weight_of_another_dtype_is_refused(saved):
    weights = load_file(saved / WEIGHTS)
    weights["bias_l0"] = weights["bias_l0"].to(torch.int8)
    save_file(weights, saved / WEIGHTS)
    with pytest.raises(ValueError, match=r"bias_l0 is torch.float64 \[16\] by the arguments and"):
        ah.from_pretrained(saved)


def test_a_huge_model_is_refused_before_it_is_built(saved):
    config = json.loads((saved / CONFIG).read_text())
    config["arguments"]["hidden_size"] = 10**8  # 4e17 bytes
    (saved / CONFIG).write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"by the arguments and .* in the weights"):
        ah.from_pretrained(saved)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"model": "LEM", "arguments": {"device": "cuda"}}']
)
def test_a_config_of_another_kind_is_refused(saved, text):
    (saved / CONFIG).write_text(text)
    with pytest.raises(ValueError, match=r"RecursionError|device is not a saved argument"):
        ah.from_pretrained(saved)


@pytest.mark.parametrize("mask", [0o077, 0o022])
def test_saved_models_follow_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        ah.save_pretrained(ah.LEM(2, 3), tmp_path / "lem")
    finally:
        os.umask(before)
    modes = [(tmp_path / "lem" / name).stat().st_mode for name in ("", CONFIG, WEIGHTS)]
    assert [stat.S_IMODE(mode) for mode in modes] == [0o777 & ~mask, *[0o666 & ~mask] * 2]
