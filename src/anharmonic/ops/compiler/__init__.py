"""A step in plain PyTorch as C code for whole sequences, forward and backward.

- ``trace.py``: the graph of the step and of its gradient, and what is refused.
- ``sections.py``, ``values.py``: that graph as values, by what they depend on.
- ``plan.py``: sums of products fused; what forward saves for backward.
- ``region.py``, ``emit.py``: C; ``csrc/recurrence_walk.h`` walks the sequence with it.
- ``build.py``: the C compiler, and the folder that keeps what it made.
- ``kernel.py``: calls. ``cache.py``: which kernel, checked against the loop.
- ``recurrence.py``: ``recurrence(step)``, ``explain``, and equations.
"""
