import csv
import json
import re

import numpy as np
import torch

from anharmonic.export import integers


def test_a_trained_run_becomes_programs_that_predict_the_same(
    cli, train_quickly, tmp_path, monkeypatch
):
    """(Programs in C are compiled in tests/export.)"""
    calibrate, calibrated = integers._calibration, []
    monkeypatch.setattr(integers, "_calibration", lambda *a: calibrated.append(a) or calibrate(*a))
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 20)
    x = rng.normal(size=(40, 30, 2)).astype("f4") + label[:, None, None].astype("f4")
    x[rng.random(x.shape) < 0.05] = np.nan
    np.savez(tmp_path / "data.npz", x=x, y=np.array(["low", "high"])[label])
    flags = ("--missing", "forward", "--difference", "True", "--bidirectional", "False")
    folder, _ = train_quickly("lem", "data.npz", *flags)
    assert json.loads((folder / "task.json").read_text())["class_names"] == ["high", "low"]
    assert cli("predict", folder, "data.npz", "--output", "p.csv")[0] == 0
    predicted = [row["prediction"] for row in csv.DictReader((tmp_path / "p.csv").open())]
    code, out, err = cli("export", folder, "--torch", "m.pt2")
    assert code == 0 and "m.pt2" in out, err
    found = torch.export.load(tmp_path / "m.pt2").module()(torch.from_numpy(x))[0]
    assert [["high", "low"][k] for k in found.argmax(dim=1).tolist()] == predicted
    for words in ((), ("--weights", "int8", "--data", "data.npz")):
        code, out, err = cli("export", folder, "--c", "c", *words)
        assert code == 0 and "model.h" in out, err
        assert ("int8_t" in (tmp_path / "c" / "model.c").read_text()) == bool(words)
    calibrated.clear()
    written = (tmp_path / "c" / "model.c").read_text()
    code, _, err = cli("export", folder, "--c", "c", *words, "--threads", "1")
    assert code == 2 and "--threads must be left out without --evaluate" in err
    code, out, err = cli("export", folder, "--c", "c", *words, "--evaluate", "--threads", "1")
    assert code == 0 and "(6 answers)" in out, err
    assert len(calibrated) == 1 and (tmp_path / "c" / "model.c").read_text() == written
    score = r"test accuracy: int8 (\d+)\N{NO-BREAK SPACE}%, trained model (\d+)\N{NO-BREAK SPACE}%"
    assert re.search(score, out)
    np.savez(tmp_path / "other.npz", x=x + 1, y=label)
    words = ("--weights", "int8", "--data", "other.npz", "--evaluate")
    code, _, err = cli("export", folder, "--c", "new", *words)
    assert (
        code == 2
        and "leave --evaluate out, or give the file of training" in err
        and not (tmp_path / "new").exists()
    )


def test_integer_scores_of_uneven_times_are_refused_with_the_flag(cli, train_quickly, tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"{n},{t + rng.uniform(0, 0.4):.3f},{rng.normal()},{n % 2}"
        for n in range(20)
        for t in range(9)
    ]
    (tmp_path / "uneven.csv").write_text("\n".join(["id,time,x,label", *rows]))
    folder, _ = train_quickly("lem", "uneven.csv", "--streaming")
    words = ("--weights", "int8", "--data", "uneven.csv", "--evaluate")
    code, _, err = cli("export", folder, "--c", "c", *words)
    assert code == 2 and "--elapsed (elapsed) of the run must be 'ignore'" in err
