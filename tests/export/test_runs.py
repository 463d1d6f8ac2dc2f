"""From a file to a C program: it says what `predict` says of the same file."""

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.readers import read_parts
from anharmonic.export import write_c, write_torch
from anharmonic.train import evaluate_run, predict

pytest.importorskip("sklearn")
from anharmonic.estimators import SequenceClassifier

pytestmark = pytest.mark.usefixtures("loops")


@pytest.fixture
def written(trained, tmp_path):
    """Trains on a table, writes the program; recordings as C takes them, and what they mean."""

    def write(model, rows, *words):
        file, folder = trained(model, rows, "--streaming", "--categorical", "air", *words)
        write_c(folder, tmp_path / "c")
        part = read_parts(file, targets=False, columns=ah.train.trained(folder).columns)["all"]
        values = part.x if part.elapsed is None else np.column_stack([part.x, part.elapsed])
        recordings = np.split(values, part.offsets[1:-1])
        return part.channels, recordings, predict(folder, file).values

    return write


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
def test_the_program_says_what_predict_says(
    tmp_path, written, program, check, model, elapsed, missing
):
    """Recordings at uneven times, with gaps, the air as text and one age each."""
    rng = np.random.default_rng(0)
    rows = ["id,time,ax,air,age,label"]
    for i in range(24):
        for t in np.cumsum(rng.choice([0.5, 1.0, 3.0], 12)):
            ax = "" if rng.random() < 0.2 else f"{rng.normal():.3f}"
            air = ("mild", "hot", "")[rng.integers(3)]
            rows.append(f"{i},{t},{ax},{air},{i % 5},{'ab'[i % 2]}")
    words = ("--elapsed", elapsed, "--missing", missing, "--static", "age")
    channels, recordings, expected = written(model, rows, *words)
    assert channels == ("ax", "age", "air=hot", "air=mild") and recordings[0].shape[1] == 5
    check(tmp_path / "c")
    scores = program(tmp_path / "c", 2)
    found = [torch.from_numpy(scores(x)).softmax(0).numpy() for x in recordings]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_categories_of_resonators(tmp_path, written, program):
    rng = np.random.default_rng(0)
    rows = ["id,time,ax,air,label"]
    for i in range(24):
        for t in range(12):
            air = ("mild", "hot")[rng.integers(2)]
            rows.append(f"{i},{t},{rng.normal() + i % 2:.3f},{air},{'ab'[i % 2]}")
    _, recordings, expected = written("resonators", rows, "--num-oscillators", 20)
    scores = program(tmp_path / "c", 2)

    def apart(columns):
        found = [torch.from_numpy(scores(x[:, columns])).softmax(0).numpy() for x in recordings]
        return np.abs(np.stack(found) - expected)

    # Zeros and ones put some responses on a level, where rounding decides which side counts: single
    # recordings may be a few percent apart, not their mean.
    assert apart([0, 1, 2]).mean() < 5e-3 and apart([0, 1, 2]).max() < 5e-2
    assert apart([0, 2, 1]).mean() > 5e-2, "categories in the other order must not fit"


@pytest.mark.parametrize("values", [False, True], ids=["classes", "values"])
def test_resonators_from_a_file_to_c_in_three_commands(
    cli, trained, tmp_path, check, program, values
):
    rng = np.random.default_rng(0)
    speed = rng.choice([0.3, 0.6], 60)
    x = np.sin(speed[:, None] * np.arange(50) + rng.uniform(0, 6, (60, 1))) * 5 + 20
    y = 100 + 10 * speed if values else np.where(speed < 0.5, "slow", "fast")
    flags = ("--target", "value") if values else ()
    file, folder = trained("resonators", {"x": x, "y": y}, "--num-oscillators", 30, *flags)
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


