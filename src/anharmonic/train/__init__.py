"""Training: ``fit(run)`` trains a model on a task, resumes exactly, and keeps results."""

from anharmonic.train.files import write_atomically
from anharmonic.train.fit import fit
from anharmonic.train.folder import BEST, DIAGNOSTICS, folder_of
from anharmonic.train.losses import DivergedError
from anharmonic.train.machine import commit, versions
from anharmonic.train.predict import Predictions, predict
from anharmonic.train.probes import read_log
from anharmonic.train.results import Result, read
from anharmonic.train.run import Place, Run
from anharmonic.train.search import Chosen, Range, changed, seeded, sweep

__all__ = [
    "BEST",
    "DIAGNOSTICS",
    "Chosen",
    "DivergedError",
    "Place",
    "Predictions",
    "Range",
    "Result",
    "Run",
    "changed",
    "commit",
    "fit",
    "folder_of",
    "predict",
    "read",
    "read_log",
    "seeded",
    "sweep",
    "versions",
    "write_atomically",
]
