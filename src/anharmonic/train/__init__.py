"""Training: ``fit(run)`` trains a model on a task, resumes exactly, and stores results."""

from typing import TYPE_CHECKING

from anharmonic._files import write_atomically
from anharmonic._plugins import exported_names
from anharmonic.diagnostics.machine import commit, versions
from anharmonic.train.fit import fit, fit_in_memory
from anharmonic.train.folder import BEST, DIAGNOSTICS, run_folder
from anharmonic.train.losses import DivergedError
from anharmonic.train.notices import not_learned
from anharmonic.train.recipe import Recipe, fill, folds_of, recipe, refitted
from anharmonic.train.results import Result, read_report, read_results
from anharmonic.train.run import Run, RunEnvironment
from anharmonic.train.scoring import detailed_scores
from anharmonic.train.trained import Trained, trained

if TYPE_CHECKING:
    from anharmonic.train.comparison import compare
    from anharmonic.train.comparison_page import write_comparison
    from anharmonic.train.evaluation import Evaluation, evaluate_run
    from anharmonic.train.predictions import Ahead, Predictions, predict
    from anharmonic.train.probes import read_diagnostics
    from anharmonic.train.rows import Row, fit_rows, without_results
    from anharmonic.train.standings import Comparison
    from anharmonic.train.trials import BestTrial, Range, search, with_seed, with_settings
    from anharmonic.train.verdict import report
else:
    __getattr__, __dir__ = exported_names(__name__)

__all__ = [
    "BEST",
    "DIAGNOSTICS",
    "Ahead",
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
    "read_report",
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
