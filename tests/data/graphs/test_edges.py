import numpy as np

from anharmonic.data.graphs.edges import coalesce, subgraph, to_undirected

PATH = np.array([[3, 0, 3, 1, 1], [1, 2, 1, 1, 3]])  # 3 -> 1 twice, 1 -> 3, 0 -> 2, 1 -> 1


def test_distinct_edges_are_sorted():
    assert coalesce(PATH, 4).tolist() == [[0, 1, 1, 3], [2, 1, 3, 1]]


def test_both_directions_keep_self_loops_once():
    edges = to_undirected(PATH, 4)
    assert edges.tolist() == [[0, 1, 1, 2, 3], [2, 1, 3, 0, 1]]
    assert to_undirected(edges, 4).tolist() == edges.tolist()


def test_large_node_numbers_do_not_overflow():
    edges = np.array([[2_900_000], [2_900_001]], np.int32)
    assert coalesce(edges, 2_923_922).tolist() == [[2_900_000], [2_900_001]]


def test_numbers_without_a_sign_stay_whole():
    assert coalesce(PATH.astype(np.uint64), 4).dtype == np.int64


def test_subgraph_numbers_nodes_anew():
    mask = np.array([False, True, False, True])
    assert subgraph(coalesce(PATH, 4), mask).tolist() == [[0, 0, 1], [0, 1, 0]]
