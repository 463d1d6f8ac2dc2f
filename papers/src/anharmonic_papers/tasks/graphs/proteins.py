"""Protein interactions: many graphs with several labels per node."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from anharmonic.data import Arrays, GraphDataset, GraphTask, RemoteFile, Source, Splits, load_arrays
from anharmonic_papers.tasks.graphs.molecules import ends
from anharmonic_papers.tasks.graphs.raw import prepare_ppi


class ProteinInteractions(GraphTask):
    """PPI: proteins in 24 human tissues, 50 features and 121 functions each; tests new tissues.

    Every tissue is a graph. Links are stored in both directions, without self-loops.

    Args:
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[N, 50]`, y `[N, 121]` of 0 and 1, rows `[N]` (all nodes), membership `[N]`.

    Split: 20 / 2 / 2 graphs with 44,906 / 6514 / 5524 proteins, of Hamilton et al.

    Metric: micro-averaged F1 in percent. A function is predicted if its score is above 0.
    Licence: none stated.

    References:
        W. L. Hamilton et al.: Inductive Representation Learning on Large Graphs, 2017.
        T. K. Rusch et al.: GraphCON, https://arxiv.org/abs/2202.02296, Table 3.
    """

    name = "ppi"
    target = "labels"
    readout = "node"
    metric = "f1"
    input_size = 50
    output_size = 121
    source = "GraphSAGE's PPI, from the Deep Graph Library"
    licence = "none stated"
    archive = Source(
        "ppi",
        (RemoteFile("https://data.dgl.ai/dataset/ppi.zip", None),),
        prepare_ppi,
        None,
        {
            f"{part}_{key}": ((count, size), kind)
            for part, count in (("train", 44906), ("val", 6514), ("test", 5524))
            for key, size, kind in (("x", 50, "float32"), ("y", 121, "uint8"))
        },
        folder="graph",
    )

    def __init__(self, data_dir: Path | None = None) -> None:
        self.data_dir = data_dir
        self.sizes = {"train": 44906, "valid": 6514, "test": 5524}

    def _build(self) -> Splits[GraphDataset]:
        arrays = load_arrays(self.archive, self.data_dir, progress=self.progress)
        return Splits(*(_part(arrays, part) for part in ("train", "val", "test")))


def _part(arrays: Arrays, part: str) -> GraphDataset:
    return GraphDataset(
        torch.from_numpy(arrays[f"{part}_x"]),
        torch.from_numpy(arrays[f"{part}_edges"].astype(np.int64)),
        torch.from_numpy(arrays[f"{part}_y"].astype(np.float32)),
        ends(arrays[f"{part}_num_nodes"]),
        ends(arrays[f"{part}_num_edges"]),
        per_node=True,
    )
