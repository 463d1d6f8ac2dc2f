import pytest

from anharmonic_papers.tables.registry import table


@pytest.mark.parametrize(
    ("name", "row", "count"),
    [
        ("cornn-smnist", "cornn-128", 34_314),
        ("cornn-psmnist", "cornn-256", 134_154),
        ("cornn-ncifar", "cornn", 46_474),
        ("cornn-lorenz96", "f-8-cornn", 8_901),
        ("cornn-smnist", "anti.sym.-rnn", 9_674),
        ("cornn-psmnist", "fastgrnn", 18_060),
    ],
)
def test_parameters_are_those_of_the_papers(name, row, count, parameters):
    found = table(name).row(row)
    assert parameters(found.run) == count
    assert f"{round(count / 1000)}k" == found.parameters


def test_settings_are_the_printed_ones():
    run = table("cornn-psmnist").row("cornn-128").run
    assert (run.lr, run.batch_size, run.epochs, run.lr_drop_epoch) == (3.7e-3, 120, 120, 100)
    assert run.model_options == {
        "hidden_size": 128,
        "dt": 8.3e-2,
        "frequency": 0.13,
        "damping": 4.1,
    }
    assert run.task_options == {"permutation": "cornn"}


@pytest.mark.parametrize(
    ("row", "printed", "count"),
    [
        ("fastrnn", "16k", 30_092),
        ("anti.sym.-rnn", "36k", 60_042),
        ("gated-anti.sym.-rnn", "37k", 84_874),
        ("lipschitz-rnn", "134k", 158_474),
    ],
)
def test_printed_counts_that_96_inputs_do_not_give(row, printed, count, parameters):
    found = table("cornn-ncifar").row(row)
    assert (found.parameters, parameters(found.run)) == (printed, count)
    assert "60k, 85k and 158k; FastRNN has 30k" in table("cornn-ncifar").note


def test_models_of_others_know_the_length():
    rows = {row.id: row.run for row in table("cornn-adding").rows}
    assert rows["t-2000-fastrnn"].model_options == {
        "hidden_size": 128,
        "update_weight": 1 / 2000,
        "carry_weight": 1 - 1 / 2000,
    }


def test_adding_at_500_is_6000_steps():
    for row in table("cornn-adding").rows:
        if row.group == "T = 500" and row.run is not None:
            ours = row.run.schedule == "cosine"  # learned in fewer
            assert (row.run.epochs == 60 or ours) and row.run.epochs <= 60
            assert row.run.batch_size == 50
    assert table("cornn-adding").row("t-500-lem").run.model_options["dt"] == 0.0447
