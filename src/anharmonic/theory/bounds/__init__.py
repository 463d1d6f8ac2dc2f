"""What the documents prove about each model, one file each, as checks that can be run."""

from anharmonic.theory.bounds import cornn

__all__ = ["cornn"]
