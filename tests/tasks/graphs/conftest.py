"""Prepared graphs where present, and a tiny folder of them otherwise."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anharmonic.tasks.graphs import GraphTask
from anharmonic.tasks.prepare import Arrays


@pytest.fixture
def graph_data(real_data: Callable[..., Path]) -> Callable[[str], Path]:
    """Gives the data folder, or skips where an archive of graphs is absent."""
    return lambda name: real_data(f"{name}.npz", "graph")


@pytest.fixture
def tiny_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes an archive by hand for a task, in place of the real one with its digest."""

    def write(kind: type[GraphTask], arrays: Arrays) -> Path:
        source = kind.archive  # type: ignore[attr-defined]
        source = source.instead or source
        monkeypatch.setattr(kind, "archive", replace(source, digest=None))
        folder = tmp_path / "graph"
        folder.mkdir(exist_ok=True)
        np.savez(folder / f"{source.name}.npz", **arrays)  # type: ignore[arg-type]
        return tmp_path

    return write
