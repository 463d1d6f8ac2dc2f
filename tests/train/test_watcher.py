"""Measuring while training changes nothing that a run is known by."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from anharmonic.train import Place, fit
from anharmonic.train import folder as folders
from anharmonic.train.probes import read_log

EVERYTHING = {
    "LSTM": ("gradients", "timescales", "lyapunov"),
    "UnICORNN": ("gradients", "timescales", "energy", "weights", "lyapunov"),
    "CoRNN": ("gradients", "energy", "weights", "lyapunov"),
}


def weights(place, run):
    return load_file(place.out / run.folder_name / folders.BEST / "model.safetensors")


@pytest.mark.parametrize("model", EVERYTHING)
def test_weights_and_result_stay_the_same_bits(tiny, place, tmp_path, model):
    run = tiny(model=model, epochs=3)
    plain = fit(run, place)
    watched = replace(place, out=tmp_path / "watched", diagnose=EVERYTHING[model])
    seen = fit(run, watched)
    assert (seen.hash, seen.test, seen.curve) == (plain.hash, plain.test, plain.curve)
    one, other = weights(place, run), weights(watched, run)
    assert one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)
    log = read_log(watched.out / run.folder_name / folders.DIAGNOSTICS)
    assert [entry["epoch"] for entry in log] == [0, 1, 2, 3]
    for entry in log:
        assert entry.keys() == {"epoch", *EVERYTHING[model]}
        assert not any("failed" in entry[name] for name in EVERYTHING[model])
    assert log[0]["gradients"] != log[3]["gradients"]
    assert not (place.out / run.folder_name / folders.DIAGNOSTICS).exists()


def test_an_interrupted_run_ends_with_the_same_bits_and_one_entry_per_epoch(
    tiny, place, tmp_path, hook_batches
):
    run = tiny(epochs=4)
    fit(run, place)
    watched = replace(place, out=tmp_path / "watched", diagnose=("gradients", "timescales"))

    def interrupt(name, batch):
        if name == "train 2 3":
            raise KeyboardInterrupt

    hook_batches(interrupt)
    with pytest.raises(KeyboardInterrupt):
        fit(run, watched)
    path = watched.out / run.folder_name / folders.DIAGNOSTICS
    assert [entry["epoch"] for entry in read_log(path)] == [0, 1, 2]
    hook_batches(lambda name, batch: None)
    fit(run, watched)
    assert [entry["epoch"] for entry in read_log(path)] == [0, 1, 2, 3, 4]
    one, other = weights(place, run), weights(watched, run)
    assert all(torch.equal(one[k], other[k]) for k in one)


def test_now_and_then_and_the_last(tiny, place):
    run = tiny(epochs=5)
    fit(run, replace(place, diagnose=("gradients",), diagnose_every=3))
    log = read_log(place.out / run.folder_name / folders.DIAGNOSTICS)
    assert [entry["epoch"] for entry in log] == [0, 3, 5]


def test_what_the_model_has_not_is_said_before_anything_is_done(tiny, place):
    with pytest.raises(
        ValueError, match=r"diagnose must name what LSTM has: gradients, times.*energy"
    ):
        fit(tiny(), replace(place, diagnose=("energy",)))
    assert not place.out.exists()


def test_the_place_checks_the_names():
    assert Place(diagnose=["weights", "weights"]).diagnose == ("weights",)
    with pytest.raises(
        ValueError, match=r"a name in diagnose must be one of.*did you mean 'energy'"
    ):
        Place(diagnose=("enregy",))
    with pytest.raises(TypeError, match="diagnose must be a list of names"):
        Place(diagnose="energy")
    with pytest.raises(ValueError, match="diagnose_every must be an int >= 1"):
        Place(diagnose_every=0)


def test_names_are_those_of_the_measures():
    from typing import get_args

    from anharmonic.diagnostics.measures import MEASURES
    from anharmonic.train.run import Diagnostic

    assert get_args(Diagnostic) == tuple(MEASURES)
