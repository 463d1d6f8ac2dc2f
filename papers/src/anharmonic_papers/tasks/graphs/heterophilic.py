"""Graphs with fixed splits whose links mostly join nodes of different classes."""

from pathlib import Path

from anharmonic._checks import boolean
from anharmonic.data import NodeData, pyg_source
from anharmonic_papers.tasks.graphs.stored import PLATONOV, StoredSplit, prepared

_GEOM = "Geom-GCN (Pei et al. 2020), revision f1fc0d1"


class DirectedPages(StoredSplit):
    """Pages or persons that link to each other, with some words each, in five classes.

    Links are directed as stored, including self-links. Words are 0 or 1.

    Args:
        split: Number of the fixed split, 0 to 9: 48 % of the nodes train, 32 % validate, 20 % test.
        undirected: Whether to add the reverse of every link. The published runs do not.
        reverse: Whether to follow links backwards. A page then receives features from the pages
            that it links to, instead of those that link to it. On Chameleon and Squirrel this
            decides the accuracy.
        normalise_features: Whether the words of a node are divided by their sum.
        data_dir: Folder of the data; see `anharmonic.data.data_folder`.

    Shape:
        x `[N, F]`, y `[R]` classes 0 to 4, rows `[R]`, no membership.

    Metric: accuracy in percent.

    References:
        H. Pei et al.: Geom-GCN: Geometric Graph Convolutional Networks, 2020.
    """

    output_size = 5
    class_names = tuple(str(i) for i in range(5))
    source = _GEOM
    licence = "none stated"

    def __init__(
        self,
        split: int = 0,
        undirected: bool = False,
        reverse: bool = False,
        normalise_features: bool = False,
        data_dir: Path | None = None,
    ) -> None:
        super().__init__(split, undirected, normalise_features, data_dir)
        self.reverse = boolean("reverse", reverse)

    def _read(self) -> NodeData:
        found = super()._read()
        return found._replace(edges=found.edges[::-1]) if self.reverse else found


class Texas(DirectedPages):
    """WebKB Texas: 183 web pages of a university, 325 links, 5 kinds of page.

    Split: 87 / 59 / 37 pages.
    """

    name = "texas"
    input_size = 1703
    parts = ((87, 59, 37),)
    archive = pyg_source(prepared("geom_texas"), "WebKB", {"name": "Texas"}, 183, 325)


class Wisconsin(DirectedPages):
    """WebKB Wisconsin: 251 web pages of a university, 515 links, 5 kinds of page.

    Split: 120 / 80 / 51 pages.
    """

    name = "wisconsin"
    input_size = 1703
    parts = ((120, 80, 51),)
    archive = pyg_source(prepared("geom_wisconsin"), "WebKB", {"name": "Wisconsin"}, 251, 515)


class Cornell(DirectedPages):
    """WebKB Cornell, corrected: 183 web pages of a university, 277 undirected links, 5 kinds.

    Published results up to about 2022 used a faulty file, including those of GraphCON
    (https://arxiv.org/abs/2202.02296) and G² (https://arxiv.org/abs/2210.00513). To compare with
    them, use the task "cornell-old". Here links are stored in both directions, without self-links,
    so `undirected` has no effect.

    Split: 87 / 59 / 37 pages.
    """

    name = "cornell"
    input_size = 1703
    parts = ((87, 59, 37),)
    source = PLATONOV
    licence = "MIT"
    archive = prepared("geom_cornell")


class CornellOld(DirectedPages):
    """WebKB Cornell as in Geom-GCN, with the words and classes of Texas: for comparison only.

    By mistake its file of words and classes is that of Texas. Only the 298 links are Cornell's.
    The papers' tables use this file. For all other purposes use the task "cornell".

    Split: 87 / 59 / 37 pages.
    """

    name = "cornell-old"
    input_size = 1703
    parts = ((87, 59, 37),)
    source = f"{_GEOM}; words and classes are those of Texas"
    archive = pyg_source(prepared("geom_cornell_old"), "WebKB", {"name": "Cornell"}, 183, 298)


class Film(DirectedPages):
    """Film (Actor): 7600 actors, 30,019 directed links of common pages, 5 classes of their words.

    Split: 3648 / 2432 / 1520 actors.
    """

    name = "film"
    input_size = 932
    parts = ((3648, 2432, 1520),)
    archive = pyg_source(prepared("geom_film"), "Actor", {}, 7600, 30019)


class Chameleon(DirectedPages):
    """Wikipedia Chameleon: 2277 articles, 36,101 directed links, 5 classes of monthly traffic.

    Many articles are duplicates of articles in another part of the split. The task
    "chameleon-filtered" leaves them out.

    Split: 1092 / 729 / 456 articles.
    """

    name = "chameleon"
    input_size = 2325
    parts = ((1092, 729, 456),)
    archive = pyg_source(
        prepared("geom_chameleon"), "WikipediaNetwork", {"name": "chameleon"}, 2277, 36101
    )


class Squirrel(DirectedPages):
    """Wikipedia Squirrel: 5201 articles, 217,073 directed links, 5 classes of monthly traffic.

    Many articles are duplicates of articles in another part of the split. The task
    "squirrel-filtered" leaves them out.

    Split: 2496 / 1664 / 1041 articles.
    """

    name = "squirrel"
    input_size = 2089
    parts = ((2496, 1664, 1041),)
    archive = pyg_source(
        prepared("geom_squirrel"), "WikipediaNetwork", {"name": "squirrel"}, 5201, 217073
    )


class ChameleonFiltered(DirectedPages):
    """Wikipedia Chameleon without duplicate articles: 890 articles, 13,584 directed links.

    Split: about 424 / 289 / 177 articles; the sizes differ slightly between splits.
    """

    name = "chameleon-filtered"
    input_size = 2325
    source = PLATONOV
    licence = "MIT"
    parts = (
        (409, 287, 194),
        (427, 302, 161),
        (422, 290, 178),
        (412, 294, 184),
        (440, 268, 182),
        (434, 292, 164),
        (418, 284, 188),
        (421, 310, 159),
        (431, 287, 172),
        (426, 278, 186),
    )
    archive = prepared("het_chameleon_filtered")


class SquirrelFiltered(DirectedPages):
    """Wikipedia Squirrel without duplicate articles: 2223 articles, 65,718 directed links.

    Split: about 1063 / 712 / 448 articles; the sizes differ slightly between splits.
    """

    name = "squirrel-filtered"
    input_size = 2089
    source = PLATONOV
    licence = "MIT"
    parts = (
        (1053, 718, 452),
        (1080, 700, 443),
        (1047, 726, 450),
        (1060, 713, 450),
        (1055, 719, 449),
        (1077, 691, 455),
        (1085, 692, 446),
        (1051, 739, 433),
        (1049, 691, 483),
        (1074, 733, 416),
    )
    archive = prepared("het_squirrel_filtered")
