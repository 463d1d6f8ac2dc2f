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
    options = ("--num-oscillators", "30", "--threads", "1")
    flags = ("--target", "value") if values else ()
    code, out, err = cli("train", "resonators", file, *options, *flags)
    assert code == 0 and "baseline" in out and "fitted in" in err, err
    folder = next(line for line in out.splitlines() if line.startswith("run folder")).split()[-1]
    assert cli("predict", folder, file)[0] == 0
    code, out, err = cli("export", folder, "--c", "program")
    assert code == 0 and "model.c" in out, err
    done = check(tmp_path / "program")
    assert done.returncode == 0 and "agrees" in done.stdout, done.stdout + done.stderr
    # The program prepares samples as training did.
    wanted = predict(tmp_path / folder, file).values[:5]
    outputs = 1 if values else 2
    run = program(
        tmp_path / "program", outputs, "-DMODEL_DOUBLE", sample=np.float64, value=np.float64
    )
    found = np.stack([run(row[:, None]) for row in x[:5]])
    if not values:
        found = np.exp(found) / np.exp(found).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, wanted, rtol=2e-2, atol=2e-2)
    with pytest.warns(UserWarning, match="training file"):
        assert evaluate_run(tmp_path / folder, file).is_better


def test_what_has_no_form_is_said(cli, tmp_path, data):
    out = cli("train", "resonators", data, "--num-oscillators", "9", "--scaling", "series")[1]
    folder = next(line for line in out.splitlines() if line.startswith("run folder")).split()[-1]
    code, _, err = cli("export", folder, "--c", "program")
    assert code == 2 and "'train' or 'running'" in err
    code, _, err = cli("export", folder, "--onnx", "model.onnx")
    assert code == 2 and "export it as C" in err
