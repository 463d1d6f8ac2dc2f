"""The gate of Gradient Gating (G²), (8.4): how far a node's features are from its neighbours'."""

from anharmonic.ops.gate.functional import gradient_gate

__all__ = ["gradient_gate"]
