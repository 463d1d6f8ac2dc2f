"""Cora, and what citation graphs share: which subject has a paper?"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from anharmonic._checks import boolean, choice, message, natural
from anharmonic.data.base import seeded_rng
from anharmonic.data.graphs.base import NodeData, NodeTask
from anharmonic.data.graphs.edges import subgraph
from anharmonic.data.graphs.files import node_features, stored_split
from anharmonic.data.graphs.geometric import pyg_source
from anharmonic.data.graphs.splits import per_class
from anharmonic.data.sources import Source, load_arrays


class CitationTask(NodeTask):
    """Papers that cite each other, with a bag of words each; every link in both directions.

    Args:
        split: "public": the whole graph and the fixed split of Planetoid, 20 training papers of
            every class, 500 for validation, 1000 for the test; "random": the largest connected
            component, of which 1500 random papers are for development (20 of every class train,
            the others validate), all others for the test.
        split_number: Which of the random splits, from 0; 0 for "public".
        normalise_features: Whether the words of a paper are divided by their sum.
        data_dir: Folder of the data, see `anharmonic.data.download.data_folder`.

    Shape:
        x `[N, F]`, y `[R]` classes, rows `[R]`, no membership.

    Metric: accuracy in percent. Licence: MIT (repository of Planetoid).

    Note:
        The published GraphCON code draws one "random" split per run, from an unseeded number; here
        the number decides. It also takes ten papers of Citeseer's largest component that have
        neither words nor a class for papers of class 0: here they stay in the graph but count in no
        part, so that 610 test papers are left, not 620.

    References:
        Z. Yang et al.: Revisiting Semi-Supervised Learning with Graph Embeddings, 2016.
        O. Shchur et al.: Pitfalls of Graph Neural Network Evaluation, 2018.
    """

    licence = "MIT (repository of Planetoid)"
    metric = "accuracy"
    # Labelled papers of the largest connected component.
    connected: ClassVar[int]
    archive: ClassVar[Source]

    def __init__(
        self,
        split: Literal["public", "random"] = "public",
        split_number: int = 0,
        normalise_features: bool = False,
        data_dir: Path | None = None,
    ) -> None:
        self.split = choice("split", split, ("public", "random"))
        self.split_number = natural("split_number", split_number)
        if split == "public" and split_number != 0:
            raise ValueError(
                message(
                    "split_number must be 0 for split='public'",
                    f"split_number={split_number}",
                    "pass split='random' for random splits",
                )
            )
        self.normalise_features = boolean("normalise_features", normalise_features)
        self.data_dir = data_dir
        train = 20 * self.output_size
        self.sizes = (
            {"train": train, "valid": 500, "test": 1000}
            if split == "public"
            else {"train": train, "valid": 1500 - train, "test": self.connected - 1500}
        )

    def _read(self) -> NodeData:
        arrays = load_arrays(self.archive, self.data_dir, progress=self.progress)
        x, edges, y = node_features(arrays), arrays["edge_index"], arrays["y"]
        if self.split == "public":
            return NodeData(x, edges, y, stored_split(arrays, 0, "public_"))
        keep = arrays["lcc_mask"]
        known = np.ones(len(y), bool)
        known[arrays["unlabelled_nodes"]] = False
        rows = per_class(y[keep], known[keep], seeded_rng("citation split", self.split_number))
        return NodeData(x[keep], subgraph(edges, keep), y[keep], rows)


class Cora(CitationTask):
    """Cora: 2708 papers on machine learning, 5278 links, 7 subjects; links mostly within one.

    Split: 140 / 500 / 1000 papers ("public"), 140 / 1360 / 985 of 2485 ("random").
    """

    name = "cora"
    input_size = 1433
    output_size = 7
    source = "Cora, Planetoid files"
    class_names = tuple(str(i) for i in range(7))
    connected = 2485
    archive = pyg_source("planetoid_cora", "Planetoid", {"name": "Cora"}, 2708, 10556)
