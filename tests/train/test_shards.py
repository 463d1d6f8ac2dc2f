"""Training on more data than memory holds, and the same bits with and without workers."""

import dataclasses
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from anharmonic.data import file_digest, write_shards
from anharmonic.train import Run, fit, predict, run_folder


def shards(seed, count):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        x = rng.normal(size=(24, 6, 2)).astype(np.float32)
        yield x, (x[:, 0, 0] > 0).astype(int)


def test_workers_change_no_bit_and_other_files_are_predicted(environment, tmp_path):
    path = write_shards(tmp_path / "set", {"train": shards(0, 3), "test": shards(1, 1)})
    task = {"sha256": file_digest(path), "steps_per_epoch": 5}
    run = Run("shards", "LEM", task, {"hidden_size": 4}, epochs=3, batch_size=16, select="last")
    results = []
    for workers in (0, 2):
        own = dataclasses.replace(
            environment, file=path, workers=workers, out=environment.out / str(workers)
        )
        results.append(fit(run, own))
    assert results[0].curve == results[1].curve and results[0].test == results[1].test
    np.savez(tmp_path / "new.npz", x=np.zeros((2, 6, 2), np.float32))
    assert len(predict(run_folder(run, own), tmp_path / "new.npz").labels) == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
def test_five_gigabytes_train_in_less_than_one(tmp_path):
    """The file of inputs is longer than what is written, so that the disk needs to hold little."""
    script = textwrap.dedent(
        """
        import json, os, sys, threading
        from pathlib import Path
        import numpy as np

        from anharmonic.data import file_digest, write_shards
        from anharmonic.train import Run, RunEnvironment, fit

        folder, copies = Path(sys.argv[1]), int(sys.argv[2])
        rng = np.random.default_rng(0)
        x = rng.standard_normal((16_384, 1024, 1), np.float32)
        made = {"train": [(x, rng.integers(0, 2, len(x)))], "test": [(x[:64], np.arange(64) % 2)]}
        path = write_shards(folder, made)
        del x, made
        index = json.loads(path.read_text())
        train = index["parts"]["train"]
        train["size"] *= copies
        with (folder / "train.x.npy").open("r+b") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (train["size"], 1024, 1)}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + train["size"] * 4096)  # what is not written reads as 0
        np.save(folder / "train.y.npy", np.tile(np.load(folder / "train.y.npy"), copies))
        train |= {key: file_digest(folder / f"train.{key}.npy") for key in "xy"}
        path.write_text(json.dumps(index))

        largest, over = 0, threading.Event()

        def watch():
            global largest
            while not over.wait(0.05):
                lines = Path("/proc/self/status").read_text().splitlines()
                (kilobytes,) = [line.split()[1] for line in lines if line.startswith("RssAnon")]
                largest = max(largest, int(kilobytes))

        options = {"sha256": file_digest(path), "steps_per_epoch": 40}
        run = Run("shards", "LEM", options, {"hidden_size": 8}, epochs=1, batch_size=256,
                  select="last")
        watcher = threading.Thread(target=watch)
        watcher.start()
        fit(run, RunEnvironment(file=path, out=folder / "runs", threads=1, progress=False))
        over.set()
        watcher.join()
        print(train["size"] * 4096, largest * 1024)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), "80"],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    data, anonymous = map(int, done.stdout.split())
    assert data > 5e9
    assert anonymous < 1e9
    print(f"{data / 1e9:.1f} GB of data, at most {anonymous / 1e6:.0f} MB of anonymous memory")
