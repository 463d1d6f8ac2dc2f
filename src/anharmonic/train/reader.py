"""A model that reads batches, each by itself or one after another."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class Reader:
    """Predicts batch after batch; carries the model's state between them, if told so.

    Gradients end where a batch ends: truncated backpropagation.

    Args:
        model: Maps a batch's inputs to predictions; a ``SequenceModel`` where a state is carried.
        carries_state: Whether each batch goes on where the one before ended.

    Example:
        >>> import torch
        >>> from anharmonic.data.base import Batch
        >>> from anharmonic.nn.heads import SequenceModel
        >>> model = SequenceModel("LEM", 1, 1, hidden_size=2, readout="all")
        >>> batch = Batch(torch.ones(1, 3, 1), torch.zeros(1, 3, 1), None)
        >>> reader = Reader(model, carries_state=True)
        >>> bool((reader(batch) == reader(batch)).any())
        False
    """

    def __init__(self, model: nn.Module, carries_state: bool) -> None:
        self._model = model
        self._carries_state = carries_state
        self._state: Any = None

    def __call__(self, batch: Any) -> Tensor:
        """The prediction for a batch, in the units of its targets."""
        if not self._carries_state:
            alone: Tensor = batch.select(self._model(*batch.inputs))
            return alone
        prediction, state = self._model(*batch.inputs, state=self._state, return_state=True)
        self._state = type(state)(*(part.detach() for part in state))
        following: Tensor = batch.select(prediction)
        return following
