"""Pages, figures and terminal tables: one style for all that the commands show."""

from typing import TYPE_CHECKING

from anharmonic._plugins import exported_names

if TYPE_CHECKING:
    from anharmonic.pages.charts import WIDTH, learning_curves, predicted_against_true
    from anharmonic.pages.html import TEMPLATES, image, render
    from anharmonic.pages.plots import COLOURS, lines, matrix, network, panels, save
    from anharmonic.pages.scores import (
        CLASS_HEAD,
        OUTPUT_HEAD,
        class_rows,
        confusion_rows,
        metric_rows,
        output_rows,
        report_text,
        worst_confusion,
    )
    from anharmonic.pages.terminal import bullets, grid, text, unwrapped, width
else:
    __getattr__, __dir__ = exported_names(__name__)

__all__ = [
    "CLASS_HEAD",
    "COLOURS",
    "OUTPUT_HEAD",
    "TEMPLATES",
    "WIDTH",
    "bullets",
    "class_rows",
    "confusion_rows",
    "grid",
    "image",
    "learning_curves",
    "lines",
    "matrix",
    "metric_rows",
    "network",
    "output_rows",
    "panels",
    "predicted_against_true",
    "render",
    "report_text",
    "save",
    "text",
    "unwrapped",
    "width",
    "worst_confusion",
]
