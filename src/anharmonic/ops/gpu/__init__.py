"""Kernels for GPUs in Triton: ``backend`` is the operator, ``walk`` drives a stack through time."""
