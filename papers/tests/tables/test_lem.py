import pytest

from anharmonic_papers.tables.registry import table


@pytest.mark.parametrize(
    ("name", "row", "count"),
    [
        ("lem-smnist", "lem", 67_850),
        ("lem-psmnist", "lem-published-code", 67_850),
        ("lem-ncifar", "lem", 116_490),
        ("lem-fitzhugh-nagumo", "lem", 1_169),
        ("lem-fitzhugh-nagumo", "exprnn", 1_376),
        ("lem-fitzhugh-nagumo", "lipschitz-rnn", 1_225),
        ("lem-fitzhugh-nagumo", "fastgrnn", 1_023),
        ("lem-smnist", "anti.sym.-rnn", 9_674),
        ("lem-smnist", "lipschitz-rnn", 34_314),
        ("lem-psmnist", "exprnn", 68_950),
        ("lem-ncifar", "lipschitz-rnn", 46_474),
        ("lem-ncifar", "exprnn", 103_150),
    ],
)
def test_parameters_are_those_of_the_papers(name, row, count, parameters):
    found = table(name).row(row)
    assert parameters(found.run) == count
    assert found.parameters in (f"{round(count / 1000)}k", f"{count // 1000}k")


@pytest.mark.parametrize(
    ("row", "settings"), [("lem", (3.5e-3, 1.9, None)), ("lem-published-code", (7.3e-3, 0.31, 1.1))]
)
def test_psmnist_offers_both_settings(row, settings):
    run = table("lem-psmnist").row(row).run
    assert (run.lr, run.model_options["dt"], run.clip_norm) == settings


def test_fitzhugh_nagumo_runs_three_seeds():
    sizes = {
        "LSTM": 16,
        "expRNN": 50,
        "Lipschitz RNN": 24,
        "FastGRNN": 30,
        "coRNN": 24,
        "LEM": 16,
        "LEM, dt = 2": 16,
    }
    rows = [row for row in table("lem-fitzhugh-nagumo").rows if row.label in sizes]
    assert all(row.seeds == (0, 1, 2) for row in rows)
    assert all((row.run.epochs, row.run.batch_size) == (400, 32) for row in rows)
    assert {row.label: row.run.model_options["hidden_size"] for row in rows} == sizes


def test_without_multiscale_has_no_gates():
    run = table("lem-fhn-no-multiscale").row("lem-without-multiscale").run
    assert run.model_options["multiscale"] is False


def test_fitzhugh_nagumo_says_what_was_tried():
    note = table("lem-fitzhugh-nagumo").note
    assert "0.003 and 0.009 for 100 epochs and at 0.02, 0.04 and 0.08 for 400" in note
    assert "coRNN's dt (from 0.19 to 1)" in note and "10 tries of 40 epochs" in note
