"""A run's folder: which files are in it, and that it belongs to one run and one process."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from anharmonic import _checks
from anharmonic.training.files import write_atomically
from anharmonic.training.run import Place, Run

RUN = "run.json"
RESUME = "resume.ckpt"
BEST = "best"
RESULT = "result.json"
TASK = "task.json"
_LOCK = "lock"


def folder_of(run: Run, place: Place) -> Path:
    """The run's folder.

    Example:
        >>> folder_of(Run("adding", "LEM"), Place(out="runs")).name.startswith("adding-LEM-")
        True
    """
    return place.out / run.folder_name


def claim(folder: Path, run: Run) -> None:
    """Makes the folder and writes the run into it, or checks that it belongs to this run.

    Raises:
        ValueError: If the folder holds another run.
        OSError: If it cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RUN
    if not path.exists():
        write_atomically(path, run.to_json(indent=2) + "\n")
        return
    found: object
    try:
        found = Run.from_json(path.read_text(encoding="utf-8"))
    except (ValueError, TypeError) as error:
        found = error
    if found != run:
        came = found.to_json() if isinstance(found, Run) else str(found)
        raise ValueError(
            _checks.message(
                f"{path} must hold this run, {run.to_json()}",
                came,
                "move this folder away or choose another `out`",
            )
        )


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the folder for this process; the system lets go of it however the process ends.

    Raises:
        RuntimeError: If another process trains in this folder.
    """
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(
                _checks.message(
                    "only one process may train a run at a time",
                    f"another one at work in {folder}",
                    "wait for it or stop it, then start the same command again",
                )
            ) from None
        except OSError:
            # A file system without locks: two processes at a time are then the user's care.
            pass
        yield
    finally:
        os.close(descriptor)
