"""Where result lines lie."""

from __future__ import annotations

from pathlib import Path


def results_folder() -> Path:
    """`papers/results` where the working directory is a checkout, else `results`.

    Example:
        >>> results_folder().name
        'results'
    """
    checkout = Path("papers/results")
    return checkout if checkout.is_dir() else Path("results")
