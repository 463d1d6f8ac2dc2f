"""Properties of the public functions on inputs that hypothesis thinks of.

`HYPOTHESIS_PROFILE=long` tries five hundred inputs each, as the slow tests do; else eight.
"""

import os

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as arrays  # noqa: E402

from anharmonic.data import read_parts, save_npz, sequences_from  # noqa: E402
from anharmonic.data.preprocessing import Preprocessing  # noqa: E402
from anharmonic.nn.registry import SEQUENCE_LAYERS, model_class  # noqa: E402

settings.register_profile("short", max_examples=8, deadline=None, derandomize=True)
settings.register_profile("long", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))
NUMBERS = {"allow_nan": False, "allow_infinity": False, "width": 32}


@st.composite
def calls(draw):
    """A layer and a batch, however it lies in memory, with lengths."""
    kind = model_class(draw(st.sampled_from(sorted(SEQUENCE_LAYERS))))
    steps, batch, width, hidden = (draw(st.integers(1, most)) for most in (9, 5, 4, 9))
    torch.manual_seed(draw(st.integers(0, 9)))
    options = {"num_layers": draw(st.integers(1, 3)), "bidirectional": draw(st.booleans())}
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    layer = kind(width, hidden, **options, dtype=dtype)
    x = torch.randn(steps, batch, width, dtype=dtype)
    match draw(st.integers(0, 3)):
        case 1:
            x = x.transpose(0, 2).contiguous().transpose(0, 2)
        case 2:
            x = torch.stack([x, x], -1)[..., 0]
        case 3:
            x = x.flip(0).flip(0)
    lengths = draw(st.lists(st.integers(1, steps), min_size=batch, max_size=batch))
    return layer, x, torch.tensor(lengths)


@given(calls())
def test_layers_keep_shape_and_dtype_and_do_not_look_past_the_end(call):
    layer, x, lengths = call
    directions = 2 if layer.bidirectional else 1
    output, state = layer(x)
    assert output.shape == (*x.shape[:2], directions * layer.hidden_size)
    assert output.dtype == x.dtype and all(part.dtype == x.dtype for part in state)
    assert output.isfinite().all()
    again, _ = layer(x.contiguous().clone())
    # (PyTorch's own layers may round otherwise where memory lies otherwise.)
    exact = 0.0 if not isinstance(layer, torch.nn.RNNBase) else 1e-6
    torch.testing.assert_close(again, output, rtol=exact, atol=exact)
    packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
    ends, _ = layer(packed, output="last")
    for b, length in enumerate(lengths.tolist()):
        alone, _ = layer(x[:length, b : b + 1], output="last")
        torch.testing.assert_close(ends[b], alone[0], rtol=2e-5, atol=2e-6)


FINITE = st.floats(-1e6, 1e6, **NUMBERS)


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
