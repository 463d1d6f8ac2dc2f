"""Social networks and a game: undirected graphs with two classes."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from anharmonic._checks import boolean, natural
from anharmonic.data import (
    Arrays,
    NodeData,
    NodeTask,
    Source,
    load_arrays,
    seeded_rng,
)
from anharmonic_papers.tasks.graphs.archives import prepared
from anharmonic_papers.tasks.graphs.splits import half_split, half_split_sizes
from anharmonic_papers.tasks.graphs.stored import StoredSplit

_PLATONOV = "heterophilous-graphs (Platonov et al. 2023), revision a431395"
_LINKX = "Non-Homophily-Large-Scale (LINKX), revision 82f8f05"


class Network(StoredSplit):
    """An undirected network with two classes of nodes and fixed splits.

    Args:
        split: Number of the fixed split, from 0: 50 % of the nodes train, 25 % validate.
        normalise_features: Whether the features of a node are divided by their sum.
        data_dir: Folder of the data, see `anharmonic.data.data_folder`.

    Shape:
        x `[N, F]`, y `[R]` classes 0 and 1, rows `[R]`, no membership.

    Metric: accuracy in percent (its authors take the area under the ROC curve).
    """

    output_size = 2

    def __init__(
        self, split: int = 0, normalise_features: bool = False, data_dir: Path | None = None
    ) -> None:
        super().__init__(split, True, normalise_features, data_dir)


class TwitchDE(Network):
    """Twitch DE: whether 9498 streamers, with 153,138 friendships, show mature content.

    In none of the papers: a smaller stand-in of the kind of genius.

    Split: 4749 / 2374 / 2375 streamers.
    """

    name = "twitch-de"
    input_size = 3170
    source = f"{_LINKX}; data of MUSAE"
    licence = "none stated (repository of MUSAE: GPL-3.0)"
    class_names = ("not mature", "mature")
    split_count = 5
    parts = ((4749, 2374, 2375),)
    archive = prepared("twitch_de")


class Tolokers(Network):
    """Tolokers: whether 11,758 workers, linked by 519,000 common tasks, were banned.

    In none of the papers: a smaller stand-in of the kind of genius.

    Split: 5879 / 2939 / 2940 workers.
    """

    name = "tolokers"
    input_size = 10
    source = _PLATONOV
    licence = "MIT"
    class_names = ("not banned", "banned")
    parts = ((5879, 2939, 2940),)
    archive = prepared("het_tolokers")


class Minesweeper(Network):
    """Minesweeper: which cells of a grid of 100 by 100, with 39,402 links, hide a mine.

    In none of the papers.

    Split: 5000 / 2500 / 2500 cells.
    """

    name = "minesweeper"
    input_size = 7
    source = _PLATONOV
    licence = "MIT"
    class_names = ("free", "mine")
    parts = ((5000, 2500, 2500),)
    archive = prepared("het_minesweeper")


class Facebook(NodeTask):
    """Students of a university on Facebook in 2005: which of two genders they stated.

    Features are those of LINKX, all 0 or 1: one column for each value of student or faculty, major,
    second major, dormitory, year and high school (missing included). Who stated no gender is in the
    graph but in no part.

    Args:
        split: Which random split, from 0: of those with a gender 50 % train, 25 % validate.
        normalise_features: Whether the features of a node are divided by their sum.
        data_dir: Folder of the data, see `anharmonic.data.data_folder`.

    Shape:
        x `[N, F]`, y `[R]` classes 0 and 1, rows `[R]`, no membership.

    Metric: accuracy in percent. Licence: none stated.

    Note:
        In none of the papers: stand-ins of the kind of the LINKX graphs. LINKX draws its splits at
        random too, from another generator.

    References:
        D. Lim et al.: Large Scale Learning on Non-Homophilous Graphs, 2021.
    """

    metric = "accuracy"
    undirected = True
    output_size = 2
    source = f"{_LINKX}; Facebook-100 of Traud et al."
    licence = "none stated"
    class_names = ("0", "1")
    # Students whose gender is known.
    known: ClassVar[int]
    archive: ClassVar[Source]

    def __init__(
        self, split: int = 0, normalise_features: bool = False, data_dir: Path | None = None
    ) -> None:
        self.split = natural("split", split)
        self.normalise_features = boolean("normalise_features", normalise_features)
        self.data_dir = data_dir
        self.sizes = half_split_sizes(self.known)

    def _read(self) -> NodeData:
        arrays = load_arrays(self.archive, self.data_dir, progress=self.progress)
        y = arrays["y"]
        rows = half_split(y >= 0, seeded_rng("facebook split", self.split))
        return NodeData(one_hot_columns(arrays), arrays["edge_index_upper"], y, rows)


def one_hot_columns(arrays: Arrays) -> np.ndarray:
    """The features of LINKX: every column but the gender, one-hot over the values that occur.

    Example:
        >>> info = np.array([[4, 1, 7, 0, 0, 0, 0], [2, 2, 7, 0, 0, 0, 0]])
        >>> one_hot_columns({"local_info": info})[:, :3].tolist()
        [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]
    """
    blocks = []
    for column in (0, 2, 3, 4, 5, 6):
        values, number = np.unique(arrays["local_info"][:, column], return_inverse=True)
        block = np.zeros((len(number), len(values)), np.float32)
        block[np.arange(len(number)), number] = 1
        blocks.append(block)
    return np.concatenate(blocks, 1)


class FacebookReed98(Facebook):
    """Facebook-100 Reed: 962 students, 18,812 friendships, gender.

    Split: 432 / 216 / 217 of the 865 students who stated their gender.
    """

    name = "fb100-reed98"
    input_size = 745
    known = 865
    archive = prepared("fb100_reed98")


class FacebookAmherst41(Facebook):
    """Facebook-100 Amherst: 2235 students, 90,954 friendships, gender.

    Split: 1016 / 508 / 508 of the 2032 students who stated their gender.
    """

    name = "fb100-amherst41"
    input_size = 1193
    known = 2032
    archive = prepared("fb100_amherst41")


class FacebookJohnsHopkins55(Facebook):
    """Facebook-100 Johns Hopkins: 5180 students, 186,586 friendships, gender.

    Split: 2381 / 1190 / 1191 of the 4762 students who stated their gender.
    """

    name = "fb100-johns-hopkins55"
    input_size = 2406
    known = 4762
    archive = prepared("fb100_johns_hopkins55")


class FacebookCornell5(Facebook):
    """Facebook-100 Cornell: 18,660 students, 790,777 friendships, gender.

    Split: 8411 / 4205 / 4206 of the 16,822 students who stated their gender.
    """

    name = "fb100-cornell5"
    input_size = 4735
    known = 16822
    archive = prepared("fb100_cornell5")
