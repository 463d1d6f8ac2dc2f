"""What the documents prove about each model, by subject, as checks that can be run."""

from anharmonic.theory.bounds import (
    cornn_energy,
    cornn_gradients,
    cornn_jacobian,
    cornn_long_term,
    cornn_partial,
    cornn_sensitivity,
    cornn_training,
    cornn_variation,
    unicornn_depth,
    unicornn_energy,
    unicornn_gradients,
    unicornn_long_term,
    unicornn_structure,
)

__all__ = [
    "cornn_energy",
    "cornn_gradients",
    "cornn_jacobian",
    "cornn_long_term",
    "cornn_partial",
    "cornn_sensitivity",
    "cornn_training",
    "cornn_variation",
    "unicornn_depth",
    "unicornn_energy",
    "unicornn_gradients",
    "unicornn_long_term",
    "unicornn_structure",
]
