"""Static and categorical columns as inputs."""

import numpy as np
import pytest

from anharmonic.data import Columns, FileTask
from anharmonic.data.own import read_inputs
from anharmonic.data.readers import read_parts

LONG = (
    "id,time,ax,surface,age,sex,label\n"
    "1,0,0.5,grass,30,f,up\n1,1,0.75,sand,30,f,up\n"
    "2,0,0.125,sand,41,m,down\n2,1,0.25,,41,m,down\n"
)
WIDE = "label,age,sex,site,v0,v1\na,20,f,0,0,1\nb,21,m,1,1,2\na,22,f,2,2,3\n"
ONCE = "id,time,ax,age,label\n1,0,0.5,30,up\n1,1,0.7,,up\n2,0,1,,down\n2,1,1,,down\n"
BESIDE = ("age", "sex=f", "sex=m", "surface=grass", "surface=sand")
INPUTS = {"static": ("age", "sex"), "categorical": ("surface",)}
SITES = {"static": ("age", "sex"), "categorical": ("site",), "layout": "wide"}


@pytest.mark.parametrize(
    ("table", "given", "right"),
    [
        (LONG, INPUTS, {"channels": ("ax", *BESIDE), "target": "label", "x": [
            [0.5, 30, 1, 0, 1, 0], [0.75, 30, 1, 0, 0, 1],
            [0.125, 41, 0, 1, 0, 1], [0.25, 41, 0, 1, 0, 0]]}),
        (WIDE, SITES, {
            "channels": ("value", "age", "sex=f", "sex=m", "site=0", "site=1", "site=2"),
            "x": [[i + k, 20 + i, (i + 1) % 2, i % 2, i == 0, i == 1, i == 2]
                  for i in range(3) for k in range(2)]}),
        # One value is given once or in every row.
        (ONCE, {"static": ("age",)}, {"channels": ("ax", "age"),
                                      "x": [[0.5, 30], [0.7, 30], [1, np.nan], [1, np.nan]]}),
    ],
)  # fmt: skip
def test_values_beside_the_steps(check, table, given, right):
    check(table, right, **given)


def test_new_tables_are_coded_as_in_training(read):
    found = read(LONG, **INPUTS).columns
    assert found.beside == BESIDE and Columns.from_dict(found.to_dict()) == found
    said = found.describe()
    assert "one value per recording 'age'" in said and "categories 'f' and 'm' of 'sex'" in said
    new = "surface,id,time,ax,sex,age\nsand,9,0,1,m,20\nsnow,9,1,2,m,20\n"
    with pytest.warns(UserWarning, match=r"'surface' of mine.csv holds 'snow', which training did"):
        coded = read(new, "new", columns=found)
    assert coded.x.tolist() == [[1, 20, 0, 1, 0, 1], [2, 20, 0, 1, 0, 0]]
    with pytest.raises(ValueError, match=r"static column 'age', as in training; .*; add it"):
        read("surface,id,time,ax,sex\nsand,9,0,1,m\n", "new", columns=found)


def test_forecasts_leave_inputs_alone(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"2024-01-{i:02d},{s},{i},{'xy'[i % 2]},3" for s in "ab" for i in range(1, 26)]
    path.write_text("date,shop,sales,weather,size\n" + "\n".join(rows))
    task = FileTask(path, horizon=2, window=4, static=["size"], categorical=["weather"])
    assert task.forecast_channels == ("sales",) and (task.input_size, task.output_size) == (4, 2)
    inputs = read_inputs(path, task.preprocessing, task.columns)
    assert inputs.dataset.x.shape == (2, 4, 4)


def test_inputs_beside_sounds(tmp_path):
    labels = tmp_path / "labels.csv"
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", np.arange(4.0))
    labels.write_text("file,label,age,sex\na,up,30,f\nb,down,41,m\n")
    part = read_parts(tmp_path, columns=Columns(static=("age", "sex")))["all"]
    assert part.channels == ("value", "age", "sex=f", "sex=m")
    assert part.x[4].tolist() == [0, 41, 0, 1] and part.y.tolist() == ["up", "down"]
    labels.write_text("file,sex,age\nb,x,41\na,f,30\n")
    with pytest.warns(UserWarning, match="'x'"):
        new = read_parts(tmp_path, targets=False, columns=part.columns)["all"]
    assert new.x[0].tolist() == [0, 30, 1, 0] and new.x[4].tolist() == [0, 41, 0, 0]
    labels.unlink()
    with pytest.raises(ValueError, match=r"labels.csv of .* must have the column 'age'"):
        read_parts(tmp_path, targets=False, columns=part.columns)
