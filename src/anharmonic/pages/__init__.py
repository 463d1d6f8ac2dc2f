"""Pages, figures and terminal tables: one style for all that the commands show."""

from anharmonic.pages.html import TEMPLATES, image, render
from anharmonic.pages.plots import COLOURS, lines, network, panels, save
from anharmonic.pages.terminal import bullets, grid, text, unwrapped

__all__ = [
    "COLOURS",
    "TEMPLATES",
    "bullets",
    "grid",
    "image",
    "lines",
    "network",
    "panels",
    "render",
    "save",
    "text",
    "unwrapped",
]
