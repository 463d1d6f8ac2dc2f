"""What the documents prove about each model, by subject, as checks that can be run."""

from anharmonic.theory.bounds import cornn_energy, cornn_sensitivity

__all__ = ["cornn_energy", "cornn_sensitivity"]
