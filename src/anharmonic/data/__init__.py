"""Data: tasks with their splits, metrics, sources and licences. Independent of models.

`make_task` makes a task from its name. A new task derives from `Task` (sequences), `GraphTask` or
`NodeTask` (graphs) or `TabularTask` (rows of numbers). It builds its parts as `SequenceDataset`,
`GraphDataset`, `TableDataset` or another `Dataset`. Metrics are in `anharmonic.data.metrics`.
"""

from typing import TYPE_CHECKING

from anharmonic._plugins import exported_names

if TYPE_CHECKING:
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
    from anharmonic.data.graph_batch import GraphBatch, GraphDataset, NodeDataset
    from anharmonic.data.graphs.archives import node_features, stored_split
    from anharmonic.data.graphs.base import GraphTask, NodeData, NodeTask
    from anharmonic.data.graphs.cora import CitationTask
    from anharmonic.data.graphs.edges import coalesce, to_undirected
    from anharmonic.data.graphs.own import GraphFileTask, read_graph, save_graph
    from anharmonic.data.graphs.pyg import pyg_source
    from anharmonic.data.metrics import accuracy_interval
    from anharmonic.data.options import DataOptions
    from anharmonic.data.own import FileTask, SequencesTask
    from anharmonic.data.parts import split_indices
    from anharmonic.data.preprocessing import Preprocessing
    from anharmonic.data.readers import (
        FILE_SUFFIXES,
        Recordings,
        file_digest,
        read_parts,
        read_recordings,
    )
    from anharmonic.data.registry import list_tasks, make_task, task_class, task_options
    from anharmonic.data.scores import (
        ClassScores,
        OutputScores,
        QuantileScores,
        ScoreTable,
        score_table,
    )
    from anharmonic.data.shards import ShardsTask, parquet_shards, write_shards
    from anharmonic.data.sources import Arrays, RemoteFile, Source, load_arrays
    from anharmonic.data.streams import StreamTask, TokenStream
    from anharmonic.data.tabular import TableDataset, TabularTask
else:
    __getattr__, __dir__ = exported_names(__name__)

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
    "OutputScores",
    "Preprocessing",
    "QuantileScores",
    "Readout",
    "Recordings",
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
    "read_recordings",
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
