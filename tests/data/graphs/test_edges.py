"""Edges, features and masks as they are stored."""

import numpy as np

from anharmonic.data.graphs.archives import node_features, stored_split
from anharmonic.data.graphs.edges import coalesce, subgraph, to_undirected

PATH = np.array([[3, 0, 3, 1, 1], [1, 2, 1, 1, 3]])  # 3 -> 1 twice, 1 -> 3, 0 -> 2, 1 -> 1


def test_edges_are_distinct_and_sorted_in_one_or_both_directions():
    assert coalesce(PATH, 4).tolist() == [[0, 1, 1, 3], [2, 1, 3, 1]]
    assert coalesce(PATH.astype(np.uint64), 4).dtype == np.int64
    both = to_undirected(PATH, 4)
    assert both.tolist() == [[0, 1, 1, 2, 3], [2, 1, 3, 0, 1]]  # self loops once
    assert to_undirected(both, 4).tolist() == both.tolist()
    large = np.array([[2_900_000], [2_900_001]], np.int32)
    assert coalesce(large, 2_923_922).tolist() == large.tolist(), "no overflow"
    mask = np.array([False, True, False, True])  # nodes are numbered anew
    assert subgraph(coalesce(PATH, 4), mask).tolist() == [[0, 0, 1], [0, 1, 0]]


def test_features_are_dense_or_sparse_with_and_without_values():
    places = {"x_indptr": np.array([0, 2, 2, 3]), "x_indices": np.array([0, 2, 1])}
    parts = {**places, "x_shape": np.array([3, 3])}
    assert node_features(parts).tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    values = {**parts, "x_data": np.array([0.5, 2, 3], np.float32)}
    assert node_features(values).tolist() == [[0.5, 0, 2], [0, 0, 0], [0, 3, 0]]
    shared = {f"a_{key}": value for key, value in places.items()} | {"x_shape": parts["x_shape"]}
    assert node_features(shared, "a_x", "x_shape").tolist() == node_features(parts).tolist()
    assert node_features({"x": np.eye(2)}).dtype == np.float32


def test_masks_of_one_or_many_splits():
    names = [f"{part}_mask" for part in ("train", "val", "test")]
    many = {name: np.arange(3)[:, None] == (np.arange(2) + i) % 3 for i, name in enumerate(names)}
    assert [rows.tolist() for rows in stored_split(many, 1)] == [[1], [2], [0]]
    one = {f"public_{name}": np.arange(3) == i for i, name in enumerate(names)}
    assert [rows.tolist() for rows in stored_split(one, 0, "public_")] == [[0], [1], [2]]
