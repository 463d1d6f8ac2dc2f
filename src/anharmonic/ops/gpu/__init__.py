"""Triton kernels for GPUs: ``backend`` is the operator, ``walk`` runs a stack through time."""
