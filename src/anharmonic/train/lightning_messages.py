"""Keeps back those of Lightning's messages that say nothing about a run. Needs Lightning."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator

_LOGGERS = (
    "lightning.pytorch.utilities.rank_zero",
    "lightning.fabric.utilities.rank_zero",
    "lightning.fabric.utilities.distributed",
)
# Beginnings of log lines, each with the reason it is kept back.
_LINES = (
    "GPU available:",  # the result says which device was used
    "TPU available:",  # never used here
    "HPU available:",  # never used here
    "💡 Tip:",  # advertises other packages
    "`Trainer.fit` stopped:",  # the result says how the run ended
    "Restoring states from the checkpoint",  # fit says in its own words that it resumes
    "Restored all states from the checkpoint",  # the same
    "Initializing distributed:",  # the result says how many devices were used
    "-----------",  # the frame of "All distributed processes registered"
    "distributed_backend=",  # the same
    "All distributed processes registered",  # the same
    "\nDetected KeyboardInterrupt",  # fit says in its own words how to go on
)
# Beginnings of warnings, each with the reason it is kept back.
_WARNINGS = (
    "GPU available but not used",  # the user chose the device
    # Lightning's own use of a torch interface that torch renamed
    "`isinstance(treespec, LeafSpec)` is deprecated",
)


class _Filter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith(_LINES)


@contextlib.contextmanager
def hide_lightning_messages() -> Iterator[None]:
    """Drops the listed messages for a while; everything else Lightning says comes through.

    Example:
        >>> with hide_lightning_messages():
        ...     logging.getLogger("lightning.pytorch.utilities.rank_zero").info("GPU available: no")
    """
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    dropper = _Filter()
    for logger in loggers:
        logger.addFilter(dropper)
    try:
        with warnings.catch_warnings():
            for start in _WARNINGS:
                warnings.filterwarnings(
                    "ignore", message=start.replace("(", r"\(").replace(")", r"\)")
                )
            yield
    finally:
        for logger in loggers:
            logger.removeFilter(dropper)