def test_resonators_of_windows_answer_for_a_window(trained, tmp_path, program):
    """`predict` gives the mean over the windows of a recording."""
    x = np.random.default_rng(0).normal(size=(30, 40)).astype(np.float32)
    x[::2] += np.sin(np.arange(40) / 2)
    content = {"x": x, "y": np.arange(30) % 2}
    _, folder = trained("resonators", content, "--num-oscillators", 30, "--window", 20)
    write_c(folder, tmp_path / "c")
    # New ones: responses in training lie on the levels, where rounding decides.
    x += np.random.default_rng(1).normal(0, 0.1, x.shape).astype(np.float32)
    np.savez(tmp_path / "new.npz", x=x)
    assert "#define MODEL_WINDOW 20" in (tmp_path / "c" / "model.h").read_text()
    run = program(tmp_path / "c", 2, double=True)
    scores = np.stack([[run(part[:, None]) for part in np.split(row, 2)] for row in x])
    found = torch.from_numpy(scores).softmax(-1).mean(1).numpy()
    np.testing.assert_allclose(found, predict(folder, tmp_path / "new.npz").values, atol=1e-3)


def test_a_trained_estimator_goes_with_its_preparation(tmp_path, program):
    rng = np.random.default_rng(0)
    x = rng.normal(100, 5, (20, 2, 15)).astype(np.float32)
    y = np.array(["low", "high"])[np.arange(20) % 2]
    options = {"hidden_size": 4, "max_steps": 2, "model_options": {"bidirectional": False}}
    model = SequenceClassifier("LEM", random_state=0, **options)
    with pytest.raises(ValueError, match=r"model must be fitted; got 'SequenceClassifier'"):
        write_c(model, tmp_path)
    expected = model.fit(x, y).predict_proba(x)
    write_c(model, tmp_path)
    assert '"high"' in (tmp_path / "model.c").read_text()
    scores = np.stack([program(tmp_path, 2)(row.T) for row in x])
    np.testing.assert_allclose(torch.from_numpy(scores).softmax(1), expected, rtol=1e-5)
    write_torch(model, tmp_path / "m.pt2")
    exported = torch.export.load(tmp_path / "m.pt2").module()
    found = exported(torch.from_numpy(x.transpose(0, 2, 1)).contiguous())[0].detach()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("gaps", "flags", "form", "said"),
    [
        (False, ("--scaling", "series"), "--c", "'train' or 'running'"),
        (False, (), "--onnx", "export it as C"),
        (True, (), "--c", "got missing values; train again with a file without missing values."),
        (
            True,
            ("--difference", "True"),
            "--c",
            "got missing values and differences; train again with a file without missing values "
            "and --difference False.",
        ),
    ],
)
def test_what_resonators_lack_and_its_remedy_are_said(cli, trained, gaps, flags, form, said):
    x = np.random.default_rng(0).normal(size=(40, 20))
    x[:, 3:4] = np.nan if gaps else 0
    content = {"x": x, "y": np.arange(40) % 2}
    _, folder = trained("resonators", content, "--num-oscillators", 9, *flags)
    code, _, err = cli("export", folder, form, "program")
    assert code == 2 and said in err


def test_a_forecast_is_that_of_predict(trained, tmp_path, program):
    t = np.arange(200)
    x = np.stack([10 + np.sin(0.3 * t), t % 7], axis=1).astype("f4")[None]
    flags = ("--horizon", 3, "--window", 8, "--known", 1, "--quantiles", 0.1, 0.5, 0.9)
    _, folder = trained("gru", {"x": x, "y": [0]}, *flags)
    write_c(folder, tmp_path / "c")
    x[0, 190:, 0] = np.nan
    np.savez(tmp_path / "new.npz", x=x, y=[0])
    found = predict(folder, tmp_path / "new.npz").values[0]
    # The last channel is channel 1 as it will be three steps later.
    window = np.column_stack([x[0, 182:190], x[0, 185:193, 1]])
    np.testing.assert_allclose(program(tmp_path / "c", 9)(window), found, rtol=1e-4)
