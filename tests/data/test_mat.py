"""MATLAB's files."""

import numpy as np
import pytest

from anharmonic.data import FileTask
from anharmonic.data.mat import read_mat

io = pytest.importorskip("scipy.io")
X = np.random.default_rng(0).random((6, 5, 2))


def saved(folder, **arrays):
    io.savemat(folder / "a.mat", arrays)
    return folder / "a.mat"


@pytest.mark.parametrize("names", [("x", "y"), ("data", "labels"), ("signals", "target")])
def test_arrays_and_vectors(tmp_path, names):
    path = saved(tmp_path, **{names[0]: X, names[1]: np.array([1, 2, 1, 2, 1, 2])}, fs=100.0)
    part = read_mat(path)["all"]
    assert np.allclose(part.x, X.reshape(30, 2)) and part.lengths.tolist() == [5] * 6
    assert part.y.tolist() == [1, 2, 1, 2, 1, 2]
    assert FileTask(path).class_names == ("1", "2")


def test_cells(tmp_path):
    cells = np.empty(3, object)
    cells[:] = [X[0], X[1][:3], X[2]]
    words = np.array(["up", "down", "up"], object)
    part = read_mat(saved(tmp_path, x=cells, y=words))["all"]
    assert part.lengths.tolist() == [5, 3, 5] and part.y.tolist() == ["up", "down", "up"]
    cells[1] = X[1].T
    with pytest.raises(ValueError, match=r"x of a.mat must hold sequences \[T, F\]"):
        read_mat(saved(tmp_path, x=cells, y=words))


def test_numbers_in_cells_are_targets_of_sequences_or_steps(tmp_path):
    cells, steps = np.empty(2, object), np.empty(2, object)
    cells[:], steps[:] = [X[0], X[1][:3]], [np.arange(5.0), np.arange(3.0) + 0.5]
    part = read_mat(saved(tmp_path, x=cells, y=steps))["all"]
    assert part.per_step and part.y[:, 0].tolist() == [0, 1, 2, 3, 4, 0.5, 1.5, 2.5]
    values = np.array([0.5, 1.25], object)
    part = read_mat(saved(tmp_path, x=cells, y=values))["all"]
    assert not part.per_step and part.y.tolist() == [0.5, 1.25]


def test_own_parts_and_text(tmp_path):
    train = {"X_train": X, "y_train": ["up ", "down"] * 3}
    parts = read_mat(saved(tmp_path, **train, X_test=X[:2], y_test=["up", "down"]))
    assert sorted(parts) == ["test", "train"]
    assert parts["train"].y.tolist() == ["up", "down"] * 3


def test_version_73_and_damage(tmp_path):
    path = tmp_path / "a.mat"
    head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    path.write_bytes(head + b"\x89HDF\r\n\x1a\n" + bytes(400))
    with pytest.raises(ValueError, match=r"version 7 or older; got version 7.3; .*-v7'"):
        read_mat(path)
    for raw in (b"", b"text", saved(tmp_path, x=X, y=[1]).read_bytes()[:300]):
        path.write_bytes(raw)
        with pytest.raises(ValueError, match=r"a.mat must be a sound .mat file"):
            read_mat(path)


def test_variables_that_are_not_clear(tmp_path):
    with pytest.raises(ValueError, match=r"must hold .*variable x.*; got ecg \[6, 5, 2\]"):
        read_mat(saved(tmp_path, ecg=X))
    with pytest.raises(ValueError, match=r"x and y"):
        read_mat(saved(tmp_path, x=X))
    assert len(read_mat(saved(tmp_path, x=X), targets=False)["all"]) == 6
