"""Measurements inside a model: gradients, time scales, energies, smoothing."""

from typing import TYPE_CHECKING

from anharmonic._plugins import exported_names

if TYPE_CHECKING:
    from anharmonic.diagnostics.gradients import state_gradients
    from anharmonic.diagnostics.machine import (
        cpu,
        hardware,
        peak_memory_mb,
        reset_peak_memory,
        versions,
    )
    from anharmonic.diagnostics.smoothing import (
        dirichlet_energy,
        gate_rates,
        grid_graph,
        mean_average_distance,
        plain_states,
    )
    from anharmonic.diagnostics.timescales import effective_steps, gates, scale_histogram
else:
    __getattr__, __dir__ = exported_names(__name__)

__all__ = [
    "cpu",
    "dirichlet_energy",
    "effective_steps",
    "gate_rates",
    "gates",
    "grid_graph",
    "hardware",
    "mean_average_distance",
    "peak_memory_mb",
    "plain_states",
    "reset_peak_memory",
    "scale_histogram",
    "state_gradients",
    "versions",
]
