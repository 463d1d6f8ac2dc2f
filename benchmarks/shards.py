"""What a batch from memory-mapped shards costs beside one from memory, and beside a training step.

python benchmarks/shards.py

In CPU seconds on one thread, the median over the batches of an epoch in random order. The shards
have just been written and are in the system's cache: reading a disk comes on top, and `--workers`
does it ahead.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import anharmonic as ah
from anharmonic.data import SequenceDataset, ShardsTask, write_shards


def median_seconds(make, repeats):
    found = []
    for index in range(repeats):
        began = time.process_time()
        make(index)
        found.append(time.process_time() - began)
    return statistics.median(found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sequences", type=int, default=16_384)
    parser.add_argument("--steps", type=int, default=1024)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--shards", type=int, default=8)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((arguments.sequences, arguments.steps, 1), np.float32)
    y = rng.integers(0, 2, len(x))
    cut = [np.array_split(values, arguments.shards) for values in (x, y)]
    with tempfile.TemporaryDirectory() as folder:
        parts = {"train": zip(*cut, strict=True), "test": [(x[:8], np.arange(8) % 2)]}
        mapped = ShardsTask(write_shards(Path(folder), parts)).splits().train
        inside = SequenceDataset(torch.from_numpy((x - x.mean()) / x.std()), torch.from_numpy(y))
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
        seconds = {}
        for name, data in (("mapped", mapped), ("in memory", inside)):
            batches = data.batches(arguments.batch_size, order)
            seconds[name] = median_seconds(batches.__getitem__, len(batches))
    model = ah.SequenceModel("LEM", 1, 2, hidden_size=64)
    batch = batches[0]

    def step(_):
        torch.nn.functional.cross_entropy(model(batch.x), batch.y).backward()

    seconds["a training step, LEM of width 64"] = median_seconds(step, 3)
    for name, one in seconds.items():
        print(f"{name}: {1e3 * one:.3g} ms per batch")


if __name__ == "__main__":
    main()
