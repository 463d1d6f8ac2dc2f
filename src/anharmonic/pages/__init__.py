"""Figures and pages: one style for all pictures that the commands draw."""

from anharmonic.pages.plots import histograms, lines, network, panels, save, svg
from anharmonic.pages.style import STYLE

__all__ = ["STYLE", "histograms", "lines", "network", "panels", "save", "svg"]
