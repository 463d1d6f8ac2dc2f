"""Tasks on graphs, one file per kind of data."""

from anharmonic.tasks.graphs.base import GraphTask, NodeTask
from anharmonic.tasks.graphs.citations import Citeseer, Cora, Pubmed
from anharmonic.tasks.graphs.heterophilic import (
    Chameleon,
    ChameleonFiltered,
    Cornell,
    CornellOld,
    Film,
    Squirrel,
    SquirrelFiltered,
    Texas,
    Wisconsin,
)
from anharmonic.tasks.graphs.large import ArxivYear, Genius, SnapPatents
from anharmonic.tasks.graphs.molecules import ZincRebuilt
from anharmonic.tasks.graphs.networks import (
    FacebookAmherst41,
    FacebookCornell5,
    FacebookJohnsHopkins55,
    FacebookReed98,
    Minesweeper,
    Tolokers,
    TwitchDE,
)
from anharmonic.tasks.graphs.proteins import ProteinInteractions
from anharmonic.tasks.graphs.superpixels import MNISTSuperpixels
from anharmonic.tasks.graphs.synthetic_cora import SyntheticCora
from anharmonic.tasks.graphs.traffic import ChameleonTraffic, SquirrelTraffic

__all__ = ["GRAPH_TASKS", "GraphTask", "NodeTask"]

GRAPH_TASKS: tuple[type[GraphTask], ...] = (
    Cora,
    Citeseer,
    Pubmed,
    Texas,
    Wisconsin,
    Cornell,
    CornellOld,
    Film,
    Chameleon,
    Squirrel,
    ChameleonFiltered,
    SquirrelFiltered,
    SyntheticCora,
    TwitchDE,
    Tolokers,
    Minesweeper,
    FacebookReed98,
    FacebookAmherst41,
    FacebookJohnsHopkins55,
    FacebookCornell5,
    Genius,
    ArxivYear,
    SnapPatents,
    ChameleonTraffic,
    SquirrelTraffic,
    ProteinInteractions,
    ZincRebuilt,
    MNISTSuperpixels,
)
"""All tasks on graphs, in the order in which they are listed."""
