"""What trains can be watched and stopped from outside."""

import pytest

from anharmonic.train import fit, run_folder
from anharmonic.train.run import RunEnvironment


class Stop(Exception):
    pass


def test_every_epoch_is_told(tiny, environment):
    said = []
    result = fit(tiny(), environment, told=lambda epoch, valid: said.append((epoch, valid)))
    assert [epoch for epoch, _ in said] == [1, 2, 3, 4]
    assert [value for _, value in said] == pytest.approx(result.curve["valid"], rel=1e-5)


def test_who_stops_a_training_can_go_on_later(tiny, environment, tmp_path):
    def stop(epoch, valid):
        if epoch == 2:
            raise Stop

    with pytest.raises(Stop):
        fit(tiny(), environment, told=stop)
    assert (run_folder(tiny(), environment) / "resume.ckpt").is_file()
    whole = fit(tiny(), RunEnvironment(out=tmp_path / "other", threads=1, progress=False))
    assert fit(tiny(), environment).test == whole.test
