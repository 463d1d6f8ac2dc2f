"""Properties of the public functions on inputs that hypothesis thinks of.

`HYPOTHESIS_PROFILE=long` tries five hundred inputs each, as the slow tests do; else eight.
"""

import os

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from anharmonic.data import read_parts, save_npz, sequences_from
from anharmonic.data.preprocessing import Preprocessing

settings.register_profile("short", max_examples=8, deadline=None, derandomize=True)
settings.register_profile("long", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))
FINITE = st.floats(-1e6, 1e6, allow_nan=False, allow_infinity=False, width=32)


@given(arrays.arrays(np.float32, st.tuples(st.integers(2, 6), st.integers(1, 7)), elements=FINITE))
def test_scaled_channels_have_mean_0_and_deviation_1_or_0(x):
    part = sequences_from(x)
    scaled = Preprocessing.fit(part, standardise=True, missing="error").transform(part)
    assert np.isfinite(scaled).all()
    spread = float(np.abs(x.astype(np.float64) - x.astype(np.float64).mean()).max())
    if spread > 1e-3 * max(1.0, float(np.abs(x).max())):
        assert abs(scaled.mean(dtype=np.float64)) < 1e-2
        assert abs(scaled.std(dtype=np.float64) - 1) < 1e-2


SERIES = arrays.arrays(np.float32, st.tuples(st.integers(1, 5), st.just(2)), elements=FINITE)


@given(st.lists(SERIES, min_size=1, max_size=5))
def test_archives_give_back_what_was_written(tmp_path_factory, x):
    path = tmp_path_factory.mktemp("npz") / "d.npz"
    labels = [f"c{i % 2}" for i in range(len(x))]
    save_npz(path, {"all": sequences_from(x, labels)})
    part = read_parts(path)["all"]
    assert np.array_equal(part.x, np.concatenate(x))
    assert part.lengths.tolist() == [len(sequence) for sequence in x]
    assert [str(label) for label in part.y] == labels
