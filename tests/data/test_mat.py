"""MATLAB's files."""

import numpy as np
import pytest

from anharmonic.data.mat import read_mat
from anharmonic.data.readers import read_parts

io = pytest.importorskip("scipy.io")
X = np.random.default_rng(0).random((6, 5, 2))


def saved(folder, **arrays):
    io.savemat(folder / "a.mat", arrays)
    return folder / "a.mat"


def cells(*content):
    made = np.empty(len(content), object)
    made[:] = content
    return made


CLASSES, RAGGED = np.array([1, 2, 1, 2, 1, 2]), cells(X[0], X[1][:3])
STEPS = cells(np.arange(5.0), np.arange(3.0) + 0.5)


@pytest.mark.parametrize(
    ("arrays", "lengths", "y"),
    [
        ({"x": X, "y": CLASSES, "fs": 100.0}, [5] * 6, [1, 2] * 3),
        ({"data": X, "labels": CLASSES}, [5] * 6, [1, 2] * 3),
        ({"signals": X, "target": CLASSES}, [5] * 6, [1, 2] * 3),
        ({"x": RAGGED, "y": cells("up", "down")}, [5, 3], ["up", "down"]),
        ({"x": RAGGED, "y": STEPS}, [5, 3], [[0], [1], [2], [3], [4], [0.5], [1.5], [2.5]]),
        ({"x": RAGGED, "y": np.array([0.5, 1.25], object)}, [5, 3], [0.5, 1.25]),
    ],
)
def test_arrays_vectors_and_cells(tmp_path, arrays, lengths, y):
    part = read_parts(saved(tmp_path, **arrays))["all"]
    x = X[: len(lengths)][np.arange(5) < np.array(lengths)[:, None]]
    assert np.allclose(part.x, x) and part.lengths.tolist() == lengths
    assert part.y.tolist() == y and part.per_step == (y[0] == [0])


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
    with pytest.raises(ValueError, match=r"x of a.mat must hold sequences \[T, F\]"):
        read_mat(saved(tmp_path, x=cells(X[0], X[1].T), y=cells("up", "down")))
    with pytest.raises(ValueError, match=r"x and y"):
        read_mat(saved(tmp_path, x=X))
    assert len(read_mat(saved(tmp_path, x=X), targets=False)["all"]) == 6
