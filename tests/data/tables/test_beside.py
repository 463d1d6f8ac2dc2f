"""Static and categorical columns as inputs."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from anharmonic.data import Columns, FileTask
from anharmonic.data.own import read_inputs
from anharmonic.data.readers import read_parts

LONG = (
    "id,time,ax,surface,age,sex,label\n"
    "1,0,0.5,grass,30,f,up\n1,1,0.7,sand,30,f,up\n"
    "2,0,0.1,sand,41,m,down\n2,1,0.2,,41,m,down\n"
)


def test_long_and_new_tables_that_are_coded_as_in_training(read):
    part = read(LONG, static=("age", "sex"), categorical=("surface",))
    beside = ("age", "sex=f", "sex=m", "surface=grass", "surface=sand")
    assert part.channels == ("ax", *beside) and part.columns.beside == beside
    rows = [[30, 1, 0, 1, 0], [30, 1, 0, 0, 1], [41, 0, 1, 0, 1], [41, 0, 1, 0, 0]]
    assert part.x[:, 1:].tolist() == rows and part.columns.target == "label"
    said = part.columns.describe()
    assert "one value per recording 'age'" in said and "categories 'f' and 'm' of 'sex'" in said
    assert Columns.from_dict(part.columns.to_dict()) == part.columns
    new = "surface,id,time,ax,sex,age\nsand,9,0,1,m,20\nsnow,9,1,2,m,20\n"
    with pytest.warns(UserWarning, match=r"'surface' of mine.csv holds 'snow', which training did"):
        coded = read(new, "new", columns=part.columns)
    assert coded.x.tolist() == [[1, 20, 0, 1, 0, 1], [2, 20, 0, 1, 0, 0]]
    with pytest.raises(ValueError, match=r"static column 'age', as in training; .*; add it"):
        read("surface,id,time,ax,sex\nsand,9,0,1,m\n", "new", columns=part.columns)


def test_wide(read):
    rows = "".join(f"{'ab'[i % 2]},{20 + i},{'fm'[i % 2]},{i % 3},{i},{i + 1}\n" for i in range(12))
    text = "label,age,sex,site,v0,v1\n" + rows
    part = read(text, static=("age", "sex"), categorical=("site",), layout="wide")
    assert part.channels == ("value", "age", "sex=f", "sex=m", "site=0", "site=1", "site=2")
    assert part.x[2].tolist() == [1, 21, 0, 1, 0, 1, 0]
    new = read(text.replace("label,", "what,"), "new", columns=part.columns)
    assert np.array_equal(new.x, part.x)


def test_one_value_is_given_once_or_in_every_row(read):
    text = "id,time,ax,age,label\n1,0,0.5,30,up\n1,1,0.7,,up\n2,0,1,,down\n2,1,1,,down\n"
    part = read(text, static=("age",))
    assert part.x[:2, 1].tolist() == [30, 30] and np.isnan(part.x[2:, 1]).all()


def test_forecasts_leave_inputs_alone(tmp_path):
    path, days = tmp_path / "a.csv", range(1, 26)
    rows = [
        f"2024-01-{i:02d},{s},{i},{('sun', 'rain')[i % 2]},{len(s)}" for s in "ab" for i in days
    ]
    path.write_text("date,shop,sales,weather,size\n" + "\n".join(rows))
    task = FileTask(path, horizon=2, window=4, static=["size"], categorical=["weather"])
    assert task.forecast_channels == ("sales",)
    assert task.input_size == 4 and task.output_size == 2
    inputs = read_inputs(path, task.preprocessing, task.columns)
    assert inputs.dataset.x.shape == (2, 4, 4)


def test_inputs_beside_sounds(tmp_path):
    def labels(text):
        (tmp_path / "labels.csv").write_text(text)

    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.arange(4.0))
    labels("file,label,age,sex\na,up,30,f\nb,down,41,m\n")
    part = read_parts(tmp_path, columns=Columns(static=("age", "sex")))["all"]
    assert part.channels == ("value", "age", "sex=f", "sex=m")
    assert part.x[4].tolist() == [0, 41, 0, 1] and part.y.tolist() == ["up", "down"]
    labels("file,sex,age\nb,x,41\na,f,30\n")
    with pytest.warns(UserWarning, match="'x'"):
        new = read_parts(tmp_path, targets=False, columns=part.columns)["all"]
    assert new.x[0].tolist() == [0, 30, 1, 0] and new.x[4].tolist() == [0, 41, 0, 0]
    (tmp_path / "labels.csv").unlink()
    with pytest.raises(ValueError, match=r"labels.csv of .* must have the column 'age'"):
        read_parts(tmp_path, targets=False, columns=part.columns)


def test_training_and_predicting_agree(tmp_path, cli):
    from anharmonic.train import predict

    rng = np.random.default_rng(0)
    rows = [
        f"{i},{t},{rng.normal():.3f},{('mild', 'hot')[t % 2]},{i % 5},{'ab'[i % 2]}"
        for i in range(24)
        for t in range(6)
    ]
    path = tmp_path / "a.csv"
    path.write_text("id,time,ax,air,age,label\n" + "\n".join(rows) + "\n")
    small = ["--hidden-size", "4", "--epochs", "2", "--threads", "1", "--no-progress"]
    roles = ["--static", "age", "--categorical", "air", "--out", tmp_path, "--streaming"]
    assert cli("train", "lem", path, *small, *roles)[0] == 0
    (run,) = tmp_path.glob("file-LEM-*")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cli("predict", run, path, "--output", "p.csv")[0] == 0
        found = predict(run, path)
    lines = [line.split(",") for line in Path("p.csv").read_text().splitlines()[1:]]
    assert [float(line[3]) for line in lines] == pytest.approx(found.values[:, 0], abs=1e-5)
    assert cli("export", run, "--c", "model")[0] == 0
