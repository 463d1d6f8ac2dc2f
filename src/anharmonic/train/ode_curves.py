"""Additional values in the curves of neural ODEs."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from anharmonic.data.base import Batch
from anharmonic.diagnostics.adjoint import adjoint_score, network_adjoint_norms
from anharmonic.nn.ode.network import NeuralODENetwork
from anharmonic.train.loop import Callback, Loop
from anharmonic.train.losses import summed_loss


class OdeCurves(Callback):
    """Adds two measures of a neural ODE to the curve.

    "nfe": function evaluations of a forward solve, mean over the epoch's training batches.
    "adjoint_score": q95 / q05 of the adjoint's norm over 100 times, mean over the rows of the first
    validation batch.
    """

    def __init__(self, model: NeuralODENetwork, batch: Batch) -> None:
        self._model, self._batch = model, batch
        self._evaluations = self._solves = 0
        model.ode.register_forward_hook(self._count)

    def _count(self, ode: nn.Module, inputs: Any, result: Any) -> None:
        if ode.training:
            self._evaluations += self._model.ode.nfe
            self._solves += 1

    def measure(self, loop: Loop) -> dict[str, float]:
        """Return the values of the finished epoch, and reset the counts."""
        model = self._model
        batch = self._batch.to(loop.device)

        def loss(prediction: Tensor) -> Tensor:
            return summed_loss(prediction, batch, loop.task.loss)

        was_training = model.training
        model.eval()
        norms = network_adjoint_norms(model, batch.x, loss)
        model.train(was_training)
        nfe = self._evaluations / max(self._solves, 1)
        self._evaluations = self._solves = 0
        return {"nfe": nfe, "adjoint_score": float(adjoint_score(norms).mean())}
