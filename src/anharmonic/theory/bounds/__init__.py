"""What the documents prove about each model, by subject, as checks that can be run."""

from anharmonic.theory.bounds import (
    cornn,
    gating_decay,
    gradient_gating,
    graphcon_damping,
    graphcon_energy,
    graphcon_gradients,
    graphcon_states,
    held_node,
    ode_adjoints,
    oversmoothing,
    skew_fields,
    skew_jacobians,
    skew_models,
)

__all__ = [
    "cornn",
    "gating_decay",
    "gradient_gating",
    "graphcon_damping",
    "graphcon_energy",
    "graphcon_gradients",
    "graphcon_states",
    "held_node",
    "ode_adjoints",
    "oversmoothing",
    "skew_fields",
    "skew_jacobians",
    "skew_models",
]
