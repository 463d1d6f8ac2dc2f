import csv
import json
import re

import numpy as np
import torch

from anharmonic.export import integers


def test_a_trained_run_becomes_programs_that_predict_the_same(
    done, refused, train_quickly, tmp_path, monkeypatch
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
    done("predict", folder, "data.npz", "--output", "p.csv")
    predicted = [row["prediction"] for row in csv.DictReader((tmp_path / "p.csv").open())]
    assert "m.pt2" in done("export", folder, "--torch", "m.pt2")
    found = torch.export.load(tmp_path / "m.pt2").module()(torch.from_numpy(x))[0]
    assert [["high", "low"][k] for k in found.argmax(dim=1).tolist()] == predicted
    for words in ((), ("--weights", "int8", "--data", "data.npz")):
        assert "model.h" in done("export", folder, "--c", "c", *words)
        assert ("int8_t" in (tmp_path / "c" / "model.c").read_text()) == bool(words)
    calibrated.clear()
    written = (tmp_path / "c" / "model.c").read_text()
    said = "--threads must be left out without --evaluate"
    assert said in refused("export", folder, "--c", "c", *words, "--threads", "1")
    out = done("export", folder, "--c", "c", *words, "--evaluate", "--threads", "1")
    assert len(calibrated) == 1 and (tmp_path / "c" / "model.c").read_text() == written
    score = r"test accuracy: int8 (\d+)\N{NO-BREAK SPACE}%, trained model (\d+)\N{NO-BREAK SPACE}%"
    assert "(6 answers)" in out and re.search(score, out)
    np.savez(tmp_path / "other.npz", x=x + 1, y=label)
    words = ("--weights", "int8", "--data", "other.npz", "--evaluate")
    said = "leave --evaluate out, or give the file of training"
    assert said in refused("export", folder, "--c", "new", *words)
    assert not (tmp_path / "new").exists()


def test_integer_scores_of_uneven_times_are_refused_with_the_flag(refused, train_quickly, tmp_path):
    times = np.arange(9) + np.random.default_rng(0).uniform(0, 0.2, (20, 9))
    rows = [f"{n},{time:.3f},{np.sin(time)},{n % 2}" for (n, _), time in np.ndenumerate(times)]
    (tmp_path / "uneven.csv").write_text("\n".join(["id,time,x,label", *rows]))
    folder, _ = train_quickly("lem", "uneven.csv", "--streaming")
    words = ("--weights", "int8", "--data", "uneven.csv", "--evaluate")
    said = "--elapsed (elapsed) of the run must be 'ignore'"
    assert said in refused("export", folder, "--c", "c", *words)
