"""What a header says to somebody who sees nothing else of the model."""

import numpy as np
import pytest
import torch

import anharmonic as ah
from anharmonic.data.preprocessing import Preprocessing
from anharmonic.export import write_c


@pytest.fixture
def header(tmp_path):
    def written(model, **options):
        return write_c(model, tmp_path / "c", **options)[0].read_text()

    return written


def network(input_size, outputs=2):
    torch.manual_seed(0)
    return ah.SequenceModel("GRU", input_size, outputs, hidden_size=3).eval()


def preparation(**options):
    given = {"mean": (1.5, 25.0), "std": (0.5, 2.0), "standardise": True, "missing": "error"}
    return Preprocessing(**given | options)


def test_a_header_names_every_value_of_a_sample_in_order(header):
    names = 'model_x "[m/s2]"', "temp */ \\"
    how = preparation(channels=names, elapsed="channel", nominal=0.02)
    text = header(network(3), name="gait", preparation=how)
    lines = [
        "x[0]  \"model_x '[m/s2]'\": mean 1.5, standard deviation 0.5 in training",
        'x[1]  "temp * / /": mean 25, standard deviation 2 in training',
        "x[2]  time since the previous sample, in the unit of the training file (dates: seconds):",
        "      median 0.02 in training; 0 for the first sample",
    ]
    assert "\n".join(f" *   {line}" for line in lines) in text
    assert "2 channels, time between samples;" in text and "GAIT_CHANNELS 3" in text
    assert " *   x[0]  channel 0\n *   x[1]  channel 1\n" in header(network(2))


RNG = np.random.default_rng(0)
ARRAYS = {
    "x": RNG.normal(size=(40, 12, 2)).astype("f4"),
    "y": np.arange(80).reshape(40, 2) // 3 % 2,
}
TABLE = ["id,time,flow,pressure [bar],fill"]
TABLE += [f"{i},{t},{RNG.normal()},{i + RNG.normal()},{i}.5" for i in range(30) for t in range(9)]
COLUMNS = ('x[0]  "flow": mean ', 'x[1]  "pressure [bar]": mean ', 'outputs[0]  "fill"')
COLUMNS += ("values in the units of the training data",)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize(
    ("model", "content", "flags", "said"),
    [
        ("resonators", TABLE, ("--target-column", "fill", "--num-oscillators", 9), COLUMNS),
        ("gru", TABLE, ("--target-column", "fill", "--streaming"), COLUMNS),
        (
            "gru",
            ARRAYS,
            ("--target", "labels", "--streaming"),
            ('outputs[1]  "1"', "1 / (1 + exp(-score))"),
        ),
    ],
    ids=["values of resonators", "values", "labels"],
)
def test_a_header_of_a_run_names_columns_and_outputs(header, trained, model, content, flags, said):
    text = header(trained(model, content, *flags)[1])
    assert [words for words in said if words not in text] == []
    assert "softmax" not in text


def test_whole_numbers_are_converted_before_a_softmax(header):
    options = {"weights": "int8", "calibration": [np.ones((5, 2))], "class_names": ("go", "rest")}
    text = header(network(2), name="gait", **options)
    assert "A softmax of what gait_values gives" in text and 'outputs[1]  "rest"' in text


def test_forecasts_say_which_output_is_which(header):
    how = preparation(
        window=12, horizon=2, forecast=(1,), target_scale=(0.5,), quantiles=(0.1, 0.9),
        mean=(1.0, 2.0, 3.0), std=(1.0, 1.0, 1.0), known=(0,),
    )  # fmt: skip
    text = header(network(3, 4), preparation=how)
    assert "x[2]  channel 0, 2 steps later: mean 3" in text
    assert "i = 0  channel 1\n *   q = 0  quantile 0.1\n *   q = 1  quantile 0.9" in text
