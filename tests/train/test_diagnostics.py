"""Measuring while training changes nothing that a run is known by."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from anharmonic.train import RunEnvironment, fit
from anharmonic.train import folder as folders
from anharmonic.train.probes import read_diagnostics

EVERYTHING = {
    "LSTM": ("gradients", "timescales", "lyapunov"),
    "UnICORNN": ("gradients", "timescales", "energy", "weights", "lyapunov"),
    "CoRNN": ("gradients", "energy", "weights", "lyapunov"),
}


def weights(environment, run):
    return load_file(environment.out / run.folder_name / folders.BEST / "model.safetensors")


@pytest.mark.parametrize("model", EVERYTHING)
def test_weights_and_result_stay_the_same_bits(tiny, environment, tmp_path, model):
    run = tiny(model=model, epochs=3)
    plain = fit(run, environment)
    watched = replace(environment, out=tmp_path / "watched", diagnose=EVERYTHING[model])
    seen = fit(run, watched)
    assert (seen.hash, seen.test, seen.curve) == (plain.hash, plain.test, plain.curve)
    one, other = weights(environment, run), weights(watched, run)
    assert one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)
    log = read_diagnostics(watched.out / run.folder_name / folders.DIAGNOSTICS)
    assert [entry["epoch"] for entry in log] == [0, 1, 2, 3]
    for entry in log:
        assert entry.keys() == {"epoch", *EVERYTHING[model]}
        assert not any("failed" in entry[name] for name in EVERYTHING[model])
    assert log[0]["gradients"] != log[3]["gradients"]
    assert not (environment.out / run.folder_name / folders.DIAGNOSTICS).exists()


def test_an_interrupted_run_ends_with_the_same_bits_and_one_entry_per_epoch(
    tiny, environment, tmp_path, hook_batches
):
    run = tiny(epochs=4)
    fit(run, environment)
    watched = replace(environment, out=tmp_path / "watched", diagnose=("gradients", "timescales"))

    def interrupt(name, batch):
        if name == "train 2 3":
            raise KeyboardInterrupt

    hook_batches(interrupt)
    with pytest.raises(KeyboardInterrupt):
        fit(run, watched)
    path = watched.out / run.folder_name / folders.DIAGNOSTICS
    assert [entry["epoch"] for entry in read_diagnostics(path)] == [0, 1, 2]
    hook_batches(lambda name, batch: None)
    fit(run, watched)
    assert [entry["epoch"] for entry in read_diagnostics(path)] == [0, 1, 2, 3, 4]
    one, other = weights(environment, run), weights(watched, run)
    assert all(torch.equal(one[k], other[k]) for k in one)


def test_now_and_then_and_the_last(tiny, environment):
    run = tiny(epochs=5)
    fit(run, replace(environment, diagnose=("gradients",), diagnose_every=3))
    log = read_diagnostics(environment.out / run.folder_name / folders.DIAGNOSTICS)
    assert [entry["epoch"] for entry in log] == [0, 3, 5]


def test_what_the_model_has_not_is_said_before_anything_is_done(tiny, environment):
    with pytest.raises(
        ValueError, match=r"diagnose must be among what LSTM has: gradients, times.*energy"
    ):
        fit(tiny(), replace(environment, diagnose=("energy",)))
    assert not environment.out.exists()


def test_the_place_checks_the_names():
    assert RunEnvironment(diagnose=["weights", "weights"]).diagnose == ("weights",)
    with pytest.raises(
        ValueError, match=r"a name in diagnose must be one of.*did you mean 'energy'"
    ):
        RunEnvironment(diagnose=("enregy",))
    with pytest.raises(TypeError, match="diagnose must be a list of names"):
        RunEnvironment(diagnose="energy")
    with pytest.raises(ValueError, match="diagnose_every must be an int >= 1"):
        RunEnvironment(diagnose_every=0)
