"""Training on more data than memory holds, and the same bits with and without workers."""

import dataclasses
import json
import sys

import numpy as np
import pytest

from anharmonic.data import file_digest, write_shards
from anharmonic.train import Run, fit, predict, run_folder


def shards(seed, count):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        x = rng.normal(size=(24, 6, 2)).astype(np.float32)
        yield x, (x[:, 0, 0] > 0).astype(int)


def test_workers_change_no_bit_and_other_files_are_predicted(
    environment, tmp_path, outcome, stored
):
    path = write_shards(tmp_path / "set", {"train": shards(0, 3), "test": shards(1, 1)})
    task = {"sha256": file_digest(path), "steps_per_epoch": 5}
    run = Run("shards", "LEM", task, {"hidden_size": 4}, epochs=3, batch_size=16, select="last")
    alone = dataclasses.replace(environment, file=path)
    helped = dataclasses.replace(alone, workers=2, out=tmp_path / "helped")
    fit(run, alone), fit(run, helped)
    assert outcome(run, alone) == outcome(run, helped)
    new = stored(x=np.zeros((2, 6, 2), np.float32))
    assert len(predict(run_folder(run, alone), new).labels) == 2


LIMITED = """
import resource, sys
from anharmonic.cli.main import main
resource.setrlimit(resource.RLIMIT_DATA, (10**9, 10**9))
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_five_gigabytes_train_in_less_than_one(tmp_path, run_python):
    """The file of inputs is longer than what is written, so that the disk needs to hold little."""
    x = np.random.default_rng(0).standard_normal((16_384, 1024, 1), np.float32)
    y = np.arange(len(x)) % 2
    path = write_shards(tmp_path / "set", {"train": [(x, y)], "test": [(x[:64], y[:64])]})
    index, files = json.loads(path.read_text()), {k: path.with_name(f"train.{k}.npy") for k in "xy"}
    size = 80 * len(x)
    long = np.lib.format.open_memmap(files["x"], "w+", "<f4", (size, 1024, 1))
    long[: len(x)] = x  # what is not written reads as 0
    np.save(files["y"], np.tile(np.load(files["y"]), 80))
    index["parts"]["train"] |= {key: file_digest(file) for key, file in files.items()}
    index["parts"]["train"]["size"] = size
    path.write_text(json.dumps(index))
    words = f"train lem {path.parent} --steps-per-epoch 40 --batch-size 256 --hidden-size 8"
    words += f" --epochs 1 --select last --threads 1 --no-progress --out {tmp_path}"
    done = run_python(LIMITED, *words.split())
    assert done.returncode == 0 and long.nbytes > 5e9, done.stderr
