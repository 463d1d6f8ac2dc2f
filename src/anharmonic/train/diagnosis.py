"""Diagnosis of a trained run, as numbers and as a self-contained page with pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anharmonic import __version__, pages
from anharmonic._checks import require, text_of
from anharmonic._files import write_atomically
from anharmonic.data.base import Task
from anharmonic.data.metrics import shown_metric
from anharmonic.data.registry import OWN_DATA, task_class
from anharmonic.data.scores import ScoreTable
from anharmonic.diagnostics import conclusions
from anharmonic.diagnostics.base import Matrix, Panel, Probe, Section
from anharmonic.diagnostics.registry import applicable, describe
from anharmonic.nn.registry import model_kind
from anharmonic.nn.store import from_pretrained
from anharmonic.train import folder as folders
from anharmonic.train.notices import has_learned
from anharmonic.train.probes import probe_of, read_diagnostics
from anharmonic.train.recipe import STEPS
from anharmonic.train.results import Result
from anharmonic.train.run import RunEnvironment
from anharmonic.train.scoring import detailed_scores


@dataclass(frozen=True)
class Diagnosed:
    """A finished run with everything that its diagnosis needs.

    Args:
        folder: Its folder.
        result: Its result.
        model: Its model.
        probe: Validation data, or training data if there are none.
        log: Measurements during training.
        scored: The set that `scores` refer to: "validation", or "test" without a validation set.
        scores: The model's scores on that set.
        data: Name of the task or of the user's file.
        found: Problems of the result as a whole, in sentences.
    """

    folder: Path
    result: Result
    model: Any
    probe: Probe
    log: list[dict[str, Any]]
    scored: str
    scores: ScoreTable
    data: str
    found: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Title: model and data."""
        return f"{self.result.run.model} on {self.data}"


def load(folder: str | Path, data_dir: Path | None = None, file: Path | None = None) -> Diagnosed:
    """Read a finished run and the validation data of its task."""
    folder = Path(folder)
    folders.check_finished(folder, folders.RESULT, folders.BEST)
    result = Result.from_json(text_of(folder / folders.RESULT))
    run = result.run
    expected = "the data file that the run was trained on"
    given = run.task not in OWN_DATA or file is not None
    require(given, "--file (file=...)", "none", expected, "add --file PATH")
    task = run.make_task(RunEnvironment(data_dir=data_dir, file=file))
    loaders = task.loaders(run.seed, run.batch_size)
    probe = probe_of(loaders.valid or loaders.train(0), task.loss)
    model = from_pretrained(folder / folders.BEST).eval()
    log = read_diagnostics(folder / folders.DIAGNOSTICS)
    scored = "validation" if len(loaders.valid) else "test"
    scores = detailed_scores(model, loaders.valid or loaders.test, task)
    found = _of_result(result, task, len(loaders.train(0)))
    data = run.task if file is None else file.name
    return Diagnosed(folder, result, model, probe, log, scored, scores, data, found)


def _of_result(result: Result, task: Task, steps_per_epoch: int) -> tuple[str, ...]:
    """Check whether a run beats the baseline and is as long as the recipe's."""
    run = result.run
    said: tuple[str, ...] = ()
    if result.trivial is not None:
        given = (result.test, result.trivial, result.metric)
        better = has_learned(*given, result.higher_is_better)
        said += conclusions.above_baseline(result.metric, result.test, result.trivial, better)
    to_the_end = result.epochs_run == run.epochs  # not stopped early
    if model_kind(run.model) == "sequence" and not task.carries_state and to_the_end:
        said += conclusions.budget(result.epochs_run * steps_per_epoch, STEPS)
    return said


def sections(
    trained: Diagnosed, say: Callable[[str], None] = lambda text: None
) -> Iterator[Section]:
    """Return the sections: training, scores, then every applicable diagnostic."""
    yield _training(trained.result, trained.found)
    yield _scores(trained.scored, trained.scores)
    for name in applicable(trained.result.run.model):
        say(name)
        log = [{"epoch": e["epoch"], **e[name]} for e in trained.log if name in e]
        yield describe(trained.model, trained.probe, name, log)


_PANELS = {
    "loss": {"train_loss": "training", "valid_loss": "validation"},
    "gradient norm": {"grad_norm": "median", "grad_norm_max": "largest"},
}


