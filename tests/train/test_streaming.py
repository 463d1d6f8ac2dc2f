"""A model that is to run sample by sample is asked for at training time."""

import subprocess

import numpy as np
import pytest

from anharmonic.train.streaming import streaming_options

WORDS = ("--epochs", "1", "--hidden-size", "4", "--threads", "1", "--no-progress")


@pytest.fixture
def mine(tmp_path):
    """Series of which one is far larger than others, with uneven times: all that a stream lacks."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 12, 2)) * 10.0 ** rng.uniform(-2, 2, (40, 1, 1))
    y = np.where(x.mean((1, 2)) > 0, "high", "low")
    elapsed = rng.uniform(0.5, 1.5, (40, 12))
    np.savez(tmp_path / "mine.npz", x=x.astype("f4"), y=y, elapsed=elapsed.astype("f4"))


def test_with_streaming_a_model_of_a_file_goes_to_c(tmp_path, cli, mine):
    code, out, err = cli("train", "lem", "mine.npz", "--streaming", *WORDS)
    assert code == 0 and "streaming" not in out, err
    folder = out.split("run folder")[1].split()[0]
    code, out, err = cli("export", folder, "--c", "model")
    assert code == 0, err
    words = ["gcc", "-std=c99", "model.c", "model_test.c", "-lm", "-o", "check"]
    subprocess.run(words, cwd=tmp_path / "model", check=True)
    subprocess.run(["./check"], cwd=tmp_path / "model", check=True)


def test_without_it_one_line_says_so(cli, mine):
    code, out, err = cli("train", "lem", "mine.npz", *WORDS)
    assert code == 0, err
    (line,) = (line for line in out.splitlines() if line.startswith("streaming"))
    assert "both directions" in line and line.endswith("train with --streaming")
    folder = out.split("run folder")[1].split()[0]
    code, out, err = cli("export", folder, "--c", "model")
    assert code != 0 and "train with --streaming" in err


def test_what_contradicts_is_refused(cli, mine):
    code, _, err = cli("train", "lem", "mine.npz", "--streaming", "--bidirectional", "True")
    assert code != 0 and "--bidirectional must be False with --streaming" in err
    with pytest.raises(ValueError, match=r"--streaming .*model of sequences"):
        streaming_options("GraphCON", "cora", {})
