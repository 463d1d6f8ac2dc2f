"""Measuring while training changes nothing that a run is known by."""

from dataclasses import replace

import pytest

from anharmonic.train import RunEnvironment, fit
from anharmonic.train import folder as folders
from anharmonic.train.probes import read_diagnostics

EVERYTHING = {
    "LSTM": ("gradients", "timescales", "lyapunov"),
    "UnICORNN": ("gradients", "timescales", "energy", "weights", "lyapunov"),
    "CoRNN": ("gradients", "energy", "weights", "lyapunov"),
}


@pytest.mark.parametrize("model", EVERYTHING)
def test_weights_and_result_stay_the_same_bits(tiny, environment, tmp_path, model, weights_of):
    run = tiny(model=model, epochs=2)
    plain = fit(run, environment)
    watched = replace(environment, out=tmp_path / "watched", diagnose=EVERYTHING[model])
    seen = fit(run, watched)
    assert (seen.hash, seen.test, seen.curve) == (plain.hash, plain.test, plain.curve)
    assert weights_of(run, environment) == weights_of(run, watched)
    log = read_diagnostics(watched.out / run.folder_name / folders.DIAGNOSTICS)
    assert [entry["epoch"] for entry in log] == [0, 1, 2]
    for entry in log:
        assert entry.keys() == {"epoch", *EVERYTHING[model]}
        assert not any("failed" in entry[name] for name in EVERYTHING[model])
    assert log[0]["gradients"] != log[2]["gradients"]
    assert not (environment.out / run.folder_name / folders.DIAGNOSTICS).exists()


def test_an_interrupted_run_ends_with_the_same_bits_and_one_entry_per_epoch(
    tiny, environment, whole, interrupted, weights_of
):
    run, watched = tiny(), replace(environment, diagnose=("gradients", "timescales"))
    interrupted(run, watched, "train 2 3")
    path = watched.out / run.folder_name / folders.DIAGNOSTICS
    assert [entry["epoch"] for entry in read_diagnostics(path)] == [0, 1, 2]
    fit(run, watched)
    assert [entry["epoch"] for entry in read_diagnostics(path)] == [0, 1, 2, 3, 4]
    assert weights_of(run, watched) == weights_of(run, whole)


def test_now_and_then_and_the_last(tiny, environment):
    run = tiny(epochs=3)
    fit(run, replace(environment, diagnose=("gradients",), diagnose_every=2))
    log = read_diagnostics(environment.out / run.folder_name / folders.DIAGNOSTICS)
    assert [entry["epoch"] for entry in log] == [0, 2, 3]
    run = tiny(epochs=9, patience=1, lr=1.0)
    result = fit(run, replace(environment, diagnose=("gradients",), diagnose_every=50))
    log = read_diagnostics(environment.out / run.folder_name / folders.DIAGNOSTICS)
    assert result.stopped == "early"
    assert [entry["epoch"] for entry in log] == [0, result.epochs_run]


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
