"""Tasks on one graph with stored splits."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from anharmonic._checks import boolean, natural, require
from anharmonic.data import (
    MetricName,
    NodeData,
    NodeTask,
    Source,
    load_arrays,
    node_features,
    stored_split,
)


class StoredSplit(NodeTask):
    """A prediction task on the nodes of one graph with fixed splits.

    Attributes:
        archive: The source of the data.
        parts: The sizes of the parts, one entry for all splits or one for each.
        split_count: The number of splits.
    """

    metric: MetricName = "accuracy"
    archive: ClassVar[Source]
    parts: ClassVar[tuple[tuple[int, int, int], ...]]
    split_count: ClassVar[int] = 10

    def __init__(
        self,
        split: int = 0,
        undirected: bool = False,
        normalise_features: bool = False,
        data_dir: Path | None = None,
    ) -> None:
        self.split = natural("split", split)
        fits, expected = split < self.split_count, f"in [0, {self.split_count - 1}]"
        require(fits, "split", split, expected, "choose a stored split")
        self.undirected = boolean("undirected", undirected)
        self.normalise_features = boolean("normalise_features", normalise_features)
        self.data_dir = data_dir
        sizes = self.parts[split % len(self.parts)]
        self.sizes = dict(zip(("train", "valid", "test"), sizes, strict=True))

    def _read(self) -> NodeData:
        arrays = load_arrays(self.archive, self.data_dir, progress=self.progress)
        rows = stored_split(arrays, self.split)
        return NodeData(node_features(arrays), arrays["edge_index"], arrays["y"], rows)
