import numpy as np
import pytest

from anharmonic.data.graphs.edges import (
    by_first_appearance,
    coalesce,
    homophily,
    largest_component,
    subgraph,
    to_undirected,
)

PATH = np.array([[3, 0, 3, 1, 1], [1, 2, 1, 1, 3]])  # 3 -> 1 twice, 1 -> 3, 0 -> 2, 1 -> 1


def test_distinct_edges_are_sorted() -> None:
    assert coalesce(PATH, 4).tolist() == [[0, 1, 1, 3], [2, 1, 3, 1]]


def test_both_directions_keep_self_loops_once() -> None:
    edges = to_undirected(PATH, 4)
    assert edges.tolist() == [[0, 1, 1, 2, 3], [2, 1, 3, 0, 1]]
    assert to_undirected(edges, 4).tolist() == edges.tolist()


def test_large_node_numbers_do_not_overflow() -> None:
    edges = np.array([[2_900_000], [2_900_001]], np.int32)
    assert coalesce(edges, 2_923_922).tolist() == [[2_900_000], [2_900_001]]


def test_induced_numbers_nodes_anew() -> None:
    keep = np.array([False, True, False, True])
    assert subgraph(coalesce(PATH, 4), keep).tolist() == [[0, 0, 1], [0, 1, 0]]


def test_largest_component_of_a_long_path() -> None:
    order = np.random.default_rng(0).permutation(1000)
    edges = np.stack([order[:600], order[1:601]])  # a path of 601 nodes in random numbers
    edges = np.concatenate([edges, np.stack([order[601:-1], order[602:]])], 1)
    found = largest_component(edges, 1000)
    assert sorted(np.flatnonzero(found)) == sorted(order[:601])


def test_component_of_equal_size_is_the_first() -> None:
    assert largest_component(np.array([[2, 0], [3, 1]]), 4).tolist() == [True, True, False, False]


def test_first_appearance_renames_and_leaves_unnamed_nodes_last() -> None:
    edges = np.array([[4, 2, 4], [2, 0, 0]])  # named: 4, 2, 0; not named: 1, 3
    assert by_first_appearance(edges, 5).tolist() == [[0, 1, 0], [1, 2, 2]]
    same = by_first_appearance(np.array([[0, 1], [1, 2]]), 5)
    assert same.tolist() == [[0, 1], [1, 2]]


def test_first_appearance_is_a_relabelling() -> None:
    rng = np.random.default_rng(1)
    edges = coalesce(rng.integers(0, 50, (2, 200)), 60)
    renamed = by_first_appearance(edges, 60)
    degree = np.sort(np.bincount(edges.reshape(-1), minlength=60))
    assert (np.sort(np.bincount(renamed.reshape(-1), minlength=60)) == degree).all()


def test_homophily_counts_links_once_and_self_loops() -> None:
    y = np.array([0, 1, 0, 1])
    assert homophily(PATH, y) == pytest.approx(1.0)  # 1-3, 0-2, 1-1
    assert homophily(np.array([[0, 1, 0], [1, 0, 2]]), y) == pytest.approx(0.5)
