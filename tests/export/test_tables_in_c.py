"""From a table to a C program: categories, gaps and uneven times as `predict` takes them."""

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.cli.main import main
from anharmonic.data.readers import read_parts
from anharmonic.export import write_c

pytestmark = pytest.mark.usefixtures("loops")
QUICK = ("--hidden-size", "6", "--epochs", "1", "--threads", "1", "--no-progress")


@pytest.fixture
def table(tmp_path):
    """Recordings at uneven times, with gaps, the air as text and one age each."""
    rng = np.random.default_rng(0)
    rows = ["id,time,ax,air,age,label"]
    for i in range(24):
        clock = np.cumsum(rng.choice([0.5, 1.0, 3.0], 12))
        for t in clock:
            ax = "" if rng.random() < 0.2 else f"{rng.normal():.3f}"
            rows.append(
                f"{i},{t},{ax},{('mild', 'hot', '')[rng.integers(3)]},{i % 5},{'ab'[i % 2]}"
            )
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.fast("ResonatorBank-step-mask", "gru-channel-forward", "lem-step-forward")
@pytest.mark.parametrize(
    ("model", "elapsed", "missing"),
    [
        ("ResonatorBank", "step", "forward"),
        ("ResonatorBank", "step", "mask"),
        ("ResonatorBank", "channel", "mean"),
        ("gru", "channel", "forward"),
        ("lem", "step", "forward"),
    ],
)
def test_the_program_says_what_predict_says(
    tmp_path, table, program, check, model, elapsed, missing
):
    words = ["train", model, str(table), *QUICK, "--streaming", "--elapsed", elapsed]
    words += ["--missing", missing, "--static", "age", "--categorical", "air"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    (folder,) = tmp_path.glob("file-*")
    write_c(folder, tmp_path / "c")
    done = check(tmp_path / "c")
    assert done.returncode == 0, done.stdout + done.stderr
    run, found = ah.train.trained(folder), ah.train.predict(folder, table)
    part = read_parts(table, targets=False, columns=run.columns)["all"]
    assert part.channels == ("ax", "age", "air=hot", "air=mild") and part.elapsed is not None
    scores = program(tmp_path / "c", 2)
    for row in range(len(part)):
        steps = slice(part.offsets[row], part.offsets[row + 1])
        x = np.column_stack([part.x[steps], part.elapsed[steps]])
        shares = torch.from_numpy(scores(x)).softmax(0).numpy()
        np.testing.assert_allclose(shares, found.values[row], rtol=1e-4)


def test_categories_of_resonators(tmp_path, program):
    rng = np.random.default_rng(0)
    rows = ["id,time,ax,air,label"]
    for i in range(24):
        for t in range(12):
            air = ("mild", "hot")[rng.integers(2)]
            rows.append(f"{i},{t},{rng.normal() + i % 2:.3f},{air},{'ab'[i % 2]}")
    table = tmp_path / "mine.csv"
    table.write_text("\n".join(rows) + "\n")
    words = ["train", "resonators", str(table), "--num-oscillators", "20", "--no-progress"]
    assert main([*words, "--categorical", "air", "--streaming", "--out", str(tmp_path)]) == 0
    (folder,) = tmp_path.glob("file-*")
    write_c(folder, tmp_path / "c")
    run, found = ah.train.trained(folder), ah.train.predict(folder, table)
    part = read_parts(table, targets=False, columns=run.columns)["all"]
    scores = program(tmp_path / "c", 2)
    rows = [part.x[part.offsets[row] : part.offsets[row + 1]] for row in range(len(part))]

    def apart(columns):
        shares = [torch.from_numpy(scores(x[:, columns].copy())).softmax(0).numpy() for x in rows]
        return np.abs(np.stack(shares) - found.values)

    # Zeros and ones put some responses on a level, where rounding decides which side counts: single
    # recordings may be a few percent apart, not their mean.
    assert apart([0, 1, 2]).mean() < 5e-3 and apart([0, 1, 2]).max() < 5e-2
    assert apart([0, 2, 1]).mean() > 5e-2, "categories in the other order must not fit"
