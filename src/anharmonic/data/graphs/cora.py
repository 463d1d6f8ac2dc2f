"""Cora, and the base of citation graphs: predict the subject of a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from anharmonic._checks import boolean, choice, natural, require
from anharmonic.data.base import Splits, seeded_rng
from anharmonic.data.graphs.archives import node_features, stored_split
from anharmonic.data.graphs.base import NodeData, NodeTask
from anharmonic.data.graphs.edges import subgraph
from anharmonic.data.graphs.pyg import pyg_source
from anharmonic.data.parts import Indices
from anharmonic.data.sources import Source, load_arrays

# Papers outside the test part of a random split, and training papers of every class.
_DRAWN, _PER_CLASS = 1500, 20


class CitationTask(NodeTask):
    """Papers that cite each other, with a bag of words per paper; all links go both ways.

    Args:
        split: The "public" split or a "random" one. "public" is the whole graph with the fixed
            split of Planetoid: 20 training papers per class, 500 for validation, 1000 for the test.
            "random" is the largest connected component with 1500 random papers for development (20
            per class train, the others validate) and all others for the test.
        split_number: Number of the random split, from 0; 0 for "public".
        normalise_features: Whether to divide a paper's word counts by their sum.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[N, F]`, y `[R]` classes, rows `[R]`, no membership.

    Metric: accuracy in percent. Licence: MIT (repository of Planetoid).

    Note:
        The published code of GraphCON (https://arxiv.org/abs/2202.02296) draws one unseeded
        "random" split per run; here the number determines it. That code also treats ten papers of
        Citeseer's largest component without words and class as class 0. Here they stay in the graph
        but are in no part, which leaves 610 test papers instead of 620.

    References:
        Z. Yang et al.: Revisiting Semi-Supervised Learning with Graph Embeddings, 2016.
        O. Shchur et al.: Pitfalls of Graph Neural Network Evaluation, 2018.

    Example:
        >>> from anharmonic.data import task_class
        >>> issubclass(task_class("cora"), CitationTask)
        True
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
        fits = split == "random" or split_number == 0
        advice = "pass split='random' for random splits"
        require(fits, "split_number", split_number, "0 for split='public'", advice)
        self.normalise_features = boolean("normalise_features", normalise_features)
        self.data_dir = data_dir
        train = _PER_CLASS * self.output_size
        valid, test = 500, 1000
        if split == "random":
            valid, test = _DRAWN - train, self.connected - _DRAWN
        self.sizes = {"train": train, "valid": valid, "test": test}

    def _read(self) -> NodeData:
        arrays = load_arrays(self.archive, self.data_dir, progress=self.progress)
        x, edges, y = node_features(arrays), arrays["edge_index"], arrays["y"]
        if self.split == "public":
            return NodeData(x, edges, y, stored_split(arrays, prefix="public_"))
        connected = arrays["lcc_mask"]
        known = np.ones(len(y), bool)
        known[arrays["unlabelled_nodes"]] = False
        x, edges, y = x[connected], subgraph(edges, connected), y[connected]
        rng = seeded_rng("citation split", self.split_number)
        return NodeData(x, edges, y, random_split(y, known[connected], rng))


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
    archive = pyg_source(
        Source(
            "planetoid_cora",
            digest="a402143789f225d5b13804da1558c75e400eda904f8161b8872c6d26c3b67acd",
            folder="graph",
        ),
        "Planetoid",
        {"name": "Cora"},
        nodes=2708,
        edges=10556,
    )


def random_split(
    y: NDArray[Any], known: NDArray[np.bool_], rng: np.random.Generator
) -> Splits[Indices]:
    """The random split for citation graphs of Shchur et al. (2018).

    Of 1500 random nodes, 20 of every class train and the others validate; all remaining `known`
    nodes test.
    """
    order = rng.permutation(np.flatnonzero(known))
    drawn, test = order[:_DRAWN], order[_DRAWN:]
    parts = [drawn[y[drawn] == label][:_PER_CLASS] for label in np.unique(y[known])]
    fewest = min(len(part) for part in parts)
    expected = f"of more than {_DRAWN} nodes, {_PER_CLASS} of every class among those drawn"
    came = f"{len(order)} nodes, as few as {fewest} of a class"
    fits = len(test) > 0 and fewest == _PER_CLASS
    require(fits, "the split", came, expected, "use another split")
    train = np.concatenate(parts)
    return Splits(np.sort(train), np.setdiff1d(drawn, train), np.sort(test))
