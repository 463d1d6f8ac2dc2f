"""Format metrics as rows of tables, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anharmonic.data.base import counted
from anharmonic.data.metrics import PERCENT, decimals
from anharmonic.data.scores import ClassScores, OutputScores, ScoreTable
from anharmonic.pages.terminal import grid, text, unwrapped

Row = tuple[str, ...]
CLASS_HEAD: Row = ("class", "precision", "recall", "F1", "AUROC", "support")
"""Column names of `class_rows`."""
OUTPUT_HEAD: Row = ("output", "RMSE", "MAE", "R²", "RMSE by step ahead")
"""Column names of `output_rows`."""
# Most rows of a report in the terminal, which has at most ten lines.
_MOST_ROWS = 5
# Most steps ahead in a table; longer horizons show evenly spaced steps.
_MOST_STEPS = 4
_NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1_micro": "F1, micro",
    "f1": "macro F1",
    "auroc": "macro AUROC",
    "ece": "calibration error (ECE)",
    "brier": "Brier score",
    "mse": "MSE",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "pinball": "pinball loss",
}
_PERCENT = (*PERCENT, "f1_micro")
_SHARES = ("auroc", "ece", "brier", "r2")


def metric_rows(*tables: ScoreTable) -> list[Row]:
    """Return a row per metric: its name, and its value in each table.

    Args:
        tables: Metrics on the same data, e.g. of a model and of the baseline.

    Example:
        >>> metric_rows(ScoreTable(4, {"accuracy": 75.0, "auroc": 0.8}, {}))
        [('accuracy', '75 %'), ('macro AUROC', '0.8')]
        >>> metric_rows(ScoreTable(4, {}, {"r2": "the target is the same everywhere"}))
        [('R²', '- (the target is the same everywhere)')]
    """
    first = tables[0]
    rows = [
        (_NAMES[name], *(_value(name, table) for table in tables))
        for name in _NAMES
        if name in first.metrics
    ]
    blank = ("",) * (len(tables) - 1)
    if first.quantiles:
        ends = first.quantiles[0].quantile, first.quantiles[-1].quantile
        name = f"between {ends[0]:g} and {ends[1]:g} (right: {100 * (ends[1] - ends[0]):.3g} %)"
        rows.append((name, *(f"{table.metrics['coverage']:.4g} %" for table in tables)))
    return rows + [(_NAMES[name], f"- ({why})", *blank) for name, why in first.left_out.items()]


def _value(name: str, table: ScoreTable) -> str:
    if name not in table.metrics:
        return "-"
    value = table.metrics[name]
    if name in _PERCENT:
        return f"{value:.{decimals(table.count)}f} %"
    return f"{value:.3g}" if name in _SHARES else f"{value:.5g}"


def class_rows(table: ScoreTable) -> list[Row]:
    """Return a row per class, with the columns of `CLASS_HEAD`.

    Args:
        table: Metrics of a classifier of classes or labels.

    Example:
        >>> from anharmonic.data.scores import ClassScores
        >>> class_rows(ScoreTable(3, {}, {}, (ClassScores("up", 50.0, 100.0, 66.66667, 1),)))
        [('up', '50 %', '100 %', '67 %', '-', '1')]
    """
    return [_class_row(one) for one in table.classes]


def _class_row(one: ClassScores) -> Row:
    digits = decimals(one.support)
    shares = (f"{share:.{digits}f} %" for share in (one.precision, one.recall, one.f1))
    area = "-" if one.auroc is None else f"{one.auroc:.3g}"
    return one.name, *shares, area, str(one.support)


def output_rows(table: ScoreTable) -> list[Row]:
    """Return a row per regression output or forecast channel, with the columns of `OUTPUT_HEAD`.

    Args:
        table: Metrics of a regression or forecast.

    Example:
        >>> from anharmonic.data.scores import OutputScores
        >>> one = OutputScores("load", 1.5, 1.25, None, (1.0, 2.0))
        >>> output_rows(ScoreTable(3, {}, outputs=(one,)))
        [('load', '1.5', '1.25', '-', '1: 1, 2: 2')]
    """
    return [_output_row(one) for one in table.outputs]


def _output_row(one: OutputScores) -> Row:
    count = len(one.rmse_by_step)
    most = min(count, _MOST_STEPS)
    places = sorted({round(i * (count - 1) / max(1, most - 1)) for i in range(most)})
    steps = ", ".join(f"{i + 1}: {one.rmse_by_step[i]:.4g}" for i in places)
    r2 = "-" if one.r2 is None else f"{one.r2:.4g}"
    return one.name, f"{one.rmse:.5g}", f"{one.mae:.5g}", r2, steps


def report_text(table: ScoreTable) -> str:
    """Return a report on a run's test in at most ten lines of text.

    If there are many classes, the report shows those with the lowest F1. If there are many outputs,
    it shows those with the lowest R².

    Args:
        table: All metrics of the test.
    """
    parts: list[Any] = []
    said = ", ".join(f"{name} {value}" for name, value in metric_rows(table))
    if table.classes:
        worst = sorted(table.classes, key=lambda one: one.f1)[:_MOST_ROWS]
        kept = [one for one in table.classes if one in worst][:_MOST_ROWS]
        head, rows, count = CLASS_HEAD, [_class_row(one) for one in kept], len(table.classes)
        last = ""
        if table.confusion:
            last = worst_confusion([one.name for one in table.classes], table.confusion)
    else:
        least = sorted(table.outputs, key=lambda one: one.r2 or 0.0)[:_MOST_ROWS]
        chosen = [one for one in table.outputs if one in least][:_MOST_ROWS]
        head, rows, count = OUTPUT_HEAD, [_output_row(one) for one in chosen], len(table.outputs)
        if not any(one.rmse_by_step for one in chosen):
            head, rows = head[:-1], [row[:-1] for row in rows]
        last = ""
    fixed = head[1:] if table.classes or len(head) < len(OUTPUT_HEAD) else head[1:-1]
    parts.append(unwrapped(f"test report  {counted(table.count, 'answer')}: {said}"))
    if count > 1 or (not table.classes and rows and table.outputs[0].rmse_by_step):
        parts.append(grid(head, rows, fixed=fixed))
    kind = ("more class", "more classes") if table.classes else ("more output", "more outputs")
    rest = counted(count - len(rows), *kind)
    more = f"{rest} in report.json." if count > len(rows) else ""
    if last or more:
        parts.append(" ".join(filter(None, [last, more])))
    return text(*parts)


def confusion_rows(table: ScoreTable) -> tuple[Row, list[Row]]:
    """Return the confusion matrix: the column names, and a row per true class.

    Args:
        table: Metrics of a classifier.
    """
    names = [one.name for one in table.classes]
    head = ("true class / predicted", *names)
    rows = zip(names, table.confusion, strict=True)
    return head, [(name, *map(str, counts)) for name, counts in rows]


def worst_confusion(names: Sequence[str], confusion: Sequence[Sequence[int]]) -> str:
    """Return a sentence on the most frequent confusion of two classes.

    Args:
        names: The names of the classes.
        confusion: Row i counts the predictions for the samples of class i.

    Example:
        >>> worst_confusion(["a", "b"], [[5, 1], [3, 4]])
        "Most frequent error: 'b' predicted as 'a' (3 of 7 'b')."
        >>> worst_confusion(["a", "b"], [[5, 0], [0, 4]])
        'No class is confused with another.'
    """
    count, true, taken = max(
        (number, i, j) for i, row in enumerate(confusion) for j, number in enumerate(row) if i != j
    )
    if not count:
        return "No class is confused with another."
    shown = f"{count} of {sum(confusion[true])} {names[true]!r}"
    return f"Most frequent error: {names[true]!r} predicted as {names[taken]!r} ({shown})."
