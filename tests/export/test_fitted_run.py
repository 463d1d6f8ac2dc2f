"""Resonators from a file to C, in three commands."""

import numpy as np
import pytest

from anharmonic.train import evaluate_run, predict

pytest.importorskip("sklearn")


@pytest.mark.parametrize("values", [False, True], ids=["classes", "values"])
def test_from_a_file_to_c_in_three_commands(cli, tmp_path, check, program, values):
    rng = np.random.default_rng(0)
    speed = rng.choice([0.3, 0.6], 60)
    x = np.sin(speed[:, None] * np.arange(50) + rng.uniform(0, 6, (60, 1))) * 5 + 20
    y = 100 + 10 * speed if values else np.where(speed < 0.5, "slow", "fast")
    file = tmp_path / "mine.npz"
    np.savez(file, x=x, y=y)
    flags = ("--target", "value") if values else ()
    words = ("--num-oscillators", "30", "--threads", "1", *flags)
    code, out, err = cli("train", "resonators", file, *words)
    assert code == 0 and "baseline" in out and "fitted in" in err, err
    (folder,) = (tmp_path / "runs").glob("file-*")
    assert cli("predict", folder, file)[0] == 0
    code, out, err = cli("export", folder, "--c", "program")
    assert code == 0 and "model.c" in out, err
    check(tmp_path / "program")
    # The program prepares samples as training did.
    run = program(tmp_path / "program", 1 if values else 2, double=True)
    found = np.stack([run(row[:, None]) for row in x[:5]])
    if not values:
        found = np.exp(found) / np.exp(found).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, predict(folder, file).values[:5], rtol=2e-2, atol=2e-2)
    with pytest.warns(UserWarning, match="training file"):
        assert evaluate_run(folder, file).is_better


def test_what_has_no_form_is_said(cli, tmp_path, data):
    cli("train", "resonators", data, "--num-oscillators", "9", "--scaling", "series")
    (folder,) = (tmp_path / "runs").glob("file-*")
    code, _, err = cli("export", folder, "--c", "program")
    assert code == 2 and "'train' or 'running'" in err
    code, _, err = cli("export", folder, "--onnx", "model.onnx")
    assert code == 2 and "export it as C" in err
