"""Two larger citation graphs: predict the subject of a paper."""

from anharmonic.data import CitationTask, pyg_source
from anharmonic_papers.tasks.graphs.stored import prepared


class Citeseer(CitationTask):
    """Citeseer: 3327 papers on computer science, 4552 links, 6 subjects; links mostly within one.

    Split: 120 / 500 / 1000 papers ("public"), 120 / 1380 / 610 of 2120 ("random").
    """

    name = "citeseer"
    input_size = 3703
    output_size = 6
    source = "Citeseer, Planetoid files"
    class_names = tuple(str(i) for i in range(6))
    connected = 2110
    archive = pyg_source(
        prepared("planetoid_citeseer"), "Planetoid", {"name": "CiteSeer"}, 3327, 9104
    )


class Pubmed(CitationTask):
    """Pubmed: 19,717 papers on diabetes, 44,324 links, 3 subjects; links mostly within one.

    Split: 60 / 500 / 1000 papers ("public"), 60 / 1440 / 18,217 ("random": the graph is connected).
    """

    name = "pubmed"
    input_size = 500
    output_size = 3
    source = "Pubmed, Planetoid files"
    class_names = tuple(str(i) for i in range(3))
    connected = 19717
    archive = pyg_source(
        prepared("planetoid_pubmed"), "Planetoid", {"name": "PubMed"}, 19717, 88648
    )
