"""Data: tasks with their splits, metrics, sources and licences. Knows nothing of models."""

from anharmonic.data.base import (
    Batch,
    Batches,
    Dataset,
    MetricName,
    Readout,
    Splits,
    Target,
    Task,
    counted,
    stream,
)
from anharmonic.data.dataset import target
from anharmonic.data.download import (
    DownloadError,
    cache_folder,
    data_folder,
    fetch,
    progress_bar,
    verify,
)
from anharmonic.data.graph_batch import Graphs
from anharmonic.data.graphs.base import GraphTask, NodeTask, OneGraph
from anharmonic.data.graphs.cora import Citations
from anharmonic.data.graphs.edges import both_directions, by_first_appearance, distinct, induced
from anharmonic.data.graphs.files import features, not_downloaded, prepared, stored_rows
from anharmonic.data.graphs.geometric import through_geometric
from anharmonic.data.graphs.splits import per_class, share_sizes, shares
from anharmonic.data.registry import list_tasks, make_task, task_class, task_options
from anharmonic.data.sources import Arrays, Remote, Source, load_arrays
from anharmonic.data.splits import cut, official_sizes
from anharmonic.data.tabular import Rows, TabularTask

__all__ = [
    "Arrays",
    "Batch",
    "Batches",
    "Citations",
    "Dataset",
    "DownloadError",
    "GraphTask",
    "Graphs",
    "MetricName",
    "NodeTask",
    "OneGraph",
    "Readout",
    "Remote",
    "Rows",
    "Source",
    "Splits",
    "TabularTask",
    "Target",
    "Task",
    "both_directions",
    "by_first_appearance",
    "cache_folder",
    "counted",
    "cut",
    "data_folder",
    "distinct",
    "features",
    "fetch",
    "induced",
    "list_tasks",
    "load_arrays",
    "make_task",
    "not_downloaded",
    "official_sizes",
    "per_class",
    "prepared",
    "progress_bar",
    "share_sizes",
    "shares",
    "stored_rows",
    "stream",
    "target",
    "task_class",
    "task_options",
    "through_geometric",
    "verify",
]
