"""training: ``fit(run)`` trains a model on a task, resumes exactly, and keeps results."""

from anharmonic.training.fit import fit
from anharmonic.training.losses import DivergedError
from anharmonic.training.predict import Predictions, predict
from anharmonic.training.results import Result
from anharmonic.training.run import Place, Run

__all__ = ["DivergedError", "Place", "Predictions", "Result", "Run", "fit", "predict"]
