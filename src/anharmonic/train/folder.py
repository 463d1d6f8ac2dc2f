"""A run's folder: which files are in it, and that it belongs to one run and one process."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from anharmonic import _checks
from anharmonic._files import TEMPORARY, write_atomically
from anharmonic.train.run import Run, RunEnvironment

if sys.platform != "win32":
    import fcntl

RUN = "run.json"
RESUME = "resume.ckpt"
BEST = "best"
RESULT = "result.json"
TASK = "task.json"
DIAGNOSTICS = "diagnostics.jsonl"
_LOCK = "lock"
ADVICE = (
    'pass what `anharmonic train` prints as "run folder" when it has finished, e.g. '
    "runs/adding-LEM-0123456789ab"
)
"""What to do where no finished run is found."""


class RunLockedError(RuntimeError):
    """Another process trains this run."""


def run_folder(run: Run, environment: RunEnvironment) -> Path:
    """The run's folder.

    Example:
        >>> run_folder(Run("adding", "LEM", {"length": 9}), RunEnvironment(out="runs")).parts[0]
        'runs'
    """
    return environment.out / run.folder_name


def described(path: Path) -> str:
    """What lies at a path, in words for a message.

    Example:
        >>> described(Path("no-such-run"))
        'a path where nothing is'
    """
    if not path.is_dir():
        return "a file" if path.exists() else "a path where nothing is"
    held = sorted(p.name for p in path.iterdir())
    more = f" and {len(held) - 9} more" if len(held) > 9 else ""
    return f"a folder with {', '.join(held[:9])}{more}" if held else "an empty folder"


def claim(folder: Path, run: Run) -> None:
    """Writes the run into the folder, or checks that it belongs to this run.

    Args:
        folder: The run's folder, held with `locked`.
        run: The run.

    Raises:
        ValueError: If the folder holds another run.
        OSError: If it cannot be written.
    """
    path = folder / RUN
    if not path.exists():
        write_atomically(path, run.to_json(indent=2) + "\n")
        return
    found: object
    try:
        found = Run.from_json(_checks.text_of(path))
    except (ValueError, TypeError) as error:
        found = error
    # By the hash: an option that is left out and one given its default are one run.
    if not isinstance(found, Run) or found.hash != run.hash:
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
    """Makes the folder and holds it for this process.

    The system lets go of it however the process ends.

    Raises:
        RunLockedError: If another process trains in this folder.
        OSError: If the folder cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunLockedError(
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


def remove_temporary(folder: Path) -> None:
    """Removes files that a killed process had begun to write.

    Args:
        folder: The run's folder, held with `locked`.
    """
    for leftover in folder.glob(f"*{TEMPORARY}"):
        leftover.unlink(missing_ok=True)
