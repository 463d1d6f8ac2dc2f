"""anharmonic: physics-inspired sequence and graph models."""

__version__ = "0.1.0"
