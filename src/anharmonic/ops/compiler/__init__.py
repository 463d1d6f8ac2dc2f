"""Compilation of a step in plain PyTorch to C for whole sequences, forward and backward.

- ``trace.py``: the graph of the step and of its gradient, and unsupported steps.
- ``sections.py``, ``values.py``: the graph as values, grouped by their dependencies.
- ``plan.py``: fusion of sums of products, and what forward saves for backward.
- ``region.py``, ``emit.py``: C code; ``csrc/recurrence_walk.h`` runs the sequence with it.
- ``build.py``: the C compiler, and the folder with its output.
- ``kernel.py``: calls. ``cache.py``: choice of kernels, checked against the loop.
- ``recurrence.py``: ``recurrence(step)``, ``explain``, and equations.
"""
