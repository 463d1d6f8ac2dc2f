"""What is measured of a model after every epoch besides its metric: of neural ODEs only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from anharmonic.data.base import Batch, Batches, Task
from anharmonic.diagnostics.adjoint import adjoint_score, network_adjoint_norms
from anharmonic.nn.ode.network import NeuralODENetwork
from anharmonic.train.losses import summed_loss


def ode_curves_of(
    model: nn.Module, task: Task, valid: Batches[Any]
) -> Callable[[], dict[str, float]] | None:
    """What to measure after every epoch: a function that gives values by name, or None.

    Args:
        model: The model that is trained.
        task: Its task.
        valid: The validation batches.
    """
    if not isinstance(model, NeuralODENetwork):
        return None
    return OdeCurves(model, task.loss, valid[0])


class OdeCurves:
    """Two measures of a neural ODE, by name.

    "nfe": function evaluations of a forward solve, mean over the epoch's training batches.
    "adjoint_score": q95 / q05 of the adjoint's norm over 100 times, mean over the rows of the first
    validation batch.

    Args:
        model: The model that is trained.
        loss: The task's loss, by name.
        batch: The first validation batch.
    """

    def __init__(self, model: NeuralODENetwork, loss: str, batch: Batch) -> None:
        self._model, self._loss, self._batch = model, loss, batch
        self._evaluations = self._solves = 0
        model.ode.register_forward_hook(self._count)

    def _count(self, ode: nn.Module, inputs: Any, result: Any) -> None:
        if ode.training:
            self._evaluations += self._model.ode.nfe
            self._solves += 1

    def __call__(self) -> dict[str, float]:
        """The values of the epoch that has ended; counts the next one anew."""
        model = self._model
        batch = self._batch.to(model.encoder.weight.device)

        def loss(prediction: Tensor) -> Tensor:
            return summed_loss(prediction, batch, self._loss)

        was_training = model.training
        model.eval()
        norms = network_adjoint_norms(model, batch.x, loss)
        model.train(was_training)
        nfe = self._evaluations / max(self._solves, 1)
        self._evaluations = self._solves = 0
        return {"nfe": nfe, "adjoint_score": float(adjoint_score(norms).mean())}
