import pytest

from anharmonic.nn.registry import list_models, model_kind
from anharmonic.train.run import Run
from anharmonic.train.trials import space_around, with_settings

TASKS = {"sequence": "digits", "graph": "cora", "tabular": None}


def ends(within):
    return within.choices or (within.low, within.high)


@pytest.mark.parametrize(
    "model", ["LEM", "CoRNN", "UnICORNN", "LSTM", "GRU", "GraphCON", "PlainGNN"]
)
def test_every_value_is_one_that_the_run_takes(model):
    run = Run(TASKS[model_kind(model)], model, lr=0.01)
    for name, within in space_around(run).items():
        for value in ends(within):
            fixed = (
                {"num_layers": 2} if name == "dropout" and model_kind(model) == "sequence" else {}
            )
            with_settings(run, {name: value, **fixed})
    assert model in list_models(model_kind(model))


def test_ranges_hold_the_settings_they_start_from():
    run = Run("digits", "CoRNN", lr=0.003, model_options={"dt": 0.2, "hidden_size": 48})
    space = space_around(run)
    assert space["lr"].low < 0.003 < space["lr"].high and space["lr"].log
    assert space["dt"].low < 0.2 <= space["dt"].high <= 1
    assert 48 in space["hidden_size"].choices


def test_a_step_that_is_not_there_or_has_a_value_for_every_layer_is_not_searched():
    assert "dt" not in space_around(Run("digits", "LSTM"))
    run = Run("digits", "UnICORNN", model_options={"dt": [0.1, 0.2], "num_layers": 2})
    assert "dt" not in space_around(run)


def test_what_is_fixed_is_not_searched():
    run = Run("digits", "LEM", model_options={"num_layers": 1})
    space = space_around(run, fixed=["lr", "num_layers"])
    assert "lr" not in space and "num_layers" not in space
    assert "dropout" not in space  # it would act between layers
    run = Run("digits", "LEM", model_options={"num_layers": 2})
    assert "dropout" in space_around(run, fixed=["num_layers"])