def _training(result: Result, found: tuple[str, ...] = ()) -> Section:
    curves = dict(result.curve)
    epochs = [float(epoch) for epoch in curves.pop("epoch")]
    drawn = {
        y: {name: (epochs, curves.pop(key)) for key, name in keys.items() if key in curves}
        for y, keys in _PANELS.items()
    }
    if "valid" in curves:
        drawn[f"validation {result.metric}"] = {"": (epochs, curves.pop("valid"))}
    drawn |= {key.replace("_", " "): {"": (epochs, values)} for key, values in curves.items()}
    panels = []
    for y, lines in drawn.items():
        values = [value for _, track in lines.values() for value in track]
        if values:
            wide = min(values) > 0 and max(values) > 30 * min(values)
            panels.append(Panel(lines, "epoch", y, log="y" if wide else ""))

    def shown(value: float | None, after: str = "") -> str:
        if value is None:
            return "-"
        return f"{shown_metric(value, result.metric, result.tested)}{after}"

    numbers = {
        f"test {result.metric}": shown(result.test),
        f"baseline {result.metric}": shown(result.trivial),
        f"validation {result.metric}": shown(result.valid, f" (epoch {result.best_epoch})"),
        "parameters": f"{result.parameters:,}",
    }
    keys = ("train_loss", "valid_loss", "grad_norm_max")
    loss, valid_loss, norms = (result.curve.get(key, []) for key in keys)
    kind = task_class(result.run.task)
    takes_noise = kind.kind == "sequence" and not kind.tokens
    said = conclusions.training(loss, valid_loss, norms, epochs, takes_noise)
    about = "Loss, gradients and validation metric by epoch."
    return Section("Training", about, numbers, tuple(panels), found=(*found, *said))


def _scores(scored: str, scores: ScoreTable) -> Section:
    numbers = {name: value for name, value in pages.metric_rows(scores)}
    title = f"Metrics of the {scored} set"
    about = f"Over {scores.count} predictions."
    if not scores.classes:
        rows = pages.output_rows(scores)
        return Section(title, about, numbers, head=pages.OUTPUT_HEAD, rows=rows)
    panels: tuple[Matrix, ...] = ()
    names = [one.name for one in scores.classes]
    if scores.confusion:
        worst = pages.worst_confusion(names, scores.confusion)
        about = f"{about} {worst} Picture: of each true class, what it was predicted as."
        panels = (Matrix(scores.confusion, names, "predicted class", "true class"),)
    recalls = {one.name: one.recall for one in scores.classes if one.support}
    said = conclusions.recalls(recalls, scored, are_labels=not scores.confusion)
    rows = pages.class_rows(scores)
    return Section(title, about, numbers, panels, pages.CLASS_HEAD, rows, found=said)


def terminal(section: Section) -> str:
    """Return a section's numbers as plain text."""
    numbers = ((f"  {name}", value) for name, value in section.numbers.items())
    parts: list[Any] = [pages.grid((), numbers)]
    if section.rows:
        parts += ["", pages.grid(section.head, section.rows)]
    return pages.text(section.title, *parts)


def in_short(parts: Sequence[Section]) -> list[str]:
    """Return the findings: how good the model is, then problems and remedies."""
    numbers = parts[0].numbers
    metric = next(iter(numbers)).removeprefix("test ")
    first = f"Test {metric} {numbers[f'test {metric}']}"
    baseline = numbers[f"baseline {metric}"]
    first += f"; the baseline reaches {baseline}." if baseline != "-" else "."
    found = [sentence for part in parts for sentence in part.found]
    if not found and len(parts) > 2:  # more than training and scores
        found = ["None of the checks found a problem."]
    return [first, *found]


def write_page(path: Path, trained: Diagnosed, parts: list[Section]) -> None:
    """Write one self-contained HTML page."""
    result = trained.result
    about = f"{result.hardware}, {result.device}; {result.started[:10]}; anharmonic {__version__}"
    page = pages.render(
        pages.TEMPLATES / "diagnosis.html.jinja",
        title=trained.title,
        about=about,
        found=in_short(parts),
        sections=[(part, _image(part)) for part in parts],
        run=result.run.to_json(indent=1),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page)


def _image(section: Section) -> str | None:
    if not section.panels:
        return None
    square = isinstance(section.panels[0], Matrix)
    drawn, axes = pages.panels(len(section.panels), **({"height": 5.0} if square else {}))
    for axis, panel in zip(axes, section.panels, strict=True):
        draw = pages.matrix if isinstance(panel, Matrix) else pages.lines
        draw(axis, **vars(panel))
    return pages.image(drawn, f"{section.title}: {section.about}")
