"""Data: tasks with their splits, metrics, sources and licences. Knows nothing of models.

A task is made by its name with `make_task`. A new one derives from `Task` (sequences), `GraphTask`
or `NodeTask` (graphs) or `TabularTask` (rows of numbers), and builds its parts as
`SequenceDataset`, `GraphDataset`, `TableDataset` or another `Dataset`. Metrics are in
`anharmonic.data.metrics`.
"""

from anharmonic.data.arrays import save_npz, sequences_from
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
from anharmonic.data.columns import Columns
from anharmonic.data.dataset import Dataset
from anharmonic.data.download import DownloadError, cache_folder, data_folder
from anharmonic.data.files import FileTask, file_digest
from anharmonic.data.graph_batch import GraphBatch, GraphDataset, NodeDataset
from anharmonic.data.graphs.archives import node_features, stored_split
from anharmonic.data.graphs.base import GraphTask, NodeData, NodeTask
from anharmonic.data.graphs.cora import CitationTask
from anharmonic.data.graphs.edges import coalesce, to_undirected
from anharmonic.data.graphs.own import GraphFileTask, read_graph, save_graph
from anharmonic.data.graphs.pyg import pyg_source
from anharmonic.data.options import DataOptions
from anharmonic.data.own import SequencesTask
from anharmonic.data.readers import FILE_SUFFIXES, read_parts
from anharmonic.data.registry import list_tasks, make_task, task_class, task_options
from anharmonic.data.scores import ClassScores, ScoreTable, accuracy_interval, score_table
from anharmonic.data.shards import ShardsTask, parquet_shards, write_shards
from anharmonic.data.sources import Arrays, RemoteFile, Source, load_arrays
from anharmonic.data.splits import split_indices
from anharmonic.data.streams import StreamTask, TokenStream
from anharmonic.data.tabular import TableDataset, TabularTask

__all__ = [
    "FILE_SUFFIXES",
    "Arrays",
    "Batch",
    "Batches",
    "CitationTask",
    "ClassScores",
    "Columns",
    "DataOptions",
    "Dataset",
    "DownloadError",
    "FileTask",
    "GraphBatch",
    "GraphDataset",
    "GraphFileTask",
    "GraphTask",
    "MetricName",
    "NodeData",
    "NodeDataset",
    "NodeTask",
    "Readout",
    "RemoteFile",
    "ScoreTable",
    "SequenceDataset",
    "SequencesTask",
    "ShardsTask",
    "Source",
    "Splits",
    "StreamTask",
    "TableDataset",
    "TabularTask",
    "Target",
    "Task",
    "TokenStream",
    "accuracy_interval",
    "cache_folder",
    "coalesce",
    "data_folder",
    "file_digest",
    "list_tasks",
    "load_arrays",
    "make_task",
    "node_features",
    "parquet_shards",
    "pyg_source",
    "read_graph",
    "read_parts",
    "save_graph",
    "save_npz",
    "score_table",
    "seeded_rng",
    "sequences_from",
    "split_indices",
    "stored_split",
    "task_class",
    "task_options",
    "to_undirected",
    "write_shards",
]
