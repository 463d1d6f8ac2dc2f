"""Training: ``fit(run)`` trains a model on a task, resumes exactly, and keeps results."""

from anharmonic._files import write_atomically
from anharmonic.train.compare import compare
from anharmonic.train.comparison_page import write_comparison
from anharmonic.train.evaluate import detailed_scores
from anharmonic.train.evaluate_run import Evaluation, evaluate_run
from anharmonic.train.fit import fit, fit_in_memory
from anharmonic.train.folder import BEST, DIAGNOSTICS, run_folder
from anharmonic.train.losses import DivergedError
from anharmonic.train.machine import commit, versions
from anharmonic.train.notices import not_learned
from anharmonic.train.predict import Predictions, predict
from anharmonic.train.probes import read_diagnostics
from anharmonic.train.recipe import Recipe, fill, folds_of, recipe, refitted
from anharmonic.train.results import Result, read_results
from anharmonic.train.rows import Row, fit_rows, without_results
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.search import BestTrial, Range, search, with_seed, with_settings
from anharmonic.train.standings import Comparison
from anharmonic.train.trained import Trained, trained
from anharmonic.train.verdict import report

__all__ = [
    "BEST",
    "DIAGNOSTICS",
    "BestTrial",
    "Comparison",
    "DivergedError",
    "Evaluation",
    "Predictions",
    "Range",
    "Recipe",
    "Result",
    "Row",
    "Run",
    "RunEnvironment",
    "Trained",
    "commit",
    "compare",
    "detailed_scores",
    "evaluate_run",
    "fill",
    "fit",
    "fit_in_memory",
    "fit_rows",
    "folds_of",
    "not_learned",
    "predict",
    "read_diagnostics",
    "read_results",
    "recipe",
    "refitted",
    "report",
    "run_folder",
    "search",
    "trained",
    "versions",
    "with_seed",
    "with_settings",
    "without_results",
    "write_atomically",
    "write_comparison",
]
