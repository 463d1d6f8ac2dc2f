"""The file a run resumes from, and the states of random generators in it.

The file is written whole or not at all and read without running code: it holds tensors, numbers,
texts, lists and dictionaries only.
"""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anharmonic import _checks
from anharmonic._files import write_atomically

_KEYS = {"model", "average", "optimizer", "random", "curve", "best_weights", "circumstances"}
_LIGHTNING_KEYS = {"state_dict", "callbacks", "optimizer_states"}


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Replace the resume file in one step.

    Args:
        path: The resume file.
        state: Plain values and tensors, as of `Loop.state_dict`.

    Raises:
        OSError: If it cannot be written (disk full, no permission); the old file stays.
    """
    # Serialised in memory first: torch hides the reason when writing to a file fails midway.
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_atomically(path, buffer.getbuffer())


def load_state(path: Path) -> dict[str, Any]:
    """Read a resume file, also one of version 0.1, which Lightning wrote.

    Args:
        path: The resume file.

    Raises:
        ValueError: If the file is damaged.
    """
    try:
        with zipfile.ZipFile(path) as file:
            # torch.save does not compress; what is small and unpacks to gigabytes is not ours.
            if any(part.compress_type != zipfile.ZIP_STORED for part in file.infolist()):
                raise ValueError("it is compressed")
        state = torch.load(path, map_location="cpu", weights_only=True)
        if isinstance(state, dict) and _LIGHTNING_KEYS <= state.keys():
            state = _from_lightning(state)
        if not isinstance(state, dict) or not _KEYS <= state.keys():
            raise ValueError("it holds no training state")
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            _checks.message(
                "the resume file must be a whole checkpoint written by fit",
                f"{path} ({reason})",
                "delete this file to start the run anew",
            )
        ) from error
    return dict(state)


def _from_lightning(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Convert a file of version 0.1, whose callback's entry was called "Keeper"."""
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
    # The legacy global generator is what other people's code draws from.
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
