"""What the documents prove about each model, by subject, as checks that can be run."""

from anharmonic.theory.bounds import (
    cornn,
    graphcon_damping,
    graphcon_energy,
    graphcon_gradients,
    graphcon_states,
    oversmoothing,
)

__all__ = [
    "cornn",
    "graphcon_damping",
    "graphcon_energy",
    "graphcon_gradients",
    "graphcon_states",
    "oversmoothing",
]
