"""A social network and a game: undirected graphs with two classes."""

from pathlib import Path

from anharmonic_papers.tasks.graphs.stored import PLATONOV, StoredSplit, prepared


class Network(StoredSplit):
    """An undirected network with two classes of nodes and fixed splits.

    Args:
        split: Number of the fixed split, from 0: 50 % of the nodes train, 25 % validate.
        normalise_features: Whether the features of a node are divided by their sum.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[N, F]`, y `[R]` classes 0 and 1, rows `[R]`, no membership.

    Metric: accuracy in percent (the authors use the area under the ROC curve).
    """

    output_size = 2

    def __init__(
        self, split: int = 0, normalise_features: bool = False, data_dir: Path | None = None
    ) -> None:
        super().__init__(split, True, normalise_features, data_dir)


class Tolokers(Network):
    """Tolokers: predict which of 11,758 workers, linked by 519,000 common tasks, were banned.

    The task is in none of the papers.

    Split: 5879 / 2939 / 2940 workers.
    """

    name = "tolokers"
    input_size = 10
    source = PLATONOV
    licence = "MIT"
    class_names = ("not banned", "banned")
    parts = ((5879, 2939, 2940),)
    archive = prepared("het_tolokers")


class Minesweeper(Network):
    """Minesweeper: predict which cells of a grid of 100 by 100, with 39,402 links, hide a mine.

    The task is in none of the papers.

    Split: 5000 / 2500 / 2500 cells.
    """

    name = "minesweeper"
    input_size = 7
    source = PLATONOV
    licence = "MIT"
    class_names = ("free", "mine")
    parts = ((5000, 2500, 2500),)
    archive = prepared("het_minesweeper")
