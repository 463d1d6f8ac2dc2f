"""Data: tasks with their splits, metrics, sources and licences. Knows nothing of models."""

from anharmonic.data.base import (
    Batch,
    Batches,
    MetricName,
    Readout,
    SequenceDataset,
    Splits,
    Target,
    Task,
    seeded_rng,
)
from anharmonic.data.download import (
    DownloadError,
    cache_folder,
    data_folder,
    download,
    progress_bar,
    verify,
)
from anharmonic.data.graph_batch import GraphDataset
from anharmonic.data.graphs.base import GraphTask, NodeData, NodeTask
from anharmonic.data.graphs.cora import CitationTask
from anharmonic.data.graphs.edges import by_first_appearance, coalesce, subgraph, to_undirected
from anharmonic.data.graphs.files import node_features, not_downloaded, prepared, stored_split
from anharmonic.data.graphs.geometric import pyg_source
from anharmonic.data.graphs.splits import per_class, share_sizes, shares
from anharmonic.data.registry import list_tasks, make_task, task_class, task_options
from anharmonic.data.sources import Arrays, RemoteFile, Source, load_arrays
from anharmonic.data.splits import official_sizes, split_indices
from anharmonic.data.tabular import TableDataset, TabularTask

__all__ = [
    "Arrays",
    "Batch",
    "Batches",
    "CitationTask",
    "DownloadError",
    "GraphDataset",
    "GraphTask",
    "MetricName",
    "NodeData",
    "NodeTask",
    "Readout",
    "RemoteFile",
    "SequenceDataset",
    "Source",
    "Splits",
    "TableDataset",
    "TabularTask",
    "Target",
    "Task",
    "by_first_appearance",
    "cache_folder",
    "coalesce",
    "data_folder",
    "download",
    "list_tasks",
    "load_arrays",
    "make_task",
    "node_features",
    "not_downloaded",
    "official_sizes",
    "per_class",
    "prepared",
    "progress_bar",
    "pyg_source",
    "seeded_rng",
    "share_sizes",
    "shares",
    "split_indices",
    "stored_split",
    "subgraph",
    "task_class",
    "task_options",
    "to_undirected",
    "verify",
]
