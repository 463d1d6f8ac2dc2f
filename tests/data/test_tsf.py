"""Series of the Monash archive."""

import numpy as np
import pytest

from anharmonic.data import FileTask
from anharmonic.data.readers import read_parts
from anharmonic.data.tsf import read_tsf
from anharmonic.data.windows import future_times

HEAD = (
    "# Tourism\n@relation tourism\n@attribute series_name string\n"
    "@attribute start_timestamp date\n@frequency monthly\n@horizon 3\n@missing true\n"
    "@equallength false\n@data\n"
)
ROWS = "T1:1979-01-31 00-00-00:1,2,?,4\nT2:1980-06-01 12-30-00:5,6.5\n"


def test_series_names_dates_and_gaps(tmp_path):
    (tmp_path / "a.tsf").write_text(HEAD + ROWS)
    part = read_tsf(tmp_path / "a.tsf")
    assert part.ids.tolist() == ["T1", "T2"] and part.lengths.tolist() == [4, 2]
    assert np.isnan(part.x[2, 0]) and part.x[4:, 0].tolist() == [5, 6.5]
    times = ["1979-01-31T00:00:00", "1980-06-01T12:30:00"]
    assert part.times.astype("M8[s]").astype(str).tolist() == times and part.interval == 2629746


@pytest.mark.parametrize(
    ("word", "seconds"),
    [("10_minutes", 600), ("half_hourly", 1800), ("4_seconds", 4), ("daily", 86400), ("odd", None)],
)
def test_frequencies(tmp_path, word, seconds):
    (tmp_path / "a.tsf").write_text(HEAD.replace("monthly", word) + ROWS)
    assert read_tsf(tmp_path / "a.tsf").interval == seconds


@pytest.mark.parametrize(
    ("word", "dates"),
    [
        ("monthly", ["1987-04-30", "1987-05-31", "1988-10-01", "1988-11-01"]),
        ("quarterly", ["2003-10-31", "2004-01-31", "2005-06-01", "2005-09-01"]),
        ("yearly", ["2078-01-31", "2079-01-31", "2080-06-01", "2081-06-01"]),
    ],
)
def test_dates_of_forecasts_count_months(tmp_path, word, dates):
    values = ",".join(map(str, range(100)))
    rows = f"T1:1979-01-31 00-00-00:{values[:-3]}\nT2:1980-06-01 12-30-00:{values}\n"
    (tmp_path / "a.tsf").write_text(HEAD.replace("monthly", word) + rows)
    found = future_times(read_tsf(tmp_path / "a.tsf"), 2)
    assert found.astype("M8[D]").astype(str).reshape(-1).tolist() == dates
    assert str(found[1, 0])[11:16] == "12:30"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "T1:1,2\n", r"line 10 of a.tsf must be 2 attributes .*; got '2 parts'"),
        (HEAD + "T1:1979:1,b\n", r"must end with numbers"),
        (HEAD + "T1:soon:1,2\n", r"date in line 10 of a.tsf must be like"),
        (HEAD.replace("@data\n", ""), "no line @data"),
        ("@oddity\n" + HEAD, "the tag in line 1"),
        (HEAD.replace(" date", " day"), "the kind in line 4"),
        (HEAD, "at least one"),
    ],
)
def test_errors(tmp_path, text, said):
    (tmp_path / "a.tsf").write_text(text)
    with pytest.raises(ValueError, match=said):
        read_tsf(tmp_path / "a.tsf")


def test_they_are_forecast(tmp_path):
    values = ",".join(str(i % 7) for i in range(60))
    (tmp_path / "a.tsf").write_text(HEAD + f"T1:1979-01-31 00-00-00:{values}\n")
    with pytest.raises(ValueError, match=r"must be forecast; got no horizon; .*--horizon"):
        read_parts(tmp_path / "a.tsf")
    assert FileTask(tmp_path / "a.tsf", horizon=2).forecast_channels == ("value",)
