"""Train on one's own ragged data and predict: which of two frequencies is in the noise?"""

import tempfile
from pathlib import Path

import numpy as np

from anharmonic.cli.main import main as anharmonic


def make(path: Path, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(60, 100, size=count)
    label = rng.integers(0, 2, size=count)
    x = np.zeros((count, 100, 1), dtype=np.float32)
    for i, n in enumerate(lengths):
        t = np.arange(n)
        x[i, :n, 0] = np.sin((0.2 + 0.1 * label[i]) * t + rng.uniform(0, 6)) + rng.normal(0, 0.3, n)
    np.savez(path, x=x, lengths=lengths, y=np.array(["slow", "fast"])[label])


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    make(folder / "train.npz", 200, seed=0)
    make(folder / "new.npz", 5, seed=1)
    # What is not said follows from the data; only the budget is smaller here than it would be.
    anharmonic(
        ["train", "cornn", str(folder / "train.npz"), "--epochs", "60", "--out", str(folder)]
    )
    (run,) = folder.glob("file-CoRNN-*")
    anharmonic(["predict", str(run), str(folder / "new.npz"), "--output", "-"])


if __name__ == "__main__":
    main()
