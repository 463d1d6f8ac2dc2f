"""Measurements inside a model: gradients, time scales, energies, smoothing."""

from typing import TYPE_CHECKING

from anharmonic._plugins import exported_names

if TYPE_CHECKING:
    from anharmonic.diagnostics.adjoint import adjoint_norms, adjoint_score, network_adjoint_norms
    from anharmonic.diagnostics.energy import energy_along, reversibility_error
    from anharmonic.diagnostics.gradients import jacobian, jacobian_norms, state_gradients
    from anharmonic.diagnostics.lyapunov import lyapunov_exponent, map_lyapunov_exponent
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
        layer_features,
        mean_average_distance,
        plain_states,
    )
    from anharmonic.diagnostics.timescales import effective_steps, gates, scale_histogram
    from anharmonic.diagnostics.weights import weight_assumption, weight_norms
else:
    __getattr__, __dir__ = exported_names(__name__)

__all__ = [
    "adjoint_norms",
    "adjoint_score",
    "cpu",
    "dirichlet_energy",
    "effective_steps",
    "energy_along",
    "gate_rates",
    "gates",
    "grid_graph",
    "hardware",
    "jacobian",
    "jacobian_norms",
    "layer_features",
    "lyapunov_exponent",
    "map_lyapunov_exponent",
    "mean_average_distance",
    "network_adjoint_norms",
    "peak_memory_mb",
    "plain_states",
    "reset_peak_memory",
    "reversibility_error",
    "scale_histogram",
    "state_gradients",
    "versions",
    "weight_assumption",
    "weight_norms",
]
