import numpy as np
import pytest

from anharmonic.data import DataOptions
from anharmonic.data.parts import cut_parts
from anharmonic.data.preprocessing import Preprocessing, windows_of
from anharmonic.data.sequences import Sequences
from anharmonic.data.windows import (
    channel_numbers,
    covering_windows,
    cut_windows,
    find_season,
    forecast_windows,
    last_windows,
    seasonal_values,
    window_length,
)


def sequences(x, lengths=None, **known):
    x = np.asarray(x, np.float32).reshape(len(x), -1)
    return Sequences("here", x, np.cumsum([0, *(lengths or [len(x)])]), **known)


def recordings(lengths, **known):
    """Recordings whose values count on, 1000 more for every next one."""
    x = np.concatenate([1000.0 * i + np.arange(n) for i, n in enumerate(lengths)])
    return sequences(x, lengths, **known)


def series(*lengths):
    """Series of the channels a and b, whose values count on through both."""
    x = np.arange(2.0 * sum(lengths)).reshape(-1, 2)
    return sequences(x, lengths, channels=("a", "b"))


def pieces(part):
    return [rows[:, 0].tolist() for rows in np.split(part.x, part.offsets[1:-1])]


def test_windows_stay_within_recordings_and_targets_and_times_go_with_them():
    part = cut_windows(recordings([5, 2, 4], y=np.array([7, 8, 9])), 3, 2)
    assert pieces(part) == [[0, 1, 2], [2, 3, 4], [1000, 1001], [2000, 2001, 2002]]
    assert part.y.tolist() == [7, 7, 8, 9]
    seven = np.arange(7.0, dtype=np.float32)
    part = cut_windows(recordings([4, 3], y=seven[:, None], per_step=True, elapsed=seven), 2, 2)
    assert part.y[:, 0].tolist() == part.elapsed.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("window", [1, 2, 5, 8])
def test_covering_windows_hold_every_step_once_as_fresh(window):
    lengths = [5, 1, 6]
    part, owners, fresh = covering_windows(recordings(lengths), window)
    seen = []
    for owner, new, rows in zip(owners, fresh, pieces(part), strict=True):
        assert len(rows) == min(window, lengths[owner])
        seen += rows[len(rows) - new :]
    assert seen == recordings(lengths).x[:, 0].tolist() and list(owners) == sorted(owners)


def test_forecasts_come_after_their_windows():
    x = np.outer(np.arange(8.0), [1, -1])
    x[6, 1] = np.nan
    part = sequences(x, channels=("up", "down"))
    made = forecast_windows(part, 3, 1, 2, channel_numbers(part, ("down", "up")))
    # Windows whose next values are not all known are left out: those before steps 5 and 6.
    assert made.x.reshape(-1, 3, 2)[:, :, 0].tolist() == [[0, 1, 2], [1, 2, 3]]
    assert made.y.tolist() == [[-3, 3, -4, 4], [-4, 4, -5, 5]]
    assert pieces(last_windows(recordings([5, 2]), 3).part) == [[2, 3, 4], [1000, 1001]]
    with pytest.raises(ValueError, match=r"windows of 7 steps with 2 .* got none, .* 8 steps;"):
        forecast_windows(part, 7, 1, 2, (0,))
    # A channel is forecast once, by name or number.
    assert channel_numbers(part, ("down", "0")) == (1, 0)
    with pytest.raises(ValueError, match="forecast must be different channels"):
        channel_numbers(part, ("up", "0"))
    with pytest.raises(ValueError, match="channel to forecast of here must be one of '0', '1',"):
        channel_numbers(part, ("left",))


