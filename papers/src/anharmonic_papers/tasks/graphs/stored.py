"""The prepared archives of graphs, `graph/NAME.npz`, and tasks on one graph with stored splits."""

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

PLATONOV = "heterophilous-graphs (Platonov et al. 2023), revision a431395"
# SHA-256 of the arrays; see `anharmonic.data.arrays_digest`.
DIGESTS = {
    "geom_chameleon": "c6e6fa362012fa3b73f0cddc51fe662bf46490de1db448437e1597813f50db28",
    "geom_cornell": "17eac5acc01c16469a1834ec7842fff532fe9b55856860ddf4978c39891eaabd",
    "geom_cornell_old": "316703c3fba02c8e3c8aa398c7ef713454e63d4a7dc87e1a63c90e3522ce3d85",
    "geom_film": "70bb8147baa5a1f20472a0e952c0ef0eb60049887f7f0f9991c6a8e396a96ba1",
    "geom_squirrel": "f5ea9df113ec11a599e23282bdcdfb7052282a7c0de9d328c88438a087513d87",
    "geom_texas": "bfb5fecf2d8b4806727babc218269559a4bb13414e40ad2ea7b85ddf319e048d",
    "geom_wisconsin": "40693278c317642e3804e551512ac413ff44c1aa05632fde23d31060f1db91f9",
    "het_chameleon_filtered": "c13618cba7c6850da0bc6f2c954099fb3613f5f6d154c67183bb422d6ab641b5",
    "het_minesweeper": "d27b0f4f4a202c21c41728a1e180e6b9d68b4a633645917bf6c1d2e118dbee7b",
    "het_squirrel_filtered": "436f53b76b09b48f6d25c4de9d4fd52840f85407f60c505b033ab5e4c1414b61",
    "het_tolokers": "6ee582adc4fc62de4d7dac81029f336a87a3757b2e9e650d4f02e51c561eb6b1",
    "planetoid_citeseer": "0ac2beec3c9aa01e6168b5a48c656452dd4749ab30088a2b6749e3975cb7a83e",
    "planetoid_pubmed": "bec7602f05dc1be54478f6b480909b9efef8bcfbbc1e7931066c275f2c6b4ad2",
    "syn_cora": "cb5c52e52bad09ca030462bdcb323bed41603bd1e2c027cdaf7077294c2e6acd",
    "zinc_12k_rebuilt": "ea4eb1c0d72d05ef34fa7b7a8bdc5abc323ea0c4c8c683a4690b710aba7a5a3f",
}


def prepared(name: str) -> Source:
    """Return the source of a prepared archive, which cannot be downloaded."""
    return Source(name, digest=DIGESTS[name], folder="graph")


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
