"""A run's folder: its files, the resume file, and the lock on it.

The resume file is written atomically and read without executing code. It holds only tensors,
numbers, strings, lists and dictionaries.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import shlex
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anharmonic import _checks
from anharmonic._files import TEMPORARY, write_atomically
from anharmonic.data.readers import FILE_SUFFIXES
from anharmonic.train.run import Run, RunEnvironment

if sys.platform != "win32":
    import fcntl

RUN = "run.json"
RESUME = "resume.ckpt"
BEST = "best"
RESULT = "result.json"
REPORT = "report.json"
TASK = "task.json"
DIAGNOSTICS = "diagnostics.jsonl"
_LOCK = "lock"
_KEYS = {"model", "average", "optimizer", "random", "curve", "best_weights", "circumstances"}
_LIGHTNING_KEYS = {"state_dict", "callbacks", "optimizer_states"}


class RunLockedError(RuntimeError):
    """Another process trains this run."""


def run_folder(run: Run, environment: RunEnvironment) -> Path:
    """Return the run's folder.

    Example:
        >>> run_folder(Run("adding", "LEM", {"length": 9}), RunEnvironment(out="runs")).parts[0]
        'runs'
    """
    return environment.out / run.folder_name


def predict_command(folder: Path, file: Path | None) -> str:
    """Return the command that predicts for another file like the run's own."""
    suffix = file.suffix if file and not file.is_dir() else ""
    if suffix and suffix.lower() not in FILE_SUFFIXES:  # the index of shards
        suffix = FILE_SUFFIXES[0]
    return f"anharmonic predict {shlex.quote(str(folder))} NEW{suffix} --output predictions.csv"


def described(path: Path) -> str:
    """Describe what is at a path, for messages.

    Example:
        >>> described(Path("no-such-run"))
        'a path where nothing is'
    """
    if not path.is_dir():
        return "a file" if path.exists() else "a path where nothing is"
    held = sorted(p.name for p in path.iterdir())
    more = f" and {len(held) - 9} more" if len(held) > 9 else ""
    return f"a folder with {', '.join(held[:9])}{more}" if held else "an empty folder"


def check_finished(folder: Path, *needed: str) -> None:
    """Check that a folder holds what a finished run has written.

    Raises:
        FileNotFoundError: If something needed is missing.
    """
    paths = [folder / name for name in needed]
    lacking = [p.name for p in paths if not (p.is_dir() if p.name == BEST else p.is_file())]
    if not lacking:
        return
    advice = (
        'pass what `anharmonic train` prints as "run folder" when it has finished, e.g. '
        "runs/adding-LEM-0123456789ab"
    )
    if (folder / RUN).is_file() and not (folder / RESULT).is_file():
        advice = f"finish the run: anharmonic train --run {shlex.quote(str(folder / RUN))}"
    expected = f"{folder} must be the folder of a finished run, with {_checks.listed(lacking)}"
    raise FileNotFoundError(_checks.message(expected, described(folder), advice))


def claim(folder: Path, run: Run) -> None:
    """Write the run into its locked folder, or check that the folder belongs to this run."""
    path = folder / RUN
    if not path.exists():
        write_atomically(path, run.to_json(indent=2) + "\n")
        return
    found: object
    try:
        found = Run.from_json(_checks.text_of(path))
    except (ValueError, TypeError) as error:
        found = error
    # By hash, because omitted options and options with their default give the same run.
    if not isinstance(found, Run) or found.hash != run.hash:
        came = found.to_json() if isinstance(found, Run) else str(found)
        expected = f"{path} must hold this run, {run.to_json()}"
        advice = "move this folder away or choose another `out`"
        raise ValueError(_checks.message(expected, came, advice))


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Create the folder and lock it for this process.

    The system releases the lock when the process ends in any way.

    Raises:
        RunLockedError: If another process trains in this folder.
        OSError: If the folder cannot be created.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            expected = "only one process may train a run at a time"
            came = f"another one at work in {folder}"
            advice = "wait for it or stop it, then start the same command again"
            raise RunLockedError(_checks.message(expected, came, advice)) from None
        except OSError:
            # The file system has no locks; the user must then avoid parallel processes.
            pass
        yield
    finally:
        os.close(descriptor)


def remove_temporary(folder: Path) -> None:
    """Remove partial files of a killed process from a locked folder."""
    for leftover in folder.glob(f"*{TEMPORARY}"):
        leftover.unlink(missing_ok=True)


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Replace the resume file atomically."""
    # Serialise in memory first, because PyTorch hides the reason of a failed write.
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_atomically(path, buffer.getbuffer())


def load_state(path: Path) -> dict[str, Any]:
    """Read a resume file, including those of version 0.1, written by Lightning."""
    try:
        with zipfile.ZipFile(path) as file:
            # torch.save does not compress, so a small file that unpacks to gigabytes is not ours.
            if any(part.compress_type != zipfile.ZIP_STORED for part in file.infolist()):
                raise ValueError("it is compressed")
        state = torch.load(path, map_location="cpu", weights_only=True)
        if isinstance(state, dict) and _LIGHTNING_KEYS <= state.keys():
            state = _from_lightning(state)
        if not isinstance(state, dict) or not _KEYS <= state.keys():
            raise ValueError("it holds no training state")
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        expected = "the resume file must be a whole checkpoint written by fit"
        advice = "delete this file to start the run again"
        raise ValueError(_checks.message(expected, f"{path} ({reason})", advice)) from error
    return dict(state)


def _from_lightning(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Convert a file of version 0.1, in which the callback's entry is named "Keeper"."""
    weights = checkpoint["state_dict"]

    def part(prefix: str) -> dict[str, Any]:
        names = [name for name in weights if name.startswith(prefix)]
        return {name.removeprefix(prefix): weights[name] for name in names}

    return {
        "model": part("model."),
        "average": part("average.") or None,
        "optimizer": checkpoint["optimizer_states"][0],
        **checkpoint["callbacks"]["Keeper"],
    }


def random_states() -> dict[str, Any]:
    """Return the states of all random generators (torch, CUDA, NumPy, Python) as plain data.

    Example:
        >>> state = random_states()
        >>> first = torch.rand(1), random.random()
        >>> restore_random_states(state)
        >>> (torch.rand(1), random.random()) == first
        True
    """
    version, words, gauss_next = random.getstate()
    # Other people's code uses the legacy global generator.
    name, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "python": [version, list(words), gauss_next],
        "numpy": [
            str(name),
            [int(key) for key in keys],
            int(position),
            int(has_gauss),
            float(cached),
        ],
    }


def restore_random_states(states: dict[str, Any]) -> None:
    """Set all random generators to states from `random_states`.

    CUDA states are restored if as many devices are visible as when they were saved.
    """
    torch.set_rng_state(states["torch"])
    if states["cuda"] and torch.cuda.device_count() == len(states["cuda"]):
        torch.cuda.set_rng_state_all(states["cuda"])
    version, words, gauss_next = states["python"]
    random.setstate((version, tuple(words), gauss_next))
    name, keys, position, has_gauss, cached = states["numpy"]
    keys = np.array(keys, dtype=np.uint32)
    np.random.set_state((name, keys, position, has_gauss, cached))  # noqa: NPY002
