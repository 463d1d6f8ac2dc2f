"""
From a file to a trained model
==============================

A NumPy archive of sequences of unequal length with names of classes; settings follow from the
data.
"""

# %%
# Which of two frequencies is in the noise? 200 sequences of 60 to 100 samples.
import tempfile
from pathlib import Path

import numpy as np

from anharmonic.data import save_npz, sequences_from
from anharmonic.train import RunEnvironment, compare, report

rng = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
classes = rng.choice(["slow", "fast"], size=200)
recordings = []
for name in classes:
    t = np.arange(rng.integers(60, 100))
    wave = np.sin((0.2 if name == "slow" else 0.3) * t + rng.uniform(0, 6))
    recordings.append((wave + rng.normal(0, 0.5, t.size))[:, None])
save_npz(folder / "mine.npz", sequences_from(recordings, classes))

# %%
# On the command line: ``anharmonic compare mine.npz --models lem gru --seeds 0 --epochs 8``.
environment = RunEnvironment(file=folder / "mine.npz", out=folder, threads=1, progress=False)
found = compare("file", environment, models=["LEM", "GRU"], seeds=[0], given={"epochs": 8})
print(report(found))
