"""Graph regression: a property of molecules."""

from pathlib import Path
from typing import Literal

import numpy as np
import torch

from anharmonic._checks import choice
from anharmonic.data import Arrays, GraphDataset, GraphTask, Splits, load_arrays
from anharmonic_papers.tasks.graphs.stored import prepared

ATOMS = 28
"""Number of atom types of ZINC-12k, with hydrogens and charge; 20 of them occur."""


class ZincRebuilt(GraphTask):
    """ZINC-12k, rebuilt: constrained solubility of molecules, with other training molecules.

    Heavy atoms are nodes. Bonds are edges in both directions, without the type of bond.

    Args:
        atoms: "onehot" gives 28 features, with 1 for the kind of atom. "number" gives the kind as
            one number, as in the published code of GraphCON.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[N, 28]` or `[N, 1]`, y `[G, 1]`, no rows, membership `[N]`.

    Split: 10,000 / 1000 / 1000 molecules.

    Metric: mean absolute error. Licence: MIT (repositories); ZINC is free to use, not to
    redistribute in large parts.

    Note:
        Graphs and targets are computed again from SMILES, and targets differ from those of ZINC-12k
        by a few thousandths. Validation and test molecules are those of ZINC-12k. The file of its
        training molecules was not available, so the 10,000 here are others of the same 249,456
        molecules. Errors are comparable with published ones, but it is not the same experiment.

    References:
        V. P. Dwivedi et al.: Benchmarking Graph Neural Networks, 2020.
        T. K. Rusch et al.: GraphCON, https://arxiv.org/abs/2202.02296, Table 4.
    """

    name = "zinc-rebuilt"
    target = "value"
    readout = "graph"
    metric = "mae"
    output_size = 1
    source = (
        "ZINC-12k rebuilt from SMILES (icml18-jtnn, revision d4c425a): validation and test are "
        "the molecules of ZINC-12k, training molecules are others of ZINC-250k"
    )
    licence = "MIT (repositories); ZINC is free to use, not to redistribute in large parts"
    archive = prepared("zinc_12k_rebuilt")

    def __init__(
        self, atoms: Literal["onehot", "number"] = "onehot", data_dir: Path | None = None
    ) -> None:
        self.atoms = choice("atoms", atoms, ("onehot", "number"))
        self.input_size = ATOMS if atoms == "onehot" else 1
        self.data_dir = data_dir
        self.sizes = {"train": 10000, "valid": 1000, "test": 1000}

    def _build(self) -> Splits[GraphDataset]:
        arrays = load_arrays(self.archive, self.data_dir, progress=self.progress)
        return Splits(*(self._part(arrays, part) for part in ("train", "val", "test")))

    def _part(self, arrays: Arrays, part: str) -> GraphDataset:
        kinds = arrays[f"{part}_atom_type"]
        x = np.eye(ATOMS, dtype=np.uint8)[kinds] if self.atoms == "onehot" else kinds[:, None]
        # Each bond is stored once; its reverse edge is inserted right after it.
        bonds = arrays[f"{part}_bonds"].astype(np.int64)
        edges = np.stack([bonds, bonds[::-1]], 2).reshape(2, -1)
        return GraphDataset(
            torch.from_numpy(x),
            torch.from_numpy(edges),
            torch.from_numpy(arrays[f"{part}_y"][:, None]),
            ends(arrays[f"{part}_num_nodes"]),
            ends(2 * arrays[f"{part}_num_bonds"].astype(np.int64)),
        )


def ends(counts: np.ndarray) -> torch.Tensor:
    """Return the end of each piece of a flat list, with a leading 0: int64 `[G + 1]`."""
    return torch.from_numpy(np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]))