def test_recordings_are_cut_into_parts_before_windows():
    whole = recordings([100, 200], y=np.array([0, 1]))
    made = cut_parts({"all": whole}, DataOptions(window=10), ("a", "b"))
    assert {name: part.lengths.tolist() for name, part in made.items()} == {
        "train": [70, 140], "valid": [15, 30], "test": [15, 30],
    }  # fmt: skip
    joined = [np.concatenate([pieces(made[n])[i] for n in made]).tolist() for i in (0, 1)]
    assert joined == pieces(whole)
    # Enough recordings are not cut themselves, nor those of groups.
    many = recordings([30] * 12, y=np.arange(12) % 2)
    for uncut in (many, recordings([30] * 4, groups=np.arange(4))):
        made = cut_parts({"all": uncut}, DataOptions(window=5), ())
        assert set(made["test"].lengths.tolist()) == {30}
    with pytest.raises(ValueError, match=r"at least 20 steps in each; got 15 for valid .* 100;"):
        cut_parts({"all": whole}, DataOptions(window=20), ())


def test_only_the_past_of_a_forecast_reaches_into_another_part():
    def ranges(**more):
        made = cut_parts({"all": recordings([100])}, DataOptions(window=8, horizon=4, **more), ())
        return {name: (part.x[0, 0], part.x[-1, 0]) for name, part in made.items()}

    assert ranges() == {"train": (0, 69), "valid": (62, 84), "test": (77, 99)}
    assert ranges(valid_share=0.0) == {"train": (0, 84), "test": (77, 99)}
    with pytest.raises(ValueError, match="--folds"):
        ranges(folds=2)


def test_what_is_known_of_a_season_is_never_what_is_forecast():
    part = sequences(np.arange(8))
    found = seasonal_values(part, part, 2, 1, 3, (0,), season=2)
    assert found[0].tolist() == [0.0, 1.0, 0.0]  # before the steps 2, 3 and 4


def test_the_shortest_of_seasons_that_repeat_alike_is_found():
    season, rng = np.array([0.0, 3.0, 9.0, 2.0]), np.random.default_rng(0)
    x = np.tile(np.concatenate([season + 0.2, season - 0.2]), 500) + rng.normal(size=4000)
    assert find_season(sequences(x), 2, (0,)) == 4
    # The neighbours of the season of a smooth curve are nearly as good.
    x = np.sin(np.pi / 6 * np.arange(1500)) + 0.5 * rng.standard_normal(1500)
    assert find_season(sequences(x), 1, (0,)) == 12


def test_forecasts_learn_from_windows_at_every_step_of_every_part():
    parts = {"train": series(10, 8), "valid": series(6), "test": series(7)}
    before = Preprocessing.fit(parts["train"], True, "error")
    options = DataOptions(window=3, horizon=2, forecast=("b",))
    how, made, tested = windows_of(parts, window_length(options, parts), options, before)
    assert {name: len(part) for name, part in made.items()} == {"train": 10, "valid": 2, "test": 3}
    assert not tested and (how.window, how.horizon, how.forecast) == (3, 2, (1,))
    first = made["test"]
    assert first.x[:3].tolist() == [[0, 1], [2, 3], [4, 5]] and first.y[0].tolist() == [7, 9]
    assert how.forecast_names == ("b",) and how.mean == before.mean
    # Values two and four above the last known one.
    assert how.target_scale == pytest.approx([np.sqrt((2**2 + 4**2) / 2)])


@pytest.mark.parametrize("stride, count", [(None, 2 + 1), (1, 5 + 3), (2, 3 + 2)])
def test_only_training_is_cut_by_the_stride(stride, count):
    parts = {"train": series(8, 6), "test": series(9, 4)}
    before = Preprocessing.fit(parts["train"], True, "error")
    how, made, tested = windows_of(parts, 4, DataOptions(window=4, stride=stride), before)
    assert len(made["train"]) == count and how.window == 4
    assert list(tested) == ["test"] and tested["test"].owners.tolist() == [0, 0, 0, 1]
    assert made["test"].lengths.tolist() == [4, 4, 4, 4]


@pytest.mark.parametrize(
    "horizon, shortest, window",
    [(1, 100, 16), (10, 1000, 40), (10, 40, 9), (3, 5, 1)],
)
def test_the_window_follows_from_the_horizon_and_the_series(horizon, shortest, window):
    parts = {"train": series(2000), "test": series(shortest, 300)}
    assert window_length(DataOptions(horizon=horizon), parts) == window
    assert window_length(DataOptions(window=7, horizon=horizon), parts) == 7
