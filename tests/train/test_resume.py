import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from anharmonic.train.resume import _PARTS, AtomicCheckpointIO, random_states, restore_random_states

DRIVER = Path(__file__).with_name("kill_driver.py")


def driven(*arguments, timeout):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(DRIVER), *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_killed_at_every_kind_of_moment_ends_with_the_same_bits(tmp_path):
    found = driven(tmp_path, "moments", timeout=300)
    assert found["kills"] == 15
    assert found["cut"] == [found["whole"]]
    assert found["whole"]["lines"] == 1
    assert found["whole"]["files"] == ["best", "lock", "result.json", "run.json", "task.json"]


@pytest.mark.slow
def test_killed_a_hundred_times_at_random_ends_with_the_same_bits(tmp_path):
    found = driven(tmp_path, "random", 100, 5, timeout=1800)
    assert found["kills"] >= 100
    assert found["cut"]
    for outcome in found["cut"]:
        assert outcome == found["whole"]


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
    needed = {key: {} for key in _PARTS - {"state_dict"}}
    checkpoint = {"state_dict": {}, "random": random_states(), **needed}
    AtomicCheckpointIO().save_checkpoint(checkpoint, path)
    first = draw()
    restore_random_states(AtomicCheckpointIO().load_checkpoint(path)["random"])
    assert draw() == first


def test_other_number_of_gpus_is_no_error():
    states = random_states()
    states["cuda"] = [torch.zeros(16, dtype=torch.uint8)] * 99
    restore_random_states(states)


@pytest.mark.parametrize("damage", ["cut", "empty", "other", "pickle"])
def test_damaged_file(tmp_path, damage):
    path = tmp_path / "resume.ckpt"
    AtomicCheckpointIO().save_checkpoint({"state_dict": {"a": torch.ones(100)}}, path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:300])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "other":
        torch.save({"something": 1}, path)
    else:
        torch.save({"state_dict": Path("x")}, path)
    text = r"resume file must be a whole checkpoint.*resume.ckpt \(.*delete this file to start"
    with pytest.raises(ValueError, match=text):
        AtomicCheckpointIO().load_checkpoint(path)


def test_remove(tmp_path):
    path = tmp_path / "resume.ckpt"
    path.write_bytes(b"")
    AtomicCheckpointIO().remove_checkpoint(path)
    AtomicCheckpointIO().remove_checkpoint(path)
    assert not path.exists()
