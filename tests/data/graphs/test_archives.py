import numpy as np

from anharmonic.data.graphs.archives import node_features, stored_split


def test_sparse_features_with_and_without_values():
    places = {"x_indptr": np.array([0, 2, 2, 3]), "x_indices": np.array([0, 2, 1])}
    parts = {**places, "x_shape": np.array([3, 3])}
    assert node_features(parts).tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    values = {**parts, "x_data": np.array([0.5, 2, 3], np.float32)}
    assert node_features(values).tolist() == [[0.5, 0, 2], [0, 0, 0], [0, 3, 0]]
    shared = {f"a_{key}": value for key, value in places.items()} | {"x_shape": parts["x_shape"]}
    assert node_features(shared, "a_x", "x_shape").tolist() == node_features(parts).tolist()


def test_dense_features_become_float32():
    assert node_features({"x": np.eye(2)}).dtype == np.float32


def test_masks_of_one_or_many_splits():
    names = [f"{part}_mask" for part in ("train", "val", "test")]
    many = {name: np.arange(3)[:, None] == (np.arange(2) + i) % 3 for i, name in enumerate(names)}
    assert [rows.tolist() for rows in stored_split(many, 1)] == [[1], [2], [0]]
    one = {f"public_{name}": np.arange(3) == i for i, name in enumerate(names)}
    assert [rows.tolist() for rows in stored_split(one, 0, "public_")] == [[0], [1], [2]]
