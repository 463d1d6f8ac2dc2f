"""What trains can be watched and stopped from outside."""

import pytest

from anharmonic.train import fit, run_folder
from anharmonic.train.run import RunEnvironment


class Stop(Exception):
    pass


def test_every_epoch_is_reported_with_its_values(tiny, environment):
    heard = []
    result = fit(tiny(), environment, on_epoch_end=lambda *arguments: heard.append(arguments))
    assert [epoch for epoch, _ in heard] == [1, 2, 3, 4]
    assert {name for _, values in heard for name in values} == set(result.curve) - {"epoch"}
    for name in set(result.curve) - {"epoch"}:
        reported = [values[name] for _, values in heard]
        assert reported == pytest.approx(result.curve[name], rel=1e-5)
    again = []
    fit(tiny(), environment, on_epoch_end=lambda *arguments: again.append(arguments))
    assert [epoch for epoch, _ in again] == [1, 2, 3, 4]


def test_who_stops_a_training_can_go_on_later(tiny, environment, tmp_path):
    def stop(epoch, values):
        if epoch == 2:
            raise Stop

    with pytest.raises(Stop):
        fit(tiny(), environment, on_epoch_end=stop)
    assert (run_folder(tiny(), environment) / "resume.ckpt").is_file()
    whole = fit(tiny(), RunEnvironment(out=tmp_path / "other", threads=1, progress=False))
    assert fit(tiny(), environment).test == whole.test
