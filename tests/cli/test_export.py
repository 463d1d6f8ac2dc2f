import csv
import json
import shutil
import subprocess

import numpy as np
import pytest
import torch


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nowhere", "--c"),
        ("nowhere --c program", "nowhere must be the folder of a finished run"),
        ("nowhere --c program --weights int16", "--weights int16 needs --data"),
        ("nowhere --onnx program --weights int8", "--weights must be left out without --c"),
        ("nowhere --torch program --data mine.npz", "--data must be left out without --c"),
        ("nowhere --c program --data mine.npz", "--data must be left out for --weights float"),
        ("nowhere --onnx program --portable", "--portable must be left out without --torch"),
    ],
)
def test_wrong_words_are_said(cli, tmp_path, words, said):
    code, out, err = cli("export", *words.split())
    assert code == 2 and out == "" and said in err
    assert not (tmp_path / "program").exists()


def test_a_trained_run_becomes_c_that_predicts_the_same(cli, tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("there is no C compiler")
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 20)
    x = rng.normal(size=(40, 30, 2)) + label[:, None, None]
    x[rng.random(x.shape) < 0.05] = np.nan
    data = tmp_path / "data.npz"
    np.savez(data, x=x.astype("f4"), y=np.array(["low", "high"])[label])
    code, out, err = cli(
        "train", "lem", str(data), "--missing", "forward", "--difference", "True",
        "--hidden-size", "4", "--bidirectional", "False", "--epochs", "2",
        "--out", str(tmp_path / "runs"), "--no-progress",
    )  # fmt: skip
    assert code == 0, err
    (folder,) = (p.parent for p in (tmp_path / "runs").rglob("task.json"))
    code, out, err = cli("export", str(folder), "--c", str(tmp_path / "c"))
    assert code == 0 and "model.h" in out, err
    csv_file = tmp_path / "p.csv"
    assert cli("predict", str(folder), str(data), "--output", str(csv_file))[0] == 0
    predicted = [row["prediction"] for row in csv.DictReader(csv_file.open())]
    assert json.loads((folder / "task.json").read_text())["class_names"] == ["high", "low"]
    numbers = ",".join("NAN" if np.isnan(v) else repr(float(v)) for v in x.astype("f4").ravel())
    (tmp_path / "c" / "all.c").write_text(
        '#include <stdio.h>\n#include <math.h>\n#include "model.h"\n'
        f"static const float x[] = {{{numbers}}};\n"
        "int main(void) { int n; for (n = 0; n < 40; n++) { model_real out[MODEL_OUTPUTS];\n"
        "model_sequence(x + n * 60, 30, out); puts(model_classes[model_largest(out)]); }\n"
        "return 0; }\n"
    )
    program = tmp_path / "all"
    files = [str(tmp_path / "c" / name) for name in ("model.c", "all.c")]
    subprocess.run(["gcc", "-std=c99", *files, "-lm", "-o", str(program)], check=True)
    said = subprocess.run([program], capture_output=True, text=True).stdout.split()
    assert said == predicted
    code, out, err = cli("export", str(folder), "--torch", str(tmp_path / "m.pt2"))
    assert code == 0 and "m.pt2" in out, err
    found = torch.export.load(tmp_path / "m.pt2").module()(torch.tensor(x, dtype=torch.float32))[0]
    assert [["high", "low"][k] for k in found.argmax(dim=1).tolist()] == predicted
    code, out, err = cli(
        "export", str(folder), "--c", str(tmp_path / "int8"), "--weights", "int8",
        "--data", str(data),
    )  # fmt: skip
    assert code == 0, err
    check = tmp_path / "check"
    files = [str(tmp_path / "int8" / name) for name in ("model.c", "model_test.c")]
    subprocess.run(["gcc", "-std=c99", *files, "-o", str(check)], check=True)
    assert subprocess.run([check]).returncode == 0
