"""Metrics in words: rows of tables, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence

from anharmonic.data.metrics import PERCENT
from anharmonic.data.scores import ScoreTable

Row = tuple[str, ...]
CLASS_HEAD: Row = ("class", "precision", "recall", "F1", "support")
"""Names of the columns of `class_rows`."""
_NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1_micro": "F1, micro",
    "f1": "F1, macro",
    "auroc": "AUROC, macro",
    "mse": "MSE",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
}
_PERCENT = (*PERCENT, "f1_micro")


def metric_rows(*tables: ScoreTable) -> list[Row]:
    """A row for every metric: its name, and its value in each table.

    Args:
        tables: Of the same set, e.g. of a model and of the trivial answer.

    Example:
        >>> metric_rows(ScoreTable(4, {"accuracy": 75.0, "auroc": 0.8}, {}))
        [('accuracy', '75 %'), ('AUROC, macro', '0.8')]
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
    return rows + [(_NAMES[name], f"- ({why})", *blank) for name, why in first.left_out.items()]


def _value(name: str, table: ScoreTable) -> str:
    if name not in table.metrics:
        return "-"
    value = table.metrics[name]
    return f"{value:.4g} %" if name in _PERCENT else f"{value:.5g}"


def class_rows(table: ScoreTable) -> list[Row]:
    """A row for every class, under `CLASS_HEAD`.

    Args:
        table: Of classes or labels.

    Example:
        >>> from anharmonic.data.scores import ClassScores
        >>> class_rows(ScoreTable(3, {}, {}, (ClassScores("up", 50.0, 100.0, 66.66667, 1),)))
        [('up', '50 %', '100 %', '66.7 %', '1')]
    """
    return [
        (name, *(f"{share:.3g} %" for share in shares), str(support))
        for name, *shares, support in table.classes
    ]


def confusion_rows(table: ScoreTable) -> tuple[Row, list[Row]]:
    """The confusion matrix: names of the columns, and a row for every true class.

    Args:
        table: Of classes.
    """
    names = [one.name for one in table.classes]
    head = ("true, predicted as", *names)
    rows = zip(names, table.confusion, strict=True)
    return head, [(name, *map(str, counts)) for name, counts in rows]


def worst_confusion(names: Sequence[str], confusion: Sequence[Sequence[int]]) -> str:
    """What is most often taken for what, in a sentence.

    Args:
        names: Of the classes.
        confusion: Row i counts what those of class i were predicted as.

    Example:
        >>> worst_confusion(["a", "b"], [[5, 1], [3, 4]])
        "Most often 'b' is taken for 'a' (3 of 7)."
        >>> worst_confusion(["a", "b"], [[5, 0], [0, 4]])
        'No class is taken for another.'
    """
    count, true, taken = max(
        (number, i, j) for i, row in enumerate(confusion) for j, number in enumerate(row) if i != j
    )
    if not count:
        return "No class is taken for another."
    shown = f"{count} of {sum(confusion[true])}"
    return f"Most often {names[true]!r} is taken for {names[taken]!r} ({shown})."
