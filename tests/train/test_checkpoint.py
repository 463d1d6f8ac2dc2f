import json
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from anharmonic.train.folder import (
    _KEYS,
    load_state,
    random_states,
    restore_random_states,
    save_state,
)

DRIVER = Path(__file__).with_name("kill_driver.py")


def test_killed_at_every_kind_of_moment_ends_with_the_same_bits(tmp_path, start_python):
    done = start_python(DRIVER.read_text(), tmp_path).wait()
    assert done.returncode == 0, done.stderr
    whole, cut = json.loads(done.stdout)
    assert cut == whole
    assert whole["lines"] == 1
    assert whole["files"] == [
        "best", "lock", "report.json", "result.json", "run.json", "task.json",
    ]  # fmt: skip


def draw():
    return (
        torch.rand(3).tolist(),
        torch.nn.functional.dropout(torch.ones(8)).tolist(),
        random.random(),
        random.gauss(0, 1),
        np.random.rand(2).tolist(),  # noqa: NPY002
        np.random.standard_normal(1).tolist(),  # noqa: NPY002
    )


def test_random_states_come_back_through_a_file(tmp_path):
    draw()  # leaves half a pair of normal numbers in the generators
    path = tmp_path / "resume.ckpt"
    save_state(path, {key: {} for key in _KEYS} | {"random": random_states()})
    first = draw()
    restore_random_states(load_state(path)["random"])
    assert draw() == first


def test_other_number_of_gpus_is_no_error():
    states = random_states()
    states["cuda"] = [torch.zeros(16, dtype=torch.uint8)] * 99
    restore_random_states(states)


def test_what_unpacks_to_gigabytes_is_not_unpacked(tmp_path):
    path, packed = tmp_path / "resume.ckpt", tmp_path / "packed.ckpt"
    save_state(path, {key: {} for key in _KEYS})
    load_state(path)
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name in whole.namelist():
            file.writestr(name, whole.read(name))
    with pytest.raises(ValueError, match=r"packed.ckpt \(it is compressed\)"):
        load_state(packed)


def test_damaged_file(tmp_path):
    path = tmp_path / "resume.ckpt"
    save_state(path, {"model": {"a": torch.ones(100)}})
    text = r"resume file must be a whole checkpoint.*resume.ckpt \(.*delete this file to start"
    for damage in (
        lambda: path.write_bytes(path.read_bytes()[:300]),
        lambda: path.write_bytes(b""),
        lambda: torch.save({"something": 1}, path),
        lambda: torch.save({"model": Path("x")}, path),
    ):
        damage()
        with pytest.raises(ValueError, match=text):
            load_state(path)


def test_a_file_of_version_0_1_is_converted(tmp_path):
    """(Those of real trainings are in tests/pins/data/interrupted.)"""
    weights = {"model.a": torch.ones(2), "average.module.a": torch.zeros(2), "average.n": 3}
    kept = {"random": [1], "curve": {"epoch": [1]}, "best_weights": {}, "circumstances": {}}
    old = {
        "pytorch-lightning_version": "2.6.6",
        "state_dict": weights,
        "loops": {},
        "optimizer_states": [{"state": 5}],
        "callbacks": {"Keeper": kept},
    }
    torch.save(old, tmp_path / "resume.ckpt")
    found = load_state(tmp_path / "resume.ckpt")
    assert list(found["model"]) == ["a"] and list(found["average"]) == ["module.a", "n"]
    assert (found["optimizer"], found["curve"], found["random"]) == (
        {"state": 5},
        {"epoch": [1]},
        [1],
    )
    del old["callbacks"]["Keeper"]
    torch.save(old, tmp_path / "resume.ckpt")
    with pytest.raises(ValueError, match=r"must be a whole checkpoint.*delete this file"):
        load_state(tmp_path / "resume.ckpt")
