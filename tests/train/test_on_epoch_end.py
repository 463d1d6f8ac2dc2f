"""What trains can be watched and stopped from outside."""

import pytest

from anharmonic.train import fit, read_results


class Stop(Exception):
    pass


def test_every_epoch_is_reported_and_who_stops_a_training_can_go_on(tiny, whole, environment):
    heard = []

    def stop_at_2(epoch, values):
        heard.append((epoch, values))
        if len(heard) == 2:
            raise Stop

    with pytest.raises(Stop):
        fit(tiny(), environment, on_epoch_end=stop_at_2)
    result = fit(tiny(), environment, on_epoch_end=stop_at_2)
    (uninterrupted,) = read_results(whole.results_path)
    assert result.curve == uninterrupted.curve and result.test == uninterrupted.test
    # Who goes on hears of the epochs before once more, and so does who comes after the end.
    fit(tiny(), environment, on_epoch_end=stop_at_2)
    assert [epoch for epoch, _ in heard] == [1, 2, *[1, 2, 3, 4] * 2]
    for name in set(result.curve) - {"epoch"}:
        reported = [values[name] for _, values in heard[-4:]]
        assert reported == pytest.approx(result.curve[name], rel=1e-5)
