"""Contract tests for new layers, ops and tasks.

They need no test framework. ``..._checks`` yields names and callables, one per test. ``check_...``
runs all of them and raises a single ``AssertionError``.
"""

from anharmonic.testing.graph_layers import check_graph_layer, graph_layer_checks
from anharmonic.testing.ops import OpCall, Sizes, check_op, op_checks
from anharmonic.testing.sequence_layers import check_sequence_layer, sequence_layer_checks
from anharmonic.testing.tasks import check_task, task_checks

__all__ = [
    "OpCall",
    "Sizes",
    "check_graph_layer",
    "check_op",
    "check_sequence_layer",
    "check_task",
    "graph_layer_checks",
    "op_checks",
    "sequence_layer_checks",
    "task_checks",
]
