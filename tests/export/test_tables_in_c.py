"""From a table to a C program: categories, gaps and uneven times as `predict` takes them."""

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.cli.main import main
from anharmonic.data.readers import read_parts
from anharmonic.export import write_c

pytestmark = pytest.mark.usefixtures("loops")
QUICK = ("--hidden-size", "6", "--epochs", "1", "--threads", "1")


def trained(path, rows, model, *words):
    """Trains on the table, writes the program; recordings as C takes them, and what they mean."""
    (table := path / "mine.csv").write_text("\n".join(rows) + "\n")
    words = ["train", model, str(table), "--streaming", "--categorical", "air", *words]
    assert main([*words, "--no-progress", "--out", str(path)]) == 0
    (folder,) = path.glob("file-*")
    write_c(folder, path / "c")
    part = read_parts(table, targets=False, columns=ah.train.trained(folder).columns)["all"]
    values = part.x if part.elapsed is None else np.column_stack([part.x, part.elapsed])
    recordings = np.split(values, part.offsets[1:-1])
    return part.channels, recordings, ah.train.predict(folder, table).values


@pytest.mark.fast("ResonatorBank-step-mask", "gru-channel-forward")
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
def test_the_program_says_what_predict_says(tmp_path, program, check, model, elapsed, missing):
    """Recordings at uneven times, with gaps, the air as text and one age each."""
    rng = np.random.default_rng(0)
    rows = ["id,time,ax,air,age,label"]
    for i in range(24):
        for t in np.cumsum(rng.choice([0.5, 1.0, 3.0], 12)):
            ax = "" if rng.random() < 0.2 else f"{rng.normal():.3f}"
            air = ("mild", "hot", "")[rng.integers(3)]
            rows.append(f"{i},{t},{ax},{air},{i % 5},{'ab'[i % 2]}")
    words = (*QUICK, "--elapsed", elapsed, "--missing", missing, "--static", "age")
    channels, recordings, expected = trained(tmp_path, rows, model, *words)
    assert channels == ("ax", "age", "air=hot", "air=mild") and recordings[0].shape[1] == 5
    check(tmp_path / "c")
    scores = program(tmp_path / "c", 2)
    found = [torch.from_numpy(scores(x)).softmax(0).numpy() for x in recordings]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_categories_of_resonators(tmp_path, program):
    rng = np.random.default_rng(0)
    rows = ["id,time,ax,air,label"]
    for i in range(24):
        for t in range(12):
            air = ("mild", "hot")[rng.integers(2)]
            rows.append(f"{i},{t},{rng.normal() + i % 2:.3f},{air},{'ab'[i % 2]}")
    words = ("--num-oscillators", "20")
    _, recordings, expected = trained(tmp_path, rows, "resonators", *words)
    scores = program(tmp_path / "c", 2)

    def apart(columns):
        found = [torch.from_numpy(scores(x[:, columns])).softmax(0).numpy() for x in recordings]
        return np.abs(np.stack(found) - expected)

    # Zeros and ones put some responses on a level, where rounding decides which side counts: single
    # recordings may be a few percent apart, not their mean.
    assert apart([0, 1, 2]).mean() < 5e-3 and apart([0, 1, 2]).max() < 5e-2
    assert apart([0, 2, 1]).mean() > 5e-2, "categories in the other order must not fit"
