"""A comparison as a self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from anharmonic import __version__, pages
from anharmonic._files import write_atomically
from anharmonic.data.base import Batches, counted
from anharmonic.data.metrics import real_steps
from anharmonic.nn.store import from_pretrained
from anharmonic.train import verdict as words
from anharmonic.train.folder import BEST, run_folder
from anharmonic.train.results import Result
from anharmonic.train.scoring import detailed_scores
from anharmonic.train.standings import Comparison


def write_comparison(
    path: str | Path,
    comparisons: Comparison | Sequence[Comparison],
    command: str = "",
) -> None:
    """Write one self-contained HTML page.

    The best models are loaded from their run folders.

    Args:
        path: The file; its folder is created.
        comparisons: One or several comparisons for the page.
        command: The command line, for repetition.

    Raises:
        OSError: If the page cannot be written.

    Example:
        >>> import tempfile
        >>> from anharmonic.train import RunEnvironment, compare
        >>> folder = Path(tempfile.mkdtemp())
        >>> environment = RunEnvironment(out=folder, progress=False)
        >>> options = {"given": {"epochs": 1, "model_options": {"hidden_size": 4}}, "seeds": [0]}
        >>> found = compare("digits", environment, models=["GRU"], say=lambda text: None, **options)
        >>> write_comparison(folder / "compare.html", found)
        >>> (folder / "compare.html").is_file()
        True
    """
    several = [comparisons] if isinstance(comparisons, Comparison) else list(comparisons)
    title = "Models compared on " + " and ".join(one.plan.title for one in several)
    template = pages.TEMPLATES / "comparison.html.jinja"
    parts = [_part(one, command) for one in several]
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, pages.render(template, title=title, parts=parts))


def _part(comparison: Comparison, command: str) -> dict[str, Any]:
    finding, *more = words.sentences(comparison)
    result = comparison.standings[0].results[0]
    about = f"{result.hardware}, {result.device}, {counted(result.threads, 'thread')}"
    commands = {"The same again:": command} if command else {}
    best = comparison.standings[0].representative
    if predict := words.predict_command(comparison):
        commands["To predict with the best model:"] = predict
    return {
        "title": comparison.plan.title,
        "finding": finding,
        "more": " ".join(more),
        "about": f"{about}; {result.started[:10]}; anharmonic {__version__}",
        "head": words.HEAD,
        "rows": words.table(comparison),
        "has_trivial": comparison.trivial is not None,
        "legend": words.about(comparison),
        "notes": comparison.plan.notes,
        "failures": comparison.failures,
        "several": any(len(one.results) > 1 for one in comparison.standings),
        "curves": _curves(comparison),
        "best": _details(comparison, best),
        "settings": comparison.plan.settings(),
        "reasons": comparison.plan.reasons(),
        "commands": commands,
    }


def _curves(comparison: Comparison) -> list[Any]:
    unit = words.unit(comparison.metric)
    trivial = comparison.trivial
    level = None if trivial is None else ("baseline", trivial)
    drawn = []
    for key, y, line in (
        ("valid", f"validation {comparison.metric}{unit and f' [{unit.strip()}]'}", level),
        ("train_loss", "training loss", None),
    ):
        runs = {
            one.model: [(r.curve["epoch"], r.curve[key]) for r in one.results if key in r.curve]
            for one in comparison.standings
        }
        figure = pages.learning_curves(runs, y=y, level=line)
        if figure is not None:
            drawn.append(pages.image(figure, f"{y} of every model by epoch"))
    return drawn


def _details(comparison: Comparison, best: Result) -> Any:
    """Return the best model's behaviour on the test data; None if its weights are missing."""
    environment = comparison.plan.environment
    run = best.run
    folder = run_folder(run, environment)
    if not (folder / BEST).is_dir():
        return None
    task = comparison.plan.task_of(run)
    model = from_pretrained(folder / BEST).eval()
    test = task.loaders(run.seed, run.batch_size).test
    scores = detailed_scores(model, test, task)
    said = f"{scores.count:,} predictions for the test data, seed {run.seed}"
    standing = comparison.standings[0]
    if len(standing.results) > 1:
        by = "best validation" if standing.is_validated else "median test value"
        said += f", the run of {by}"
    picture = None
    if scores.confusion:
        names = [one.name for one in scores.classes]
        figure, (axes,) = pages.panels(1, width=pages.WIDTH, height=pages.WIDTH)
        pages.matrix(axes, scores.confusion, names, x="predicted", y="true")
        picture = pages.image(figure, "Confusion matrix: predicted classes over true ones")
        said += f". {pages.worst_confusion(names, scores.confusion)[:-1]}"
    elif task.target == "value":
        figure = pages.predicted_against_true(*_values(model, test, task.quantiles))
        picture = pages.image(figure, "Predicted values over true ones")
    head: tuple[str, ...] = ()
    rows = pages.metric_rows(scores)
    if scores.classes or len(scores.outputs) > 1 or task.horizon:
        said += f". On all: {', '.join(f'{name} {value}' for name, value in rows)}"
        head, rows = pages.CLASS_HEAD, pages.class_rows(scores)
        if not scores.classes:
            head, rows = pages.OUTPUT_HEAD, pages.output_rows(scores)
    title = f"{comparison.standings[0].model} in detail"
    return {"title": title, "about": f"{said}.", "picture": picture, "head": head, "rows": rows}


def _values(
    model: nn.Module, batches: Batches[Any], quantiles: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return true and predicted values; of several quantiles the median."""
    true, predicted = [], []
    with torch.no_grad():
        for batch in batches:
            values, y = real_steps(batch.select(model(*batch.inputs)), batch)
            if quantiles:
                median = quantiles.index(0.5)
                values, y = (part.chunk(len(quantiles), -1)[median] for part in (values, y))
            true += y.flatten().tolist()
            predicted += values.flatten().tolist()
    return true, predicted
