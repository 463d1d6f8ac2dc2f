"""From a file to a C program: it says what `predict` says of the same file."""

import numpy as np
import pytest
import torch
from scipy.special import softmax

import anharmonic as ah
from anharmonic.data.readers import read_parts
from anharmonic.export import write_c, write_torch
from anharmonic.train import predict

pytest.importorskip("sklearn")
from anharmonic.estimators import SequenceClassifier

pytestmark = pytest.mark.usefixtures("loops")


@pytest.fixture
def agreement(program, check, tmp_path):
    """What the program of a run says of the recordings of a file, and what `predict` says."""

    def both(file, folder):
        write_c(folder, tmp_path / "c")
        check(tmp_path / "c")
        expected, run = predict(folder, file), ah.train.trained(folder)
        part = read_parts(file, targets=False, columns=run.columns)["all"]
        x = part.x if part.elapsed is None else np.column_stack([part.x, part.elapsed])
        call = program(tmp_path / "c", expected.values.shape[1])
        found = np.stack([call(recording) for recording in np.split(x, part.offsets[1:-1])])
        found = softmax(found, axis=1) if expected.class_names else found
        return found, expected.values

    return both


def table(uneven):
    """Recordings with the air as text and one age each; uneven ones have gaps, too."""
    rng = np.random.default_rng(0)
    rows = ["id,time,ax,air,age,label"]
    for i in range(24):
        for t in np.cumsum(rng.choice([0.5, 1.0, 3.0], 12)) if uneven else range(12):
            ax = "" if uneven and rng.random() < 0.2 else f"{rng.normal() + i % 2:.3f}"
            air = ("mild", "hot", "")[rng.integers(2 + uneven)]
            rows.append(f"{i},{t},{ax},{air},{i % 5},{'ab'[i % 2]}")
    return rows


def waves(values):
    rng = np.random.default_rng(0)
    speed = rng.choice([0.3, 0.6], 60)
    x = np.sin(speed[:, None] * np.arange(50) + rng.uniform(0, 6, (60, 1))) * 5 + 20
    return {"x": x, "y": 100 + 10 * speed if values else np.where(speed < 0.5, "slow", "fast")}


AIR = ("--streaming", "--categorical", "air")
FEW = ("--num-oscillators", 20)


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
def test_the_program_says_what_predict_says(trained, agreement, model, elapsed, missing):
    words = (*AIR, "--static", "age", "--elapsed", elapsed, "--missing", missing)
    found, expected = agreement(*trained(model, table(uneven=True), *words))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("content", "flags", "largest"),
    [
        pytest.param(waves(values=False), (), 2e-2, id="classes"),
        pytest.param(waves(values=True), ("--target", "value"), 2e-2, id="values"),
        pytest.param(table(uneven=False), (*AIR, "--ignore", "age"), 5e-2, id="categories"),
    ],
)
def test_the_program_of_resonators_says_what_predict_says(
    trained, agreement, content, flags, largest
):
    """Some responses are on a level, where rounding decides which side counts."""
    found, expected = agreement(*trained("resonators", content, *flags, *FEW))
    apart = np.abs(found - expected) / np.maximum(np.abs(expected), 1)
    assert apart.mean() < 5e-3 and apart.max() < largest


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
    found = softmax(scores, -1).mean(1)
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
    np.testing.assert_allclose(softmax(scores, 1), expected, rtol=1e-5)
    write_torch(model, tmp_path / "m.pt2")
    exported = torch.export.load(tmp_path / "m.pt2").module()
    found = exported(torch.from_numpy(x.transpose(0, 2, 1)).contiguous())[0].detach()
    np.testing.assert_allclose(found, expected, rtol=1e-5)


WITHOUT = "train again with a file without missing values"


@pytest.mark.parametrize(
    ("gaps", "flags", "form", "said"),
    [
        (0.0, ("--scaling", "series"), "--c", "'train' or 'running'"),
        (0.0, (), "--onnx", "export it as C"),
        (np.nan, (), "--c", f"got missing values; {WITHOUT}."),
        (
            np.nan,
            ("--difference", "True"),
            "--c",
            f"and differences; {WITHOUT} and --difference False.",
        ),
    ],
)
def test_what_resonators_lack_and_its_remedy_are_said(cli, trained, gaps, flags, form, said):
    x = np.random.default_rng(0).normal(size=(40, 20))
    x[:, 3] = gaps
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
    np.savez(tmp_path / "new.npz", x=x[:, :193], y=[0])
    found = predict(folder, tmp_path / "new.npz").values[0]
    # The last channel is channel 1 as it will be three steps later.
    window = np.column_stack([x[0, 182:190], x[0, 185:193, 1]])
    np.testing.assert_allclose(program(tmp_path / "c", 9)(window), found, rtol=1e-4)
