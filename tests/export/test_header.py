"""What a header says to somebody who sees nothing else of the model."""

from pathlib import Path

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.export import write_c


def header(model, folder, name="model", **options):
    written = write_c(model, folder, name=name, **options)
    return Path(written[0]).read_text()


def network(input_size, outputs=2):
    torch.manual_seed(0)
    return ah.SequenceModel("GRU", input_size, outputs, hidden_size=3).eval()


def preparation(**options):
    given = {"mean": (1.5, 25.0), "std": (0.5, 2.0), "standardise": True, "missing": "error"}
    return Preprocessing(**given | options)


def test_a_header_names_every_value_of_a_sample_in_order(tmp_path):
    names = 'model_x "[m/s2]"', "temp */ \\"
    how = preparation(channels=names, elapsed="channel", nominal=0.02)
    text = header(network(3), tmp_path, "gait", preparation=how)
    lines = [
        "x[0]  \"model_x '[m/s2]'\": mean 1.5, standard deviation 0.5 in training",
        'x[1]  "temp * / /": mean 25, standard deviation 2 in training',
        "x[2]  time since the previous sample, in the unit of the training file (dates: seconds):",
        "      median 0.02 in training; 0 for the first sample",
    ]
    assert "\n".join(f" *   {line}" for line in lines) in text
    assert "2 channels, time between samples;" in text and "GAIT_CHANNELS 3" in text


def test_a_channel_without_a_name_has_its_number(tmp_path):
    assert " *   x[0]  channel 0\n *   x[1]  channel 1\n" in header(network(2), tmp_path)


@pytest.mark.usefixtures("loops")
def test_a_header_of_a_run_names_columns_and_outputs(trained, tmp_path):
    rng = np.random.default_rng(0)
    rows = ["id,time,flow,pressure [bar],fill"]
    rows += [
        f"{i},{t},{rng.normal()},{i + rng.normal()},{i}.5" for i in range(30) for t in range(9)
    ]
    for model, flag in {"resonators": ("--num-oscillators", 9), "gru": ("--streaming",)}.items():
        _, folder = trained(model, rows, "--target-column", "fill", *flag)
        text = header(folder, tmp_path / "c")
        assert 'x[0]  "flow": mean ' in text and 'x[1]  "pressure [bar]": mean ' in text
        assert "values in the units of the training data" in text
        assert 'outputs[0]  "fill"' in text and "softmax" not in text


def test_labels_are_no_classes(trained, tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 12, 2)).astype("f4")
    arrays = {"x": x, "y": (x.mean(axis=1) > 0).astype(int)}
    _, folder = trained("gru", arrays, "--target", "labels", "--streaming", "--readout", "mean")
    text = header(folder, tmp_path / "c")
    assert 'outputs[1]  "1"' in text and "1 / (1 + exp(-score))" in text and "softmax" not in text


def test_whole_numbers_are_converted_before_a_softmax(tmp_path):
    options = {"weights": "int8", "calibration": [np.ones((5, 2))], "class_names": ("go", "rest")}
    text = header(network(2), tmp_path, "gait", **options)
    assert "A softmax of what gait_values gives" in text and 'outputs[1]  "rest"' in text


def test_forecasts_say_which_output_is_which(tmp_path):
    how = preparation(
        window=12, horizon=2, forecast=(1,), target_scale=(0.5,), quantiles=(0.1, 0.9),
        mean=(1.0, 2.0, 3.0), std=(1.0, 1.0, 1.0), known=(0,),
    )  # fmt: skip
    text = header(network(3, 4), tmp_path, preparation=how)
    assert "x[2]  channel 0, 2 steps later: mean 3" in text
    assert "i = 0  channel 1\n *   q = 0  quantile 0.1\n *   q = 1  quantile 0.9" in text
