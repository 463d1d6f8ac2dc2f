from anharmonic_papers.tasks.graphs.heterophilic import ChameleonFiltered, Texas


def test_sizes_may_depend_on_the_split():
    assert ChameleonFiltered().sizes != ChameleonFiltered(split=1).sizes
    assert sum(ChameleonFiltered(split=1).sizes.values()) == 890
    assert Texas().sizes == Texas(split=9).sizes
