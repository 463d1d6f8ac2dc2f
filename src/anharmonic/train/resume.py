"""Files a run resumes from: written whole or not at all, read without running code.

A resume file holds tensors, numbers, texts, lists and dictionaries only, random states included,
so that it is read with ``weights_only=True``.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch.plugins.io import CheckpointIO

from anharmonic import _checks
from anharmonic._files import write_atomically

_PARTS = {"state_dict", "pytorch-lightning_version", "loops", "callbacks", "optimizer_states"}


class AtomicCheckpointIO(CheckpointIO):
    """Lightning's reading and writing of checkpoints, made safe against kills and full disks."""

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None
    ) -> None:
        """Replaces the file at ``path`` in one step.

        Raises:
            OSError: If it cannot be written (disk full, no permission); the old file stays.
        """
        # Serialised in memory first: torch hides the reason when writing to a file fails midway.
        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)
        write_atomically(Path(path), buffer.getbuffer())

    def load_checkpoint(
        self,
        path: str | Path,
        map_location: Any | None = None,
        weights_only: bool | None = True,
    ) -> dict[str, Any]:
        """Reads a resume file.

        Raises:
            ValueError: If the file is damaged.
        """
        try:
            # Always with weights_only, whatever the caller says: the file may come from anywhere.
            with zipfile.ZipFile(path) as file:
                # torch.save does not compress; what is small and unpacks to gigabytes is not ours.
                if any(part.compress_type != zipfile.ZIP_STORED for part in file.infolist()):
                    raise ValueError("it is compressed")
            checkpoint = torch.load(path, map_location="cpu", weights_only=True)
            if not isinstance(checkpoint, dict) or not _PARTS <= checkpoint.keys():
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
        return checkpoint

    def remove_checkpoint(self, path: str | Path) -> None:
        """Deletes the file if it is there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def random_states() -> dict[str, Any]:
    """The states of all random generators (torch CPU and CUDA, numpy, python), as plain data.

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
        "numpy": [str(name), [int(k) for k in keys], int(position), int(has_gauss), float(cached)],
    }


def restore_random_states(states: dict[str, Any]) -> None:
    """Gives all random generators a state from `random_states` back.

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
