"""What graphs do to samples is what training does."""

import dataclasses

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.data.sequences import Sequences
from anharmonic.export.graph import RunProgram
from anharmonic.export.prepared import Prepared
from anharmonic.ops import use_backend
from anharmonic.ops.reference import as_scan

KINDS = {
    "nothing": {"standardise": False, "missing": "error"},
    "forward": {"missing": "forward", "difference": True},
    "mask": {"missing": "mask", "difference": True, "elapsed": "channel"},
    "mean, each": {"missing": "mean", "scale_each": True},
    "step": {"missing": "mask", "elapsed": "step"},
}


def samples(missing):
    rng = np.random.default_rng(0)
    x = rng.normal([1.0, 5000.0], [2.0, 0.1], (5, 12, 2)).astype(np.float32)
    if missing != "error":
        x[rng.random(x.shape) < 0.3] = np.nan
        x[0, :3], x[1, :, 1] = np.nan, np.nan
    x[4, :, 0] = 1.3  # constant
    elapsed = rng.uniform(0.5, 1.5, (5, 12)).astype(np.float32)
    elapsed[:, 0] = 0
    return x, elapsed


def fitted(kind):
    options = {"standardise": True, **KINDS[kind]}
    x, elapsed = samples(options["missing"])
    flat = Sequences(
        "here", x.reshape(-1, 2), 12 * np.arange(6), elapsed=elapsed.ravel(), y=np.zeros((5, 1))
    )
    made = Preprocessing.fit(flat, options.pop("standardise"), options.pop("missing"), **options)
    return made, flat, torch.from_numpy(x), torch.from_numpy(elapsed)


@pytest.mark.covering
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scans", [False, True])
def test_it_is_what_training_does(kind, scans):
    made, flat, x, elapsed = fitted(kind)
    prepared = Prepared(made)
    wanted = made.transform(flat).reshape(5, 12, -1)
    if scans:
        with use_backend("reference"), as_scan():
            found = prepared(x, prepared.steps(elapsed))
    else:
        found = prepared(x, prepared.steps(elapsed))
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_a_constant_in_every_sequence_is_what_training_makes_of_it():
    rng = np.random.default_rng(0)
    x = np.stack([rng.normal(size=(7, 30)), np.repeat(rng.normal(size=(7, 1)), 30, 1)], 2)
    flat = Sequences("here", x.reshape(-1, 2).astype(np.float32), 30 * np.arange(8))
    made = Preprocessing.fit(flat, True, "error", scale_each=True)
    found = Prepared(made)(torch.from_numpy(flat.x).reshape(7, 30, 2))
    np.testing.assert_allclose(found.reshape(210, -1), made.transform(flat), atol=1e-4)


def test_a_forecast_goes_on_from_the_last_known_values_in_the_units_of_its_channels():
    made, flat, x, _ = fitted("forward")
    made = dataclasses.replace(made, forecast=(1, 0), horizon=3, target_scale=(2.0, 5.0))
    last = Prepared(made).last_known(x)
    np.testing.assert_allclose(last, made.last_known(flat, (1, 0)))
    model = ah.SequenceModel("LEM", made.size, 6, hidden_size=4)
    with torch.no_grad():
        model.linear.weight.zero_()
        model.linear.bias.fill_(1.0)
        (found,) = RunProgram(model, made, "value")(x)
    torch.testing.assert_close(found.reshape(5, 3, 2)[:, 2], last + torch.tensor([2.0, 5.0]))
